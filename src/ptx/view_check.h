// SPDX-License-Identifier: Apache-2.0
// Which PTX is the index check of a kiln::View (runtime/include/kiln/view.h)? A scope that computes
// what nothing reads:
//
//   { .reg .pred kiln_bounds_1; .reg .b64 kiln_base;
//     setp.ge.u64 kiln_bounds_1, INDEX, SIZE; mov.b64 kiln_base, DATA; }
//
// The number is the dimension. Assemblers drop it as dead code, so that it costs nothing on a GPU;
// what strips comments (fatbinary) or warns of pragmas (ptxas) keeps it. It is read as one
// instruction, `kiln.bounds`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/module.h"

namespace kiln::ptx {

// Where a scope begins in its Body.
struct ScopeStart {
  size_t instructions = 0, registers = 0, variables = 0, labels = 0;
};

bool is_view_check(std::string_view register_name);

// At the end of a scope that declares such a register. `caller`: the line that called
// View::operator(), file 0 when unknown. A scope that holds anything else stays as it is: code like
// any other.
void fold_view_checks(const ScopeStart& start, const SourceLine& caller, Body* body);

// `kiln.bounds` as the scope that is read as such.
std::string view_check_text(std::string_view index, std::string_view size, std::string_view data,
                            uint64_t dimension);

}  // namespace kiln::ptx
