// SPDX-License-Identifier: Apache-2.0
// How many blocks per multiprocessor did an author ask for? The second number of __launch_bounds__:
// a cubin keeps the first alone, its PTX has both.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kiln::inspect {

// By mangled name, of the kernels that say it. Lines may end with a NUL, as in a cubin's
// .nv_debug_ptx_txt.
std::map<std::string, uint32_t, std::less<>> min_blocks_of(std::string_view ptx);

}  // namespace kiln::inspect
