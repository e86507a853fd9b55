// SPDX-License-Identifier: Apache-2.0
// Which earlier results still hold? Those of the same sources, op, arguments, flags, compiler and
// GPU: their journal is in a folder of its own for all that.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "build/plan/request.h"
#include "cli/command.h"
#include "cli/commands/tune/tune_plan.h"

namespace kiln::cli {

struct TunePlace {
  std::filesystem::path target;  // absolute: a project's folder or a file
  bool is_project = false;
  std::filesystem::path folder;  // of everything that tuning keeps for this target
  std::filesystem::path tuned;   // the file of chosen configurations, next to the source
};

// `kiln tune` and `kiln tune NAME` in a project: what its kiln.toml declares goes to `target` and
// `name`. Both stay as they are where no project is meant.
Status take_declared(std::string& target, std::string& name, const Context& context);

Result<TunePlace> tune_place(const std::string& target, const Context& context);

// A hash of every source and header that is the author's own: of a project all in its folder, of a
// lone file those that it includes by quotes.
std::string hash_of_all_sources(const TunePlace& place);
std::vector<std::filesystem::path> all_sources(const TunePlace& place);

// What a journal is about. `device` is the lane's; `request` has the architectures.
Result<Json> tune_subject(const TunePlan& plan, const TunePlace& place,
                          const build::Request& request, const Json& device, uint64_t seed,
                          const Context& context);

// A short name for the subject's journal: "forward-1f2e3d4c5b6a".
std::string subject_name(const TunePlan& plan, const Json& subject);

}  // namespace kiln::cli
