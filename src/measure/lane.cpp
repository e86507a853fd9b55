// SPDX-License-Identifier: Apache-2.0
// How does one process check and time one library after another?
#include "measure/lane.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "host/arguments.h"
#include "host/compare.h"
#include "host/npy.h"
#include "measure/device/cuda_device.h"
#include "measure/device/engine_device.h"
#include "measure/render.h"
#include "sys/files.h"

namespace kiln::measure {
namespace {

namespace fs = std::filesystem;

// Wrong results and failing calls have different fates; both are the variant's own.
constexpr const char* kWrong = "gives a wrong result";

std::vector<std::string> texts(const Json& request, const char* key) {
  return request.at(key).get<std::vector<std::string>>();
}

std::optional<double> number(const Json& request, const char* key) {
  const auto found = request.find(key);
  if (found == request.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

fs::path result_file(const fs::path& folder, size_t i) {
  return folder / fmt::format("result{}.npy", i);
}

Result<std::vector<host::Array>> results_of(const host::OpCall& call) {
  TRY(std::vector<host::Output> outputs, call.outputs());
  std::vector<host::Array> arrays;
  for (host::Output& output : outputs)
    if (output.array) arrays.push_back(host::contiguous(*output.array));
  return arrays;
}

// Whole or not at all: the folder gets its name when everything is in it.
Status write_reference(const fs::path& folder, const std::vector<host::Array>& results) {
  fs::path part = folder;
  part += ".part";
  CHECK_OK(sys::real_files().remove(part));
  CHECK_OK(sys::real_files().make_directories(part));
  for (size_t i = 0; i < results.size(); ++i)
    CHECK_OK(host::write_npy(result_file(part, i), results[i]));
  std::error_code failed;
  fs::rename(part, folder, failed);
  if (failed) return sys::disk_error("cannot save the correct results in", folder, failed.value());
  return {};
}

Result<std::vector<host::Array>> read_reference(const fs::path& folder) {
  std::vector<host::Array> results;
  for (size_t i = 0; sys::real_files().state(result_file(folder, i)).is_file(); ++i) {
    TRY(host::Array array, host::read_npy(result_file(folder, i)));
    results.push_back(std::move(array));
  }
  return results;
}

Error wrong(const host::OpCall& call, std::string why) {
  return {Fault::Work, fmt::format("{} {}", host::full_name(call.op()), kWrong), std::move(why),
          ""};
}

Status compare_with(const host::OpCall& call, const std::vector<host::Array>& seen,
                    const std::vector<host::Array>& wanted, const Json& request) {
  if (seen.size() < wanted.size())
    return wrong(call, fmt::format("got {} tensors, expected {}", seen.size(), wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (seen[i].dtype == wanted[i].dtype && seen[i].storage == wanted[i].storage) continue;
    const host::Tolerance tolerance =
        host::tolerance_for(seen[i], wanted[i], number(request, "rtol"), number(request, "atol"));
    const host::Comparison comparison = host::compare(seen[i], wanted[i], tolerance);
    if (comparison.equal) continue;
    if (!comparison.unlike.empty()) return wrong(call, comparison.unlike);
    return wrong(
        call,
        fmt::format("{} of {} elements of result {} differ, the first at {}: got {}, expected {}",
                    comparison.mismatches, comparison.count, i,
                    host::coordinate_text(comparison.first), comparison.first_seen,
                    comparison.first_wanted));
  }
  return {};
}

Json timing_json(const Timing& timing) {
  const Summary summary = summarise(timing.cold.ns);
  return {{"us", summary.median / 1e3},
          {"low_us", summary.interval.low / 1e3},
          {"high_us", summary.interval.high / 1e3},
          {"samples", summary.count}};
}

Json findings_json(const Report& report) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings)
    if (finding.weight != Weight::Note)
      findings.push_back(fmt::format("{}: {}", finding.trap, finding.text));
  return findings;
}

const Finding* refusal_in(const Report& report) {
  for (const Finding& finding : report.findings)
    if (finding.weight == Weight::Refusal) return &finding;
  return nullptr;
}

}  // namespace

Status Lane::use_device(const host::OpLibrary& library) {
  TRY(const host::Device where, library.default_device());
  if (!device_ && where.type == KILN_DEVICE_CPU) device_ = open_engine_device();
  if (!device_) {
    TRY(device_, open_cuda_device({where.index, nullptr, true}));
  }
  if (device_->is_gpu() && !library.use_stream(device_->stream()))
    return Error{Fault::Environment, fmt::format("cannot time {}", library.path().string()),
                 "it was built by a kiln whose ops do not take a stream", "build it again"};
  return {};
}

Result<host::OpCall> Lane::prepare(const Json& request, const host::OpLibrary& library,
                                   const char* arguments) {
  TRY(const host::BoundCall bound,
      host::bind_call(library.ops(), request.at("op").get<std::string>(),
                      texts(request, arguments)));
  TRY(const host::Device device, library.default_device());
  return host::OpCall::prepare(library, bound, device, request.value("seed", uint64_t{0}),
                               &inputs_);
}

Result<Json> Lane::hello() {
  if (!device_) {
    const char* wanted = ::getenv("KILN_DEVICE");
    if (cuda_device_count() > 0 && std::string_view(wanted ? wanted : "") != "engine") {
      TRY(device_, open_cuda_device({0, nullptr, true}));
    } else {
      device_ = open_engine_device();
    }
  }
  return Json{{"device", to_json(device_->facts())}};
}

Status Lane::check(const Json& request, const host::OpLibrary& library, Json& answer) {
  TRY(host::OpCall call, prepare(request, library, "check"));
  CHECK_OK(call.call());
  CHECK_OK(call.synchronize());
  TRY(const std::vector<host::Array> seen, results_of(call));
  TRY(const std::vector<std::string> overwritten, call.overwritten_inputs());
  if (!overwritten.empty())
    return wrong(call, fmt::format("it wrote to its input '{}'", overwritten.front()));
  const std::string folder = request.at("reference").get<std::string>();
  if (folder != reference_folder_ && sys::real_files().state(folder).is_directory) {
    TRY(reference_, read_reference(folder));
    reference_folder_ = folder;
  }
  if (folder != reference_folder_) {
    if (!request.value("establish", false))
      return Error{Fault::Bug, "there is nothing to compare with", folder, ""};
    CHECK_OK(write_reference(folder, seen));
    reference_ = seen;
    reference_folder_ = folder;
    answer["correct"] = "the first variant: the others are compared with it";
    answer["established"] = true;
    return {};
  }
  CHECK_OK(compare_with(call, seen, reference_, request));
  answer["correct"] = "equal to the reference";
  return {};
}

Result<Json> Lane::time(const Json& request) {
  TRY(const host::OpLibrary library,
      host::OpLibrary::open(request.at("library").get<std::string>()));
  CHECK_OK(use_device(library));
  Json answer = Json::object();
  CHECK_OK(check(request, library, answer));
  if (!device_->is_gpu()) return answer;
  TRY(host::OpCall call, prepare(request, library, "arguments"));
  Contender contender;
  contender.name = host::full_name(call.op());
  contender.bytes = call.moved_bytes();
  contender.call = [&](int) { return call.call(); };
  TRY(const RunOptions options, run_options(request.at("options")));
  TRY(const Report report, run(*device_, {contender}, options));
  if (const Finding* refusal = refusal_in(report))
    return Error{Fault::Work, contender.name + " cannot be timed",
                 refusal->trap + ": " + refusal->text,
                 "fix the op first; kiln docs bench says how each trap is found"};
  answer.update(timing_json(report.timings[0]));
  if (Json findings = findings_json(report); !findings.empty())
    answer["findings"] = std::move(findings);
  return answer;
}

// All in one run, in random order: a slow moment of the machine falls on all alike.
Result<Json> Lane::race(const Json& request) {
  std::vector<host::OpCall> calls;
  for (const std::string& path : texts(request, "libraries")) {
    TRY(const host::OpLibrary library, host::OpLibrary::open(path));
    CHECK_OK(use_device(library));
    TRY(host::OpCall call, prepare(request, library, "arguments"));
    calls.push_back(std::move(call));
  }
  std::vector<Contender> contenders;
  for (host::OpCall& call : calls) {
    Contender contender;
    contender.name = fmt::format("{}", contenders.size());
    contender.bytes = call.moved_bytes();
    contender.call = [&call](int) { return call.call(); };
    contenders.push_back(std::move(contender));
  }
  TRY(const RunOptions options, run_options(request.at("options")));
  TRY(const Report report, run(*device_, contenders, options));
  Json answer{{"us", Json::array()},
              {"low_us", Json::array()},
              {"high_us", Json::array()},
              {"ratio", Json::array()}};
  for (const Timing& timing : report.timings) {
    const Json one = timing_json(timing);
    for (const char* key : {"us", "low_us", "high_us"}) answer[key].push_back(one[key]);
    answer["samples"] = one["samples"];
    const Ratio ratio = paired_ratio(timing.cold.ns, report.timings[0].cold.ns);
    answer["ratio"].push_back({ratio.value, ratio.interval.low, ratio.interval.high});
  }
  answer["findings"] = findings_json(report);
  return answer;
}

bool Lane::is_lost() { return device_ && device_->is_gpu() && !device_->synchronize(2); }

Json Lane::answer(const Json& request) {
  Json id = request.contains("id") ? request["id"] : Json();
  const auto said = [&]() -> Result<Json> {
    try {
      const std::string what = request.at("do").get<std::string>();
      if (what == "hello") return hello();
      if (what == "time") return time(request);
      if (what == "race") return race(request);
      return Error{Fault::Bug, "cannot read a request to the measuring process", what, ""};
    } catch (const std::exception& e) {
      return Error{Fault::Bug, "cannot read a request to the measuring process", e.what(), ""};
    }
  }();
  Json answer = said ? *said : to_json(said.error());
  if (!said) {
    answer["fate"] = said.error().what.ends_with(kWrong) ? "wrong" : "crashed";
    if (is_lost()) answer["lost"] = true;
  }
  answer["id"] = std::move(id);
  return answer;
}

int serve_lane() {
  // An op that prints must not write between the answers.
  const int answers = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (answers < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return static_cast<int>(Fault::Environment);
  Lane lane;
  for (std::string line; std::getline(std::cin, line);) {
    const Result<Json> request = parse_json(line, "a request");
    const std::string answer =
        dump(request ? lane.answer(*request) : to_json(request.error())) + "\n";
    for (size_t sent = 0; sent < answer.size();) {
      const ssize_t count = ::write(answers, answer.data() + sent, answer.size() - sent);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return static_cast<int>(Fault::Environment);
      sent += static_cast<size_t>(count);
    }
  }
  return 0;
}

}  // namespace kiln::measure
