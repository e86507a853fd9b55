// SPDX-License-Identifier: Apache-2.0
// Which threads of this process help to run grids?
#pragma once

#include "engine/machine/pool.h"

namespace kiln::engine {

// Created when first needed, and again in the child of a fork, which has no threads of its parent.
Pool* process_pool();

}  // namespace kiln::engine
