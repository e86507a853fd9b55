// SPDX-License-Identifier: Apache-2.0
// How are the parts of a module found and named?
#include "ptx/module.h"

namespace kiln::ptx {

bool Instruction::has(std::string_view modifier) const {
  for (auto m : modifiers) {
    if (m == modifier) return true;
  }
  return false;
}

std::string Instruction::text() const {
  std::string out(mnemonic);
  for (auto m : modifiers) out.append(".").append(m);
  return out;
}

const Function* Module::find(std::string_view name) const {
  auto alias = aliases.find(name);
  auto found = function_index.find(alias == aliases.end() ? name : alias->second);
  return found == function_index.end() ? nullptr : &functions[found->second];
}

std::string Module::file_name(uint32_t file) const {
  auto found = files.find(file);
  return found == files.end() ? "?" : std::string(found->second);
}

}  // namespace kiln::ptx
