// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/counted_op.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/call_limit.h"
#include "cli/commands/watched_process.h"
#include "cli/programs.h"
#include "counters/report.h"
#include "sys/files.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

// Gone when it goes.
struct CountsFolder {
  explicit CountsFolder(fs::path made) : path(std::move(made)) {}
  CountsFolder(const CountsFolder&) = delete;
  CountsFolder& operator=(const CountsFolder&) = delete;
  ~CountsFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

}  // namespace

Result<CountedProcess> run_counted(sys::ProcessSpec spec, const counters::Gpu& gpu,
                                   uint64_t schedule) {
  TRY(fs::path made, sys::make_temporary_folder("kiln-counters"));
  const CountsFolder folder(std::move(made));
  const fs::path file = folder.path / "run.jsonl";
  spec.env->set("KILN_DEVICE", "engine");
  spec.env->set("KILN_ENGINE_COUNTERS", file.string());
  spec.env->set("KILN_ENGINE_CACHES", fmt::format("{}:{}", gpu.multiprocessors, gpu.l2_bytes()));
  spec.env->set("KILN_ENGINE_SCHEDULE", std::to_string(schedule));
  CountedProcess out;
  TRY(out.done, sys::real_processes().run(spec));
  if (auto text = sys::real_files().read(file)) out.counts = std::move(*text);
  return out;
}

Result<results::CounterReport> count_op(const OpToCount& call, const counters::Gpu& gpu,
                                        Context& context) {
  sys::ProcessSpec spec;
  TRY(spec.env, program_environment(context.env));
  TRY(const fs::path own, sys::own_executable());
  spec.arguments = {own.string(), "call",   call.library.string(),
                    "--print=0",  "--seed", std::to_string(call.seed)};
  spec.arguments.push_back(call.op);
  spec.arguments.insert(spec.arguments.end(), call.arguments.begin(), call.arguments.end());
  spec.limit_s = call.limit_s;
  spec.capture = true;
  TRY(const CountedProcess run, run_counted(std::move(spec), gpu, 0));
  const std::string what = "cannot count the kernels of " + call.op;
  if (run.done.timed_out)
    return Error{Fault::Work, what, past_limit(call.limit_s),
                 "use smaller arguments, or give it more time"};
  if (has_failed(run.done) || !run.counts)
    return error_of_kiln(run.done.out, run.done.exit_code,
                         {Fault::Work, what, std::string(text::trim(run.done.out)),
                          "check that it runs on the engine: kiln call --device engine"});
  TRY(results::CounterRun counts, results::read_counter_run(*run.counts, call.op));
  return counters::make_report(counts, gpu, "");
}

}  // namespace kiln::cli
