// SPDX-License-Identifier: Apache-2.0
// What do the environment variables say? A copy taken once, so that code that reads them can be
// tested with any.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::sys {

class Environment {
 public:
  Environment() = default;
  Environment(std::initializer_list<std::pair<const std::string, std::string>> variables)
      : variables_(variables) {}
  static Environment of_this_process();

  // Nothing also when the variable is set to "".
  std::optional<std::string> get(std::string_view name) const;
  // Is it set to ""? For the variables to which that says something.
  bool is_empty(std::string_view name) const;
  void set(std::string name, std::string value) { variables_[std::move(name)] = std::move(value); }
  void unset(const std::string& name) { variables_.erase(name); }
  // "NAME=value", as execve takes them.
  std::vector<std::string> entries() const;

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace kiln::sys
