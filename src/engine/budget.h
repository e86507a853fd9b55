// SPDX-License-Identifier: Apache-2.0
// How much memory may the registers and the local memory of running kernels take? Half of the machine's, or
// KILN_ENGINE_MEMORY_MB: what asks for more is refused, for else the system would end the whole process.
#pragma once

#include <cstdint>

namespace kiln::engine {

// False: the budget does not allow it, and nothing was reserved.
bool reserve_memory(uint64_t bytes);
void release_memory(uint64_t bytes);
uint64_t memory_budget();

}  // namespace kiln::engine
