// SPDX-License-Identifier: Apache-2.0
// How old a system can a library run on? The newest versions of glibc and libstdc++ that it needs,
// and the wheel tag they allow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "binary/symbols.h"
#include "results/inspect/symbols.h"

namespace kiln::inspect {

using results::SystemFloor;

SystemFloor system_floor(const std::vector<binary::NeededVersion>& versions,
                         const std::vector<std::string_view>& needed, std::string_view machine);

// -1, 0 or 1: versions of numbers and dots.
int compare_versions(std::string_view a, std::string_view b);

}  // namespace kiln::inspect
