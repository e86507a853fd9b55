// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/bench/bench_cold.h"

#include <fmt/format.h>

#include <span>

#include "base/text.h"
#include "binary/symbols.h"
#include "cli/build_options.h"
#include "cli/call_limit.h"
#include "cli/commands/bench/bench_process.h"
#include "cli/programs.h"
#include "measure/cold.h"
#include "measure/cold_process.h"
#include "report/cold.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;
constexpr int kPythonRuns = 3;  // import torch takes seconds

Result<std::vector<std::string>> dependents_of(const fs::path& library) {
  TRY(const std::string bytes, sys::real_files().read(library));
  TRY(const binary::Elf elf, binary::read_elf(std::as_bytes(std::span(bytes))));
  TRY(const binary::Dynamic dynamic, binary::read_dynamic(elf));
  std::vector<std::string> names;
  for (std::string_view name : dynamic.needed) names.emplace_back(name);
  return names;
}

struct Folder {
  fs::path path;
  ~Folder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

// Each process gets an empty cache of compiled PTX, so that none finds what another left.
Result<measure::ColdRun> one_process(std::vector<std::string> words, sys::Environment env,
                                     const fs::path& scratch, const Json& request, double limit_s,
                                     const std::string& what) {
  const fs::path asked = scratch / "request.json", answered = scratch / "answer.json",
                 cache = scratch / "ptx-cache";
  CHECK_OK(sys::real_files().write(asked, dump(request), sys::Durable::No));
  CHECK_OK(sys::real_files().remove(answered));
  std::error_code ignored;
  fs::remove_all(cache, ignored);
  env.set("CUDA_CACHE_PATH", cache.string());
  words.push_back(asked.string());
  words.push_back(answered.string());
  sys::ProcessSpec spec;
  spec.arguments = std::move(words);
  spec.env = std::move(env);
  spec.limit_s = limit_s;
  TRY(const sys::ProcessResult done, sys::real_processes().run(spec));
  const auto text = sys::real_files().read(answered);
  if (!text && done.timed_out)
    return Error{Fault::Work, what, past_limit(limit_s),
                 "look for an endless loop; --limit SECONDS gives it more time"};
  if (!text)
    return Error{
        Fault::Work, what,
        fmt::format("the process ended with code {}: {}", done.exit_code, text::trim(done.out)),
        "check that it runs on its own: kiln call FILE.cu OP ARGS"};
  TRY(const Json answer, parse_json(*text, "the answer of a cold start"));
  if (answer.contains("error"))
    return Error{Fault::Work, answer["error"].value("what", what), answer["error"].value("why", ""),
                 answer["error"].value("fix", "")};
  return measure::cold_run(answer);
}

struct Kind {
  std::string name;
  fs::path library;
  std::vector<std::pair<std::string, std::string>> env;
};

// The same op built for an older GPU: its SASS does not run here, and the driver compiles its PTX.
Result<fs::path> build_without_sass(const ColdOptions& options, Context& context) {
  build::Request request = options.request;
  request.targets = {options.target.string()};
  request.arch = "7.5+PTX";
  TRY(const build::Outcome outcome, build_for(context, request));
  return outcome.file;
}

bool has_gpu(const measure::ColdRun& run) {
  for (const measure::Stage& stage : run.stages)
    if (stage.name == "context") return stage.ns >= 0;
  return false;
}

}  // namespace

Result<int> bench_cold(const ColdOptions& options, Context& context) {
  if (options.runs < 1 || options.runs > 1000)
    return Error{Fault::Usage, fmt::format("cannot start {} processes", options.runs),
                 "--cold-runs must be 1 to 1000",
                 "leave out --cold-runs, or give a number in this range"};
  TRY(const fs::path folder, sys::make_temporary_folder("kiln-cold"));
  const Folder scratch{folder};
  TRY(sys::Environment env, program_environment(context.env));
  if (!options.device.empty()) env.set("KILN_DEVICE", options.device);
  TRY(const fs::path own, sys::own_executable());
  TRY(const std::vector<std::string> dependents, dependents_of(options.library));

  std::vector<measure::ColdRun> runs;
  const auto add = [&](const Kind& kind) -> Status {
    sys::Environment with = env;
    for (const auto& [name, value] : kind.env) with.set(name, value);
    const measure::ColdRequest request{kind.name, kind.library, dependents, options.op,
                                       options.arguments};
    TRY(measure::ColdRun run, one_process({own.string(), "bench", "--cold-process"}, with,
                                          scratch.path, measure::to_json(request), options.limit_s,
                                          options.op + " cannot be started cold"));
    runs.push_back(std::move(run));
    return {};
  };
  std::vector<Kind> kinds = {{"native", options.library, {{"CUDA_MODULE_LOADING", "LAZY"}}}};
  CHECK_OK(add(kinds[0]));
  const bool gpu = has_gpu(runs.front());
  if (gpu) {
    kinds.push_back({"native, eager modules", options.library, {{"CUDA_MODULE_LOADING", "EAGER"}}});
    kinds.push_back({"native, PTX compiled",
                     options.library,
                     {{"CUDA_FORCE_PTX_JIT", "1"}, {"CUDA_CACHE_DISABLE", "1"}}});
    if (options.target.extension() != ".so") {
      if (auto foreign = build_without_sass(options, context))
        kinds.push_back({"native, no SASS for this GPU", *foreign, {}});
      else
        context.note("not built without SASS for this GPU: " + foreign.error().why);
    }
  }
  for (int i = 0; i < options.runs; ++i)
    for (const Kind& kind : kinds)
      if (i > 0 || kind.name != "native") CHECK_OK(add(kind));
  if (auto python = python_with_torch(context, "no stages of Python")) {
    sys::Environment with = python->env;
    if (!options.device.empty()) with.set("KILN_DEVICE", options.device);
    const measure::ColdRequest request{
        "python", options.library, {}, options.op, options.arguments};
    for (int i = 0; i < std::min(options.runs, kPythonRuns); ++i) {
      auto run = one_process({python->program, "-m", "kiln._processes.cold"}, with, scratch.path,
                             measure::to_json(request), options.limit_s, "no stages of Python");
      if (!run) {
        context.note(fmt::format("no stages of Python: {}", run.error().why));
        break;
      }
      runs.push_back(std::move(*run));
    }
  } else {
    context.note(fmt::format("no stages of Python: {}", python.error().why));
  }
  const results::ColdResult result = measure::cold_result(options.op, runs);
  if (!options.html.empty()) {
    CHECK_OK(sys::real_files().write(context.directory / options.html, report::cold_page(result)));
    context.note("wrote " + options.html);
  }
  context.json ? context.print_json(to_json(result)) : context.print(report::cold_text(result));
  return 0;
}

Result<int> be_cold_process(const std::string& request_path, const std::string& answer_path) {
  const auto answer = [&]() -> Result<Json> {
    TRY(const std::string text, sys::real_files().read(request_path));
    TRY(const Json json, parse_json(text, request_path));
    TRY(const measure::ColdRequest request, measure::cold_request(json));
    TRY(const measure::ColdRun run, measure::run_cold_stages(request));
    return measure::to_json(run);
  }();
  CHECK_OK(sys::real_files().write(answer_path, dump(answer ? *answer : to_json(answer.error())),
                                   sys::Durable::No));
  return 0;
}

}  // namespace kiln::cli
