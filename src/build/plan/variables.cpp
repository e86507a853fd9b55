// SPDX-License-Identifier: Apache-2.0
// Which environment do compilers, assembler and linker get, and which of it is in a key?
#include "build/plan/variables.h"

namespace kiln::build {

namespace {

constexpr Variable kVariables[] = {
#define VARIABLE(name, rule, reader, reason) \
  {#name, VariableRule::rule, VariableReader::reader, reason},
#include "build/plan/variables.def"
#undef VARIABLE
};

}  // namespace

std::span<const Variable> tool_variables() { return kVariables; }

VariableValues values_of(const sys::Environment& env, VariableRule rule) {
  VariableValues values;
  for (const Variable& variable : kVariables)
    if (variable.rule == rule)
      if (auto value = env.get(variable.name))
        values.emplace_back(variable.name, std::move(*value));
  return values;
}

sys::Environment tool_environment(const sys::Environment& env) {
  sys::Environment out = env;
  for (const Variable& variable : kVariables)
    if (variable.rule == VariableRule::Clear || !env.get(variable.name)) out.unset(variable.name);
  return out;
}

std::string why_nvrtc_environment(const sys::Environment& env) {
  for (const Variable& variable : kVariables) {
    const bool read =
        variable.reader == VariableReader::Toolkit || variable.reader == VariableReader::Headers;
    if (read && env.get(variable.name)) return std::string(variable.name) + " is set";
  }
  return "";
}

}  // namespace kiln::build
