// SPDX-License-Identifier: Apache-2.0
// Which functions decode the matrix and mbarrier forms of instructions.def?
#pragma once

#include "engine/lowering.h"

namespace kiln::engine {

// lower_matrix.cpp
bool matrix_multiply(Lowering&);
bool matrix_load(Lowering&);
bool matrix_store(Lowering&);
// lower_mbarrier.cpp
bool mbarrier_init(Lowering&);
bool mbarrier_arrive(Lowering&);
bool mbarrier_expect(Lowering&);
bool mbarrier_wait(Lowering&);

}  // namespace kiln::engine
