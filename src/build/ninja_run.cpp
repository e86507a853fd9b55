// SPDX-License-Identifier: Apache-2.0
// How is ninja started, with how many jobs, and what does a person see meanwhile?
#include "build/ninja_run.h"

#include <fmt/format.h>

#include "base/text.h"
#include "build/jobs.h"
#include "sys/clock.h"
#include "sys/machine.h"

namespace kiln::build {

namespace {

Result<JobLimit> jobs_for(Work& work) {
  auto cache = project::cache_folder(work.world.env);
  Peaks peaks(work.world.files, (cache ? *cache : work.plan.build_dir) / "peaks.json");
  std::vector<uint64_t> expected;
  for (const Step& step : work.graph.steps) expected.push_back(peaks.expected_bytes(step));
  work.explanation.cores = sys::usable_cores(work.world.files);
  work.explanation.available_bytes = sys::available_memory_bytes(work.world.files);
  TRY(JobLimit limit, job_limit(work.world.env.get("MAX_JOBS"), work.explanation.cores,
                                work.explanation.available_bytes, std::move(expected)));
  work.explanation.jobs = limit.jobs;
  work.explanation.why_jobs = limit.why;
  return limit;
}

// "[2/6] compile add.cu for compute_90 0.8 s": from what steps leave in the staging folder and in obj/.
std::string progress_line(const Work& work, double seconds) {
  size_t done = 0;
  std::string now;
  for (const Step& step : work.graph.steps) {
    if (work.world.files.state(work.in_obj(step.key + ".report")).ctime_ns >= work.started_ns)
      ++done;
    else if (now.empty() && work.world.files.state(work.staging / (step.key + ".begun")).exists)
      now = step.what;
  }
  return fmt::format("[{}/{}] {} {:.1f} s", done, work.graph.steps.size(), now, seconds);
}

Result<sys::ProcessResult> start_ninja(const Work& work, int jobs, const std::vector<std::string>& targets) {
  sys::ProcessSpec spec;
  spec.arguments = {work.plan.ninja.string(), fmt::format("-j{}", jobs)};
  spec.arguments.insert(spec.arguments.end(), targets.begin(), targets.end());
  spec.directory = work.plan.build_dir;
  sys::Environment env = work.world.env;
  env.set(kStagingVariable, work.staging.string());
  // ccache's other modes serve stale objects for CUDA: they look at one of nvcc's passes only.
  env.set("CCACHE_DEPEND", "1");
  env.unset("NINJA_STATUS");
  spec.env = std::move(env);
  double begun = sys::now_seconds();
  if (work.world.on_progress)
    spec.on_wait = [&] { work.world.on_progress(progress_line(work, sys::now_seconds() - begun)); };
  auto result = work.world.processes.run(spec);
  if (work.world.on_progress) work.world.on_progress("");
  return result;
}

void show_commands(const Work& work) {
  if (!work.world.on_command) return;
  for (const Step& step : work.graph.steps)
    if (work.world.files.state(work.staging / (step.key + ".begun")).exists)
      for (const std::string& line : shown_commands(step, "obj")) work.world.on_command(line);
}

}  // namespace

Status run_ninja(Work& work, const std::vector<std::string>& targets) {
  TRY(JobLimit limit, jobs_for(work));
  TRY(sys::ProcessResult result, start_ninja(work, limit.jobs, targets));
  if (result.exit_code != 0 && limit.jobs > 1 && ran_out_of_memory(work)) {
    work.note("a compiler was ended for memory: the rest runs one at a time");
    for (const Step& step : work.graph.steps) CHECK_OK(work.world.files.remove(work.staging / (step.key + ".log")));
    work.explanation.jobs = 1;
    work.explanation.why_jobs = "a compiler was ended for memory";
    TRY(result, start_ninja(work, 1, targets));
  }
  show_commands(work);
  if (result.exit_code == 0) return {};
  if (auto error = failed_step(work)) return std::move(*error);
  Error error{Fault::Environment, "ninja cannot run the build", std::string(text::trim(result.out)),
              fmt::format("remove {} and build again", work.plan.build_dir.string())};
  if (result.out.find("No space left") != std::string::npos) error.fix = "free some space there, or use --build-dir";
  return error;
}

}  // namespace kiln::build
