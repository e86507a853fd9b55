// SPDX-License-Identifier: Apache-2.0
// In which ways is a good text of PTX broken?
#include "grammar_breaks.h"

#include <fmt/format.h>

namespace kiln::fuzz {
namespace {

std::string repeated(std::string_view piece, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += piece;
  return out;
}

constexpr std::string_view kOpening[] = {"{",
                                         "[%base,",
                                         "(",
                                         "{ L: ",
                                         "call (r0), f0, (",
                                         "ld.u32 %b32_0, [",
                                         "[%base, {",
                                         "-",
                                         ".global .b32 x = {",
                                         "{ .reg .b32 x; "};
constexpr std::string_view kTokens[] = {
    "{",   "}",       "[",      "]",        "(",     ")",        ";",           ",",  ":",
    "@",   "|",       "!",      "+",        "-",     "_",        "\"",          "/*", "//",
    "%",   ".reg",    ".param", ".entry",   ".func", "L:",       "bra",         "0x", "1.5e",
    ".v4", "WARP_SZ", "\xff",   ".align 3", "<99>",  "generic(", ".version 1.0"};

// Where a token starts: at a blank or behind a new line, from a place that the bytes choose.
size_t place(Choices& choices, const std::string& text) {
  if (text.empty()) return 0;
  const size_t from = choices.bits() % text.size();
  const size_t found = text.find_first_of(" \n", from);
  return found == text.npos ? text.size() : found + 1;
}

std::string huge(Choices& choices, size_t count) {
  switch (choices.below(8)) {
    case 1:
      return "mov.b64 {" + repeated("%b32_0,", count) + "%b32_1}, %b64_0;\n";
    case 2:
      return "mov.u32 %b32_0, 0x" + repeated("f", count) + ";\n";
    case 3:
      return "mov.f64 %f64_0, 1." + repeated("0", count) + "e5;\n";
    case 4:
      return "add" + repeated(".u32", count) + " %b32_0, %b32_1, 1;\n";
    case 5:
      return "ld.global.b32 %b32_0, [%base" + repeated("+4", count) + "];\n";
    case 6:
      return repeated("x", count) + ": .branchtargets " + repeated("AHEAD, ", count) + "AHEAD;\n";
    case 7:
      return fmt::format(".local .b8 big[{}];\n.reg .b64 %many<{}>;\n", choices.bits(),
                         choices.bits() % 2000000);
    default:
      return "bar.sync " + repeated("0, ", count) + "0;\n";
  }
}

}  // namespace

void break_ptx(Choices& choices, const Knobs& knobs, std::string& text) {
  for (uint32_t i = choices.below(3) + 1; i > 0; --i) {
    const size_t at = place(choices, text);
    switch (choices.below(5)) {
      case 1:
        text.insert(at, repeated(choices.of(kOpening), 1 + choices.below(knobs.deepest)));
        break;
      case 2:
        text.insert(at, huge(choices, 1 + choices.below(20000)));
        break;
      case 3:
        text.erase(at, 1 + choices.below(40));
        break;
      case 4:
        text.resize(at);
        break;
      default:
        text.insert(at, std::string(choices.of(kTokens)) + " ");
    }
  }
}

}  // namespace kiln::fuzz
