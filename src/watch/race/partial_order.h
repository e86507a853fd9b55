// SPDX-License-Identifier: Apache-2.0
// Can a kernel order some of its threads and not others?
#pragma once

#include "engine/program/program.h"

namespace kiln::watch::race {

// By fences, acquire and release, mbarriers or named barriers, in itself or in what it calls. Where
// all have barriers of the block and of the warp alone, of many threads that do the same two stand
// for all: whoever comes is unordered with one of them. That does not hold for clusters either, of
// which a barrier has all blocks and an atomic may have the scope (Order).
bool orders_in_part(const engine::Program& program);

}  // namespace kiln::watch::race
