// SPDX-License-Identifier: Apache-2.0
// Which threads of this process help to run grids?
#pragma once

#include "engine/machine/pool.h"

namespace kiln::engine {

// Made when first asked for, and anew in the child of a fork, which has none of its parent's
// threads.
Pool* process_pool();

}  // namespace kiln::engine
