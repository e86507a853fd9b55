// SPDX-License-Identifier: Apache-2.0
// One pass that counts brackets: a template's arguments contain spaces, commas and parentheses of
// their own, so only what stands outside of all brackets separates the parts of a name.
#include "report/kernels/names.h"

namespace kiln::report {
namespace {

constexpr std::string_view kUnnamed = "(anonymous namespace)", kOperator = "operator";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// "operator<<", "operator()" and the like: brackets that open nothing.
size_t length_of_operator(std::string_view text, size_t at) {
  if (at > 0 && is_word(text[at - 1])) return 0;
  if (!text.substr(at).starts_with(kOperator)) return 0;
  size_t end = at + kOperator.size();
  if (text.substr(end).starts_with("()") || text.substr(end).starts_with("[]")) return end + 2 - at;
  const size_t first = end;
  while (end < text.size() && std::string_view("<>=-").find(text[end]) != std::string_view::npos)
    ++end;
  return end == first ? 0 : end - at;
}

bool opens(char c) { return c == '<' || c == '(' || c == '[' || c == '{'; }
bool closes(char c) { return c == '>' || c == ')' || c == ']' || c == '}'; }

}  // namespace

KernelName split_name(std::string_view demangled) {
  KernelName out;
  int depth = 0;
  size_t arguments = 0;
  for (size_t i = 0; i < demangled.size();) {
    size_t step = 1;
    const char c = demangled[i];
    if (depth == 0) {
      if (demangled.substr(i).starts_with(kUnnamed)) step = kUnnamed.size();
      if (const size_t length = length_of_operator(demangled, i)) step = length;
      if (step == 1 && c == '(' && !out.function.empty()) {
        out.parameters = demangled.substr(i);
        break;
      }
    }
    if (step > 1) {
      out.function += demangled.substr(i, step);
    } else if (depth == 0 && c == ' ' && demangled.substr(i + 1).starts_with('<')) {
      // "operator< <int>"
    } else if (depth == 0 && c == ' ') {
      out = {};  // what stood before it is the return type
    } else if (depth == 0 && c == '<') {
      arguments = i;
    } else if (depth == 0 && c == '{') {
      out.function += "{lambda}";
    } else if (depth == 0 && !closes(c)) {
      out.function += c;
    }
    if (step == 1 && opens(c)) ++depth;
    if (step == 1 && closes(c) && depth > 0 && --depth == 0 && c == '>')
      out.arguments = demangled.substr(arguments, i + 1 - arguments);
    i += step;
  }
  if (depth != 0 || out.function.empty()) return {std::string(demangled), "", ""};
  return out;
}

}  // namespace kiln::report
