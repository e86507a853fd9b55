// SPDX-License-Identifier: Apache-2.0
// Which macros may the body of a device function use, so that nothing behind it depends on them?
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::build {

class Macros {
 public:
  void define(std::string_view name, std::string_view replacement);
  // Those of a text's #define lines. The names that the text declares as something else are
  // remembered too: none of them is a macro of another header.
  void add(std::string_view text);

  bool contains(std::string_view name) const;

  // What in a macro's replacement, or in that of a macro that it uses, has an effect beyond the
  // place where it is used: "__COUNTER__", a pragma, a brace of a pair. Empty: nothing.
  std::string reach_of(std::string_view name) const;

  // Could the word be a macro of a header that was not looked at, or use one? Such macros have no
  // small letters. Limits and constants of the C library are known to be values.
  bool is_unclear(std::string_view word) const;

  // Every word that a condition on `name` depends on: itself, and what its replacement names.
  std::set<std::string> words_behind(std::string_view name) const;

 private:
  std::string reach_of(std::string_view name, std::set<std::string>& seen) const;
  bool is_unclear(std::string_view word, std::set<std::string>& seen) const;

  std::map<std::string, std::vector<std::string>, std::less<>> replacements_;
  std::set<std::string, std::less<>> declared_;
};

// Why tokens have an effect beyond the place where they are: empty if they have none.
std::string why_reaches_out(std::string_view text);

}  // namespace kiln::build
