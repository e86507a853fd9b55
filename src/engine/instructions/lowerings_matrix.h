// SPDX-License-Identifier: Apache-2.0
// Which functions decode the matrix forms of instructions.def?
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

// matrix/matrix.cpp
bool matrix_multiply(Lowering&);
// matrix/matrix_quarter.cpp
bool quarter_multiply(Lowering&);
// matrix/matrix_rows.cpp
bool matrix_load(Lowering&);
bool matrix_store(Lowering&);
bool matrix_transpose(Lowering&);
// matrix/wmma.cpp
bool wmma_transfer(Lowering&);
bool wmma_multiply(Lowering&);
}  // namespace kiln::engine
