// SPDX-License-Identifier: Apache-2.0
// What is known about one build while it runs?
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "build/plan/graph.h"
#include "build/plan/plan.h"
#include "build/plan/request.h"
#include "build/run/outcome.h"
#include "build/run/run_step.h"
#include "build/run/state.h"

namespace kiln::build {

struct Work {
  const World& world;
  Plan plan;
  std::string key;  // of all that a person chose and of who the compilers are
  Facts facts;
  Graph graph;
  fs::path staging;
  int64_t started_ns = 0;  // by the disk's clock
  Explanation explanation;
  std::vector<StepReport> extra_reports;  // of what was done within this process
  // Of the edit lane: the last build's state, with the edited source as it is now.
  std::optional<BuildState> edited = std::nullopt;

  fs::path in_build_dir(std::string_view name) const { return plan.build_dir / name; }
  fs::path in_obj(std::string_view name) const { return plan.build_dir / "obj" / name; }
  StepWorld step_world() const {
    return {world.files, world.processes, world.env, plan.build_dir, staging};
  }
  void note(const std::string& text) const {
    if (world.on_note) world.on_note(text);
  }
};

// A staging folder of its own, and the files that steps need. A run that was killed left its
// folder; a command that outlived it can publish nothing once it is gone.
Status prepare(Work& work);

// What the step read when it last ran; nothing when it has no record that can be believed.
std::optional<Reads> reads_of(const Work& work, const Step& step);

// The keys of the steps that must run: by their records, something that they read is not as it was.
std::set<std::string> stale_steps(const Work& work);

// What ninja reads: the graph, which of its steps are stale, and each step.
Status write_for_ninja(const Work& work);

// After a build: what all steps together read. Nothing when no state of the disk is known that all
// of them saw. A step that read what changed since the build began loses its record: the plan was
// made before, and the clock of another disk may lag behind that of the build folder.
Result<std::optional<Reads>> reads_of_all(const Work& work);

// The reports of the steps that ran since the work began, by their beginnings.
std::vector<StepReport> reports_since(const Work& work);

// Compiler warnings, findings, notes about the cache; what the cache did is counted, memory is
// remembered.
void tell_and_count(const Work& work, const std::vector<StepReport>& reports);

// The error of the step whose log is left in the staging folder.
std::optional<Error> failed_step(const Work& work);
bool ran_out_of_memory(const Work& work);

}  // namespace kiln::build
