// SPDX-License-Identifier: Apache-2.0
// What do the environment variables say?
#include "sys/env.h"

#include <unistd.h>

namespace kiln::sys {

Environment Environment::of_this_process() {
  Environment out;
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view text(*entry);
    size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    out.variables_.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

std::optional<std::string> Environment::get(std::string_view name) const {
  auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

bool Environment::is_empty(std::string_view name) const {
  auto found = variables_.find(name);
  return found != variables_.end() && found->second.empty();
}

std::vector<std::string> Environment::entries() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : variables_) out.push_back(name + "=" + value);
  return out;
}

}  // namespace kiln::sys
