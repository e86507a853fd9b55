// SPDX-License-Identifier: Apache-2.0
// Which chapter of instructions.def is a row in? The table is read twice, and lines are compared.
#include "ptx/kinds.h"

#include <array>

namespace kiln::ptx {
namespace {

struct Chapter {
  int line;
  Kind kind;
};
constexpr Chapter kChapters[] = {
#define PTX_CHAPTER(kind) {__LINE__, Kind::kind},
#define PTX_FORM(...)
#include "ptx/instructions.def"
#undef PTX_FORM
};
constexpr int kLines[] = {
#define PTX_CHAPTER(kind)
#define PTX_FORM(...) __LINE__,
#include "ptx/instructions.def"
#undef PTX_FORM
};

constexpr auto kKinds = [] {
  std::array<Kind, std::size(kLines)> out{};
  for (size_t i = 0; i < out.size(); ++i) {
    for (const Chapter& chapter : kChapters) {
      if (chapter.line < kLines[i]) out[i] = chapter.kind;
    }
  }
  return out;
}();

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[kKindCount] = {
      "integer", "float", "conversion", "move", "memory", "control", "sync", "exchange", "matrix"};
  return kNames[static_cast<size_t>(kind)];
}

Kind kind_of(uint32_t form) { return kKinds[form]; }

}  // namespace kiln::ptx
