// SPDX-License-Identifier: Apache-2.0
// How does a request become a library or a program on the disk?
#include "build/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "build/depfile.h"
#include "build/jobs.h"
#include "build/publish.h"
#include "build/state.h"
#include "build/work.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/machine.h"

namespace kiln::build {

namespace {

Outcome outcome_of(const Work& work) {
  Outcome outcome;
  outcome.program = work.plan.program;
  outcome.name = work.plan.name;
  outcome.arch = work.plan.arch;
  outcome.build_dir = work.plan.build_dir;
  if (!work.plan.program) outcome.link = link_path(work.plan);
  return outcome;
}

// The result of the last build if every file that took part is as it was; else what is not goes to `trigger`.
std::optional<Outcome> unchanged(const Work& work, std::string& trigger) {
  trigger = "there was no finished build in this folder";
  auto content = work.world.files.read(work.in_build_dir(kStateFile));
  auto state = content ? parse_state(*content) : std::nullopt;
  if (!state) return std::nullopt;
  trigger = "flags, architectures, compilers or their environment changed";
  if (state->key != work.key) return std::nullopt;
  if (auto changed = first_change(work.world.files, *state)) {
    trigger = fmt::format("{} {}", changed->string(),
                          !work.world.files.state(*changed).exists                           ? "is gone"
                          : std::count(state->absent.begin(), state->absent.end(), *changed) ? "appeared"
                                                                                             : "changed");
    return std::nullopt;
  }
  Outcome outcome = outcome_of(work);
  outcome.file = state->result;
  outcome.explanation = {"nothing", "none", "every file that took part is as it was", 0, 0, "", 0};
  if (!outcome.link.empty() && work.world.files.state(outcome.link) != work.world.files.state(outcome.file))
    return std::nullopt;
  return outcome;
}

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

Result<sys::ProcessResult> start_ninja(const Work& work, int jobs) {
  sys::ProcessSpec spec;
  spec.arguments = {work.plan.ninja.string(), fmt::format("-j{}", jobs)};
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

Status run_ninja(Work& work) {
  TRY(JobLimit limit, jobs_for(work));
  TRY(sys::ProcessResult result, start_ninja(work, limit.jobs));
  if (result.exit_code != 0 && limit.jobs > 1 && ran_out_of_memory(work)) {
    work.note("a compiler was ended for memory: the rest runs one at a time");
    for (const Step& step : work.graph.steps) CHECK_OK(work.world.files.remove(work.staging / (step.key + ".log")));
    work.explanation.jobs = 1;
    work.explanation.why_jobs = "a compiler was ended for memory";
    TRY(result, start_ninja(work, 1));
  }
  show_commands(work);
  if (result.exit_code == 0) return {};
  if (auto error = failed_step(work)) return std::move(*error);
  Error error{Fault::Environment, "ninja cannot run the build", std::string(text::trim(result.out)),
              fmt::format("remove {} and build again", work.plan.build_dir.string())};
  if (result.out.find("No space left") != std::string::npos) error.fix = "free some space there, or use --build-dir";
  return error;
}

// A file that changed while the compiler may have been reading it: what the step made is dropped, so that the next
// build makes it anew.
Status remember(const Work& work, const fs::path& result) {
  sys::Files& files = work.world.files;
  BuildState state{work.key, result, {}, {}};
  std::set<std::string> seen, absent;
  auto see = [&](const fs::path& path) {
    if (seen.insert(path.string()).second) state.files.push_back({path, files.state(path)});
    return files.state(path);
  };
  bool changed_meanwhile = false;
  std::string own_folder = work.plan.build_dir.string() + "/";
  for (const Step& step : work.graph.steps) {
    if (!step.writes_depfile) continue;
    TRY(std::string depfile, files.read(work.in_obj(step.key + ".d")));
    for (const std::string& name : parse_depfile(depfile)) {
      fs::path path = name.starts_with('/') ? fs::path(name) : work.in_build_dir(name);
      if (path.string().starts_with(own_folder)) continue;
      sys::FileState now = see(path);
      if (now.exists && now.ctime_ns < work.started_ns) continue;
      changed_meanwhile = true;
      for (const std::string& output : step.outputs) CHECK_OK(files.remove(work.in_obj(output)));
    }
    auto list = files.read(work.in_obj(step.key + ".absent"));
    if (list)
      for (std::string_view line : text::lines(*list)) absent.emplace(line);
  }
  state.absent.assign(absent.begin(), absent.end());
  see(work.plan.home.runtime_archive());
  see(result);
  if (!work.facts.host_compiler_proper.empty()) see(work.facts.host_compiler_proper);
  for (const fs::path& tool : work.plan.host_tools) see(tool);
  if (changed_meanwhile) return files.remove(work.in_build_dir(kStateFile));
  return files.write(work.in_build_dir(kStateFile), write_state(state), sys::Durable::No);
}

Result<Outcome> rebuild(Work& work) {
  sys::InterruptScope no_half_files;
  CHECK_OK(work.world.files.make_directories(work.plan.build_dir));
  TRY(auto lock, sys::FileLock::acquire(work.in_build_dir("lock"), [&] {
        work.note(fmt::format("waiting for another build in {}", work.plan.build_dir.string()));
      }));
  // Another process may have built the same while this one waited.
  if (auto outcome = unchanged(work, work.explanation.trigger)) return std::move(*outcome);
  work.facts = learn_facts(work.plan, work.world);
  work.graph = make_graph(work.plan, work.facts);
  CHECK_OK(prepare(work));
  work.explanation.lane = "full";
  work.explanation.why_lane = work.explanation.trigger;
  Status ran = run_ninja(work);
  Outcome outcome = outcome_of(work);
  outcome.steps = reports_since(work);
  tell_and_count(work, outcome.steps);
  if (ran) {
    auto published = publish(work.world.files, work.plan, work.in_obj(work.graph.result().outputs[0]));
    if (!published) return std::move(published.error());
    outcome.file = *published;
  }
  // Before the record is written: a name less of the library changes the time of its inode.
  CHECK_OK(work.world.files.remove(work.staging.parent_path()));
  if (ran) CHECK_OK(remember(work, outcome.file));
  if (!ran) return std::move(ran.error());
  if (sys::pending_interrupt()) return sys::interrupted_error();
  outcome.rebuilt = !outcome.steps.empty();
  outcome.explanation = work.explanation;
  return outcome;
}

}  // namespace

Result<Outcome> build(const Request& request, const World& world) {
  double begun = sys::now_seconds();
  Work work{world, {}, {}, {}, {}, {}, 0, {}};
  TRY(work.plan, make_plan(request, world));
  work.key = Hasher().add_field(shown_intent(work.plan)).add_field(work.plan.circumstances).hex();
  Outcome outcome;
  if (auto former = unchanged(work, work.explanation.trigger)) {
    outcome = std::move(*former);
  } else {
    TRY(outcome, rebuild(work));
  }
  if (!work.plan.output.empty()) CHECK_OK(world.files.copy(outcome.file, work.plan.output));
  outcome.seconds = sys::now_seconds() - begun;
  return outcome;
}

}  // namespace kiln::build
