// SPDX-License-Identifier: Apache-2.0
#include "measure/cold.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "measure/sample/statistics.h"

namespace kiln::measure {
namespace {

const results::ColdKind* kind_of(const results::ColdResult& result, std::string_view kind) {
  for (const results::ColdKind& one : result.kinds)
    if (one.kind == kind) return &one;
  return nullptr;
}

double stage_ns(const results::ColdKind& kind, std::string_view name) {
  for (const results::ColdStage& stage : kind.stages)
    if (stage.name == name && stage.median_ns) return *stage.median_ns;
  return 0;
}

results::ColdKind summarise_kind(const std::string& kind, const std::vector<const ColdRun*>& runs) {
  results::ColdKind out;
  out.kind = kind;
  out.runs = static_cast<int>(runs.size());
  for (const Stage& first : runs.front()->stages) {
    std::vector<double> ns;
    for (const ColdRun* run : runs)
      for (const Stage& stage : run->stages)
        if (stage.name == first.name && stage.ns >= 0) ns.push_back(stage.ns);
    results::ColdStage row;
    row.name = first.name;
    if (ns.empty()) {
      row.why = first.why;
    } else {
      const Summary s = summarise(ns);
      row.median_ns = s.median;
      row.low_ns = s.least;
      row.high_ns = s.greatest;
      if (!row.is_after_first_call()) out.total_ns += s.median;
    }
    out.stages.push_back(std::move(row));
  }
  return out;
}

}  // namespace

Json to_json(const ColdRun& run) {
  Json stages = Json::array();
  for (const Stage& stage : run.stages)
    stages.push_back({{"name", stage.name}, {"ns", stage.ns}, {"why", stage.why}});
  return {{"kind", run.kind}, {"stages", stages}};
}

Result<ColdRun> cold_run(const Json& json) {
  try {
    ColdRun run{json.at("kind").get<std::string>(), {}};
    for (const Json& stage : json.at("stages"))
      run.stages.push_back({stage.at("name").get<std::string>(), stage.at("ns").get<double>(),
                            stage.value("why", std::string())});
    return run;
  } catch (const Json::exception& e) {
    return Error{Fault::Bug, "cannot read the stages of a cold start", e.what(), ""};
  }
}

results::ColdResult cold_result(const std::string& title, const std::vector<ColdRun>& runs) {
  std::vector<std::string> order;
  for (const ColdRun& run : runs)
    if (std::find(order.begin(), order.end(), run.kind) == order.end()) order.push_back(run.kind);
  results::ColdResult result;
  result.title = title;
  for (const std::string& kind : order) {
    std::vector<const ColdRun*> some;
    for (const ColdRun& run : runs)
      if (run.kind == kind) some.push_back(&run);
    result.kinds.push_back(summarise_kind(kind, some));
  }
  result.advice = cold_advice(result);
  return result;
}

std::vector<std::string> cold_advice(const results::ColdResult& result) {
  struct Piece {
    double ns;
    std::string text;
  };
  std::vector<Piece> pieces;
  const auto add = [&](double ns, std::string text) {
    if (ns > 0) pieces.push_back({ns, std::move(text)});
  };
  const results::ColdKind *native = kind_of(result, "native"),
                          *eager = kind_of(result, "native, eager modules"),
                          *jit = kind_of(result, "native, PTX compiled"),
                          *foreign = kind_of(result, "native, no SASS for this GPU"),
                          *python = kind_of(result, "python");
  if (python) {
    const double import = stage_ns(*python, "import torch");
    add(import, fmt::format("import torch takes {}: keep the process alive (a server, a pool of "
                            "workers); nothing in the op "
                            "changes it",
                            time_text(import)));
  }
  if (native) {
    const double context = stage_ns(*native, "cuInit") + stage_ns(*native, "context");
    add(context, fmt::format("the driver and the CUDA context take {}: create it early, in "
                             "parallel with other work (torch.cuda.init()); "
                             "nvidia-persistenced keeps the driver loaded",
                             time_text(context)));
    const double handles = stage_ns(*native, "cuBLAS handle") + stage_ns(*native, "cuDNN handle");
    add(handles,
        fmt::format(
            "cuBLAS and cuDNN take {} to load and start: only programs that use them pay for it",
            time_text(handles)));
    const double first = stage_ns(*native, "first call"), steady = stage_ns(*native, "steady call");
    if (first > 10 * steady && steady > 0)
      add(first - steady,
          fmt::format(
              "the first call takes {} and later ones {}: call it once before you measure or serve",
              time_text(first), time_text(steady)));
    for (const results::ColdKind* compiled : {foreign, jit})
      if (compiled) {
        const double with = stage_ns(*compiled, "first call");
        if (with > 1.5 * first)
          add(with - first,
              fmt::format(
                  "{}: the first call takes {} instead of {}, because the driver compiles PTX: "
                  "build with --arch for the "
                  "GPU it runs on; the driver keeps the result in CUDA_CACHE_PATH",
                  compiled == foreign ? "without SASS for this GPU" : "with CUDA_FORCE_PTX_JIT",
                  time_text(with), time_text(first)));
      }
    if (eager) {
      const double lazy_total = native->total_ns, eager_total = eager->total_ns;
      if (eager_total > 1.05 * lazy_total)
        add(eager_total - lazy_total,
            fmt::format("CUDA_MODULE_LOADING=EAGER costs {}: leave it LAZY unless the first launch "
                        "of each kernel must be fast",
                        time_text(eager_total - lazy_total)));
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.ns > b.ns; });
  std::vector<std::string> out;
  for (const Piece& piece : pieces) out.push_back(piece.text);
  return out;
}

}  // namespace kiln::measure
