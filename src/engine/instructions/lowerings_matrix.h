// SPDX-License-Identifier: Apache-2.0
// Which functions decode the matrix forms of instructions.def?
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

// lower_matrix.cpp
bool matrix_multiply(Lowering&);
// lower_matrix_quarter.cpp
bool quarter_multiply(Lowering&);
// lower_matrix_rows.cpp
bool matrix_load(Lowering&);
bool matrix_store(Lowering&);
bool matrix_transpose(Lowering&);
// lower_wmma.cpp
bool wmma_transfer(Lowering&);
bool wmma_multiply(Lowering&);
}  // namespace kiln::engine
