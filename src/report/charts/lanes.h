// SPDX-License-Identifier: Apache-2.0
// How does one access of a warp look? Lanes above, sectors or banks below, a line from each lane to
// what it touches.
#pragma once

#include <string>

#include "results/lane_access.h"

namespace kiln::report {

// "line 7: load of 4 bytes per lane, 32 lanes, 4 sectors, 128 of 128 bytes used"
std::string lanes_text(const results::LaneAccess& access);
// A whole SVG document with its own background: notebooks and pages show it in either theme.
std::string lanes_picture(const results::LaneAccess& access);

}  // namespace kiln::report
