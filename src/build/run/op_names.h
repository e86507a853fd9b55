// SPDX-License-Identifier: Apache-2.0
// Is the name that KILN_OP is given a name that its function cannot have: one of C++ itself, or one
// that a header declares too?
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "build/run/op_mistakes.h"

namespace kiln::build {

// KILN_OP(my::add, "a"): "my::add"; "" where the line has no KILN_OP.
std::string registered_name(std::string_view line);

// How many functions of this name the source defines, or, where it defines none, declares.
int count_functions(std::span<const std::string> source, std::string_view name);

// KILN_OP(hypot, ...) next to CUDA's own hypot: `function` is what KILN_OP was given.
OpMistake name_of_a_header(const std::string& function);

// An op whose function is named by a word of C++ ("double", "main"): the compiler complains about
// the function's own line, and does not say so. `line` counts from 1.
struct ReservedName {
  int line = 0;
  OpMistake mistake;
};
std::optional<ReservedName> reserved_name(std::span<const std::string> source);

}  // namespace kiln::build
