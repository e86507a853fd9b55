// SPDX-License-Identifier: Apache-2.0
// How does a request become a library or a program on the disk?
#pragma once

#include "build/plan/request.h"
#include "build/run/outcome.h"

namespace kiln::build {

// Returns at once if nothing changed. Two at a time on one build folder take turns; one that was
// killed leaves nothing that hinders the next.
Result<Outcome> build(const Request& request, const World& world);

}  // namespace kiln::build
