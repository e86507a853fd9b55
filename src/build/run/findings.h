// SPDX-License-Identifier: Apache-2.0
// What did ptxas find that makes a kernel slow? Spilled registers, serialised wgmma; with names
// that people can read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::build {

// Before each finding in the log of a cache entry, so that a hit tells it again.
inline constexpr std::string_view kFindingMark =
    "\x01"
    "finding ";

// "attention<64>(float*): registers spill: 8 bytes stored, 16 bytes loaded"
std::vector<std::string> ptxas_findings(std::string_view log);
// The log without the lines that findings were read from, and without ptxas' routine talk.
std::string without_findings(std::string_view log);

}  // namespace kiln::build
