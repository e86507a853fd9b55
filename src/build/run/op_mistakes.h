// SPDX-License-Identifier: Apache-2.0
// What is wrong with a KILN_OP, in the words of its author?
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kiln::build {

struct OpMistake {
  std::string why, fix;
};

// `message` is a compiler's about one of kiln's macros or types; `trail`: the lines around it,
// which name the types; `written`: the user's line with KILN_OP, "" where the macro is another;
// `source`: the file that has it.
OpMistake op_mistake(std::string_view message, std::span<const std::string_view> trail,
                     std::string_view written, std::span<const std::string> source);

// Can it only be there because something else is wrong, too?
bool is_consequence(std::string_view message);

}  // namespace kiln::build
