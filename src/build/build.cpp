// SPDX-License-Identifier: Apache-2.0
// How does a request become a library or a program on the disk?
#include "build/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/hash.h"
#include "base/text.h"
#include "build/depfile.h"
#include "build/diagnose.h"
#include "build/graph.h"
#include "build/jobs.h"
#include "build/ninja_file.h"
#include "build/plan.h"
#include "build/publish.h"
#include "build/state.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/machine.h"

namespace kiln::build {

namespace {

constexpr uint64_t kFullDiskBytes = 64 * 1024;
constexpr std::string_view kStagingFolder = "staging";

struct Work {
  const World& world;
  Plan plan;
  Graph graph;
  std::string ninja_text;
  std::string key;
  fs::path staging;
  int64_t started_ns = 0;

  fs::path in_build_dir(std::string_view name) const { return plan.build_dir / name; }
};

void write_if_changed(const Work& work, std::string_view name, const std::string& content, Status& status) {
  if (!status) return;
  auto former = work.world.files.read(work.in_build_dir(name));
  if (former && *former == content) return;
  status = work.world.files.write(work.in_build_dir(name), content, sys::Durable::No);
}

Outcome outcome_of(const Work& work) {
  Outcome outcome;
  outcome.program = work.plan.program;
  outcome.name = work.plan.name;
  outcome.arch = work.plan.arch;
  outcome.build_dir = work.plan.build_dir;
  if (!work.plan.program) outcome.link = link_path(work.plan);
  return outcome;
}

// The result of the last build if every file that took part is as it was.
std::optional<Outcome> unchanged(const Work& work) {
  auto content = work.world.files.read(work.in_build_dir(kStateFile));
  if (!content) return std::nullopt;
  auto state = parse_state(*content);
  if (!state || state->key != work.key || first_change(work.world.files, *state)) return std::nullopt;
  Outcome outcome = outcome_of(work);
  outcome.file = state->result;
  if (!outcome.link.empty() && work.world.files.state(outcome.link) != work.world.files.state(outcome.file))
    return std::nullopt;
  return outcome;
}

// A run that was killed left its staging folder; a command that outlived it can publish nothing once it is gone.
Status prepare(Work& work) {
  sys::Files& files = work.world.files;
  CHECK_OK(files.make_directories(work.in_build_dir("obj")));
  CHECK_OK(files.remove(work.in_build_dir(kStagingFolder)));
  work.staging = work.in_build_dir(kStagingFolder) / fmt::format("{:x}", sys::wall_ns());
  CHECK_OK(files.make_directories(work.staging));
  // The disk's own clock: the kernel stamps files with one that lags by a tick, a server with its own.
  work.started_ns = files.state(work.staging).mtime_ns;
  Status status;
  write_if_changed(work, kCircumstancesFile, work.plan.circumstances, status);
  write_if_changed(work, "build.ninja", work.ninja_text, status);
  return status;
}

Error failure(const Work& work, const sys::ProcessResult& ninja) {
  // What succeeded was moved away: a log that is still there belongs to what failed.
  for (const Edge& edge : work.graph.edges) {
    fs::path path = work.staging / (edge.key + ".log");
    if (!work.world.files.state(path).is_file()) continue;
    auto log = work.world.files.read(path);
    if (!log) return log.error();
    // A full disk has no room for the compiler's complaint either.
    if (work.world.files.free_bytes(work.plan.build_dir) < kFullDiskBytes)
      return sys::disk_error(fmt::format("cannot {} in", edge.what), work.plan.build_dir, ENOSPC);
    std::string archs;
    if (edge.source && work.plan.nvcc && names_unknown_arch(*log))
      archs = project::supported_archs(*work.plan.nvcc, work.world.processes);
    return diagnose(edge, *log, archs);
  }
  Error error{Fault::Environment, "ninja cannot run the build", std::string(text::trim(ninja.out)),
              fmt::format("remove {} and build again", work.plan.build_dir.string())};
  if (ninja.out.find("No space left") != std::string::npos) error.fix = "free some space there, or use --build-dir";
  return error;
}

bool ran_now(const Work& work, const Edge& edge) {
  return work.world.files.state(work.in_build_dir("obj/" + edge.key + ".log")).mtime_ns >= work.started_ns;
}

void show_commands(const Work& work) {
  if (!work.world.on_command) return;
  for (const Edge& edge : work.graph.edges)
    if (ran_now(work, edge) || work.world.files.state(work.staging / (edge.key + ".log")).is_file())
      work.world.on_command(shown_command(edge, "obj"));
}

Status run_ninja(const Work& work) {
  TRY(int jobs, job_limit(work.world.env.get("MAX_JOBS"), sys::usable_cores(work.world.files),
                          sys::available_memory_bytes(work.world.files)));
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
  std::string what = work.graph.edges.front().what;
  if (work.plan.sources.size() > 1) what = fmt::format("compile {} files", work.plan.sources.size());
  if (work.world.on_progress)
    spec.on_wait = [&] { work.world.on_progress(fmt::format("{} {:.1f} s", what, sys::now_seconds() - begun)); };
  auto result = work.world.processes.run(spec);
  if (work.world.on_progress) work.world.on_progress("");
  if (!result) return std::move(result.error());
  show_commands(work);
  if (result->exit_code != 0) return failure(work, *result);
  return {};
}

std::vector<Step> steps_taken(const Work& work) {
  std::vector<Step> steps;
  auto log = work.world.files.read(work.in_build_dir(".ninja_log"));
  auto seconds = parse_ninja_log(log ? *log : "");
  for (const Edge& edge : work.graph.edges)
    if (ran_now(work, edge)) steps.push_back({edge.what, seconds[edge.output]});
  return steps;
}

void show_warnings(const Work& work) {
  if (!work.world.on_note) return;
  for (const Edge& edge : work.graph.edges) {
    if (!ran_now(work, edge)) continue;
    auto log = work.world.files.read(work.in_build_dir("obj/" + edge.key + ".log"));
    if (!log || text::trim(*log).empty()) continue;
    std::string text(text::trim(*log));
    if (edge.source) text = text::replace_all(text, edge.source->file.string(), edge.source->shown);
    work.world.on_note(text);
  }
}

// A file that changed while the compiler may have been reading it: its object is dropped, so that the next build makes
// it anew.
Status remember(const Work& work, const fs::path& result) {
  sys::Files& files = work.world.files;
  BuildState state{work.key, result, {}};
  auto see = [&](const fs::path& path) { state.files.push_back({path, files.state(path)}); };
  bool changed_meanwhile = false;
  for (const Edge& edge : work.graph.edges) {
    if (!edge.writes_depfile) continue;
    TRY(std::string depfile, files.read(work.in_build_dir("obj/" + edge.key + ".d")));
    for (const std::string& name : parse_depfile(depfile)) {
      see(name.starts_with('/') ? fs::path(name) : work.in_build_dir(name));
      const sys::FileState& seen = state.files.back().state;
      if (seen.exists && seen.mtime_ns < work.started_ns) continue;
      changed_meanwhile = true;
      CHECK_OK(files.remove(work.in_build_dir(edge.output)));
    }
  }
  see(work.plan.home.runtime_archive());
  see(result);
  std::sort(state.files.begin(), state.files.end(),
            [](const SeenFile& a, const SeenFile& b) { return a.path < b.path; });
  state.files.erase(std::unique(state.files.begin(), state.files.end(),
                                [](const SeenFile& a, const SeenFile& b) { return a.path == b.path; }),
                    state.files.end());
  if (changed_meanwhile) return files.remove(work.in_build_dir(kStateFile));
  return files.write(work.in_build_dir(kStateFile), write_state(state), sys::Durable::No);
}

Result<Outcome> rebuild(Work& work) {
  sys::InterruptScope no_half_files;
  CHECK_OK(work.world.files.make_directories(work.plan.build_dir));
  TRY(auto lock, sys::FileLock::acquire(work.in_build_dir("lock"), [&] {
        if (work.world.on_note)
          work.world.on_note(fmt::format("waiting for another build in {}", work.plan.build_dir.string()));
      }));
  // Another process may have built the same while this one waited.
  if (auto outcome = unchanged(work)) return std::move(*outcome);
  CHECK_OK(prepare(work));
  Status ran = run_ninja(work);
  Outcome outcome = outcome_of(work);
  if (ran) {
    outcome.steps = steps_taken(work);
    show_warnings(work);
    auto published = publish(work.world.files, work.plan, work.in_build_dir(work.graph.result().output));
    if (!published) return std::move(published.error());
    outcome.file = *published;
    CHECK_OK(remember(work, outcome.file));
  }
  CHECK_OK(work.world.files.remove(work.staging.parent_path()));
  if (!ran) return std::move(ran.error());
  if (sys::pending_interrupt()) return sys::interrupted_error();
  outcome.rebuilt = !outcome.steps.empty();
  return outcome;
}

}  // namespace

Result<Outcome> build(const Request& request, const World& world) {
  double begun = sys::now_seconds();
  Work work{world, {}, {}, {}, {}, {}};
  TRY(work.plan, make_plan(request, world));
  work.graph = make_graph(work.plan);
  work.ninja_text = ninja_file(work.graph);
  work.key = Hasher().add_field(work.ninja_text).add_field(work.plan.circumstances).hex();
  Outcome outcome;
  if (auto former = unchanged(work)) {
    outcome = std::move(*former);
  } else {
    TRY(outcome, rebuild(work));
  }
  if (!work.plan.output.empty()) CHECK_OK(world.files.copy(outcome.file, work.plan.output));
  outcome.seconds = sys::now_seconds() - begun;
  return outcome;
}

}  // namespace kiln::build
