// SPDX-License-Identifier: Apache-2.0
// How are steps started, by ninja with how many jobs or one after another, and what does a person
// see meanwhile?
#pragma once

#include <string>
#include <vector>

#include "build/run/work.h"

namespace kiln::build {

// Without targets: all. A compiler that was ended for memory is tried again, one at a time.
Status run_ninja(Work& work, const std::vector<std::string>& targets);

// Each of them, in this order and within this process: for an edit whose steps have nothing to run
// side by side, ninja, a shell and kiln's own start would cost 15 ms. To ninja they are not up to
// date afterwards; the cache has them.
Status run_in_turn(Work& work, const std::vector<const Step*>& steps);

}  // namespace kiln::build
