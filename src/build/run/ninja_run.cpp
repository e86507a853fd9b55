// SPDX-License-Identifier: Apache-2.0
// How are steps started, by ninja with how many jobs or one after another, and what does a person
// see meanwhile?
#include "build/run/ninja_run.h"

#include <fmt/format.h>

#include "base/text.h"
#include "build/run/jobs.h"
#include "project/own_cache.h"
#include "sys/clock.h"
#include "sys/machine.h"

namespace kiln::build {

namespace {

Result<JobLimit> jobs_for(Work& work) {
  auto cache = project::own_cache_folder(work.world.files, work.world.env);
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

// "[2/6] compile add.cu for compute_90 0.8 s": from what steps leave in the staging folder and in
// obj/.
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

// What every compiler of the build is to see.
sys::Environment environment_of(const Work& work) {
  sys::Environment env = work.world.env;
  env.set(kStagingVariable, work.staging.string());
  // ccache's other modes serve stale objects for CUDA: they look at one of nvcc's passes only.
  env.set("CCACHE_DEPEND", "1");
  env.unset("NINJA_STATUS");
  return env;
}

// Tells of progress while any program runs.
class ToldProcesses final : public sys::Processes {
 public:
  explicit ToldProcesses(const Work& work) : work_(work), begun_(sys::now_seconds()) {}
  ~ToldProcesses() override {
    if (work_.world.on_progress) work_.world.on_progress("");
  }
  Result<sys::ProcessResult> run(const sys::ProcessSpec& asked) override {
    sys::ProcessSpec spec = asked;
    if (work_.world.on_progress)
      spec.on_wait = [this] {
        work_.world.on_progress(progress_line(work_, sys::now_seconds() - begun_));
      };
    return work_.world.processes.run(spec);
  }

 private:
  const Work& work_;
  double begun_;
};

Result<sys::ProcessResult> start_ninja(const Work& work, int jobs,
                                       const std::vector<std::string>& targets) {
  sys::ProcessSpec spec;
  spec.arguments = {work.plan.ninja.string(), fmt::format("-j{}", jobs)};
  spec.arguments.insert(spec.arguments.end(), targets.begin(), targets.end());
  spec.directory = work.plan.build_dir;
  spec.env = environment_of(work);
  return ToldProcesses(work).run(spec);
}

void show_commands(const Work& work) {
  if (!work.world.on_command) return;
  for (const Step& step : work.graph.steps)
    if (work.world.files.state(work.staging / (step.key + ".begun")).exists)
      for (const std::string& line : shown_commands(step, "obj")) work.world.on_command(line);
}

}  // namespace

Status run_ninja(Work& work, const std::vector<std::string>& targets) {
  CHECK_OK(write_for_ninja(work));
  TRY(JobLimit limit, jobs_for(work));
  TRY(sys::ProcessResult result, start_ninja(work, limit.jobs, targets));
  if (result.exit_code != 0 && limit.jobs > 1 && ran_out_of_memory(work)) {
    work.note("a compiler ran out of memory: the rest runs one at a time");
    for (const Step& step : work.graph.steps)
      CHECK_OK(work.world.files.remove(work.staging / (step.key + ".log")));
    work.explanation.jobs = 1;
    work.explanation.why_jobs = "a compiler ran out of memory";
    CHECK_OK(write_for_ninja(work));  // what has been done since is not stale
    TRY(result, start_ninja(work, 1, targets));
  }
  show_commands(work);
  if (result.exit_code == 0) return {};
  if (auto error = failed_step(work)) return std::move(*error);
  Error error{Fault::Environment, "ninja cannot run the build", std::string(text::trim(result.out)),
              fmt::format("remove {} and build again", work.plan.build_dir.string())};
  if (result.out.find("No space left") != std::string::npos)
    error.fix = "free some space there, or use --build-dir";
  return error;
}

Status run_in_turn(Work& work, const std::vector<const Step*>& steps) {
  TRY(JobLimit limit, jobs_for(work));
  work.explanation.jobs = 1;
  work.explanation.why_jobs = "each step needs the previous one";
  const sys::Environment env = environment_of(work);
  // As a step that ninja starts sees it.
  TRY(fs::path build_dir, work.world.files.real_path(work.plan.build_dir));
  ToldProcesses processes(work);
  const StepWorld world{work.world.files, processes, env, build_dir, work.staging};
  for (const Step* step : steps) {
    StepReport report;
    TRY(int code, run_step(*step, world, report));
    if (code == 0) continue;
    show_commands(work);
    if (auto error = failed_step(work)) return std::move(*error);
    return Error{Fault::Work, fmt::format("cannot {}", step->what),
                 fmt::format("exit code {}", code), "kiln build -v prints the command lines"};
  }
  show_commands(work);
  return {};
}

}  // namespace kiln::build
