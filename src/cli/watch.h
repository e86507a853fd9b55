// SPDX-License-Identifier: Apache-2.0
// How does --watch run a command again whenever a file it was built from is saved?
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "build/plan/request.h"
#include "sys/env.h"

namespace kiln::cli {

// The file in which a command that is watched names what it was built from.
inline constexpr const char* kWatchVariable = "KILN_WATCH_LIST";

// `words` is the whole command line without the program's name. Ends with an interrupt.
Result<int> watch(const std::vector<std::string>& words, const sys::Environment& env);

// Of a build that ended well or not.
void tell_watcher(const sys::Environment& env, const build::Request& request,
                  const std::filesystem::path& build_dir);

}  // namespace kiln::cli
