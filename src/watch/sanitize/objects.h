// SPDX-License-Identifier: Apache-2.0
// Which tensor, variable or allocation does an address belong to, and at which index?
#pragma once

#include "engine/machine/events.h"
#include "results/findings.h"

namespace kiln::watch {

// `bytes`: of the access; elements of the index are as large. An address outside of all memory
// belongs to nothing: its object has no kind.
results::FindingObject global_object(const engine::MemoryMap& memory, uint64_t address,
                                     uint32_t bytes);
// `address` is one inside of the block's shared memory.
results::FindingObject shared_object(const engine::LaunchEvent& launch, uint64_t address,
                                     uint32_t bytes);
// "tensor 'x'", "shared variable 'tile'", "an allocation of 400 bytes"
std::string text_of(const results::FindingObject& object);
// The same with the index: "tensor 'x'[3]"
std::string indexed_text_of(const results::FindingObject& object);

// Nothing orders the use of an mbarrier behind its setup: found by what ran first, or as a race.
void describe_unordered_setup(results::Finding& finding, results::FindingPlace use,
                              results::FindingPlace setup);

}  // namespace kiln::watch
