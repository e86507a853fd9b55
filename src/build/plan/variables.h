// SPDX-License-Identifier: Apache-2.0
// Which environment do compilers, assembler and linker get, and which of it is in a key? One table
// answers both: variables.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/env.h"

namespace kiln::build {

enum class VariableRule { Key, Link, Clear, Pass };
enum class VariableReader { Toolkit, Headers, Host, Locale };

struct Variable {
  const char* name;
  VariableRule rule;
  VariableReader reader;
  std::string_view reason;
};

std::span<const Variable> tool_variables();

// Name and value of what is set and has this rule, in the order of the table. Set but empty counts
// as unset.
using VariableValues = std::vector<std::pair<std::string, std::string>>;
VariableValues values_of(const sys::Environment& env, VariableRule rule);

// What the tools get: without what is cleared and without the table's variables that are set but
// empty.
sys::Environment tool_environment(const sys::Environment& env);

// A variable that may make NVRTC compile something else than nvcc does, which it does not tell;
// empty: none is set.
std::string why_nvrtc_environment(const sys::Environment& env);

}  // namespace kiln::build
