// SPDX-License-Identifier: Apache-2.0
// How is an Error written for people?
#include "base/result.h"

#include "base/text.h"

namespace kiln {

namespace {

// Later lines stand under the first, so that a compiler's carets still point at what they mean.
void add_field(std::string& text, std::string_view label, std::string_view value) {
  if (value.empty()) return;
  if (!text.empty()) text += '\n';
  text += label;
  text += text::replace_all(value, "\n", "\n" + std::string(label.size(), ' '));
}

}  // namespace

std::string format(const Error& error) {
  std::string text;
  add_field(text, "error: ", error.what);
  add_field(text, "  why: ", error.why);
  add_field(text, "  fix: ", error.fix);
  return text;
}

}  // namespace kiln
