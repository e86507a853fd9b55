// SPDX-License-Identifier: Apache-2.0
// Which configuration does `kiln build --tuned` bake in?
#pragma once

#include "build/plan/request.h"
#include "cli/command.h"

namespace kiln::cli {

// What kiln tune found best for the architectures of the build, from tuned.json next to the source,
// into request.defines; a define that the request has already stays. `part` chooses among several
// by a part of their text.
Status take_tuned(build::Request& request, const std::string& part, const Context& context);

}  // namespace kiln::cli
