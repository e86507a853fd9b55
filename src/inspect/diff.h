// SPDX-License-Identifier: Apache-2.0
// How are the kernels of two files matched and compared? Resources, instruction mix and SASS.
#pragma once

#include <string>

#include "inspect/analysis.h"
#include "inspect/code.h"
#include "results/diff.h"

namespace kiln::inspect {

// Kernels of the architectures that both files have are matched by architecture and name; one that
// only one file has under that name is matched with the only other one whose name differs in
// parameters or anonymous namespace alone.
results::FileDiff compare_files(const Analysis& before, const Analysis& after,
                                const std::string& filter);

// Adds the blocks: instructions compared by text without addresses, labels and register reuse.
void add_blocks(results::FileDiff& diff, const CodeList& before, const CodeList& after);

}  // namespace kiln::inspect
