// SPDX-License-Identifier: Apache-2.0
// Which words and files do steps of every kind have in common?
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "build/plan/facts.h"
#include "build/plan/plan.h"
#include "build/plan/step.h"

namespace kiln::build {

inline std::string staged(std::string_view name) {
  return std::string(kStaging) + std::string(name);
}
inline std::string in_obj(std::string_view name) { return "obj/" + std::string(name); }

inline void add(Command& command, std::initializer_list<Word> more) {
  command.insert(command.end(), more);
}
inline void add(Command& command, const Command& more) {
  command.insert(command.end(), more.begin(), more.end());
}

bool is_clang(const fs::path& compiler);

// What steps of one plan share. `flags`: those that the step's commands have from the user.
Step new_step(const Plan& plan, const Facts& facts, StepKind kind, const FlagFacts& flags);
Step source_step(const Plan& plan, const Facts& facts, StepKind kind, const Source& source);

Command depfile_words(const std::string& target, const std::string& key);
// The assembler tells what .incbin and .include read; clang's does not.
Command assembler_depfile_words(Step& step);
// __FILE__ is the path within the project; a line table holds the canonical one.
Command path_map_words(const Plan& plan, std::string_view option);

// In the order in which the preprocessor of `command` looks: its own options, the environment's,
// the built-in ones.
std::vector<std::string> search_list(const Plan& plan, const std::vector<std::string>& built_in,
                                     const Command& command);

// One .cu by nvcc's own programs: the host's chain, one for each architecture, and what packs their
// code.
struct Graph;
void add_cuda_steps(Graph& graph, const Plan& plan, const Facts& facts, const Source& source,
                    const Recipe& recipe);

}  // namespace kiln::build
