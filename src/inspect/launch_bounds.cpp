// SPDX-License-Identifier: Apache-2.0
// How is .minnctapersm found without parsing the module? Backwards: from the directive to the
// .entry before it.
#include "inspect/launch_bounds.h"

#include <algorithm>

namespace kiln::inspect {
namespace {

constexpr std::string_view kDirective = ".minnctapersm", kEntry = ".entry";
// NUL is one of them.
constexpr std::string_view kBlanks(" \t\r\n\0", 5);

uint32_t number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  uint32_t number = 0;
  for (char c : text.substr(0, 6)) {
    if (c < '0' || c > '9') break;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return number;
}

}  // namespace

std::map<std::string, uint32_t, std::less<>> min_blocks_of(std::string_view ptx) {
  std::map<std::string, uint32_t, std::less<>> out;
  size_t done = 0;
  for (size_t at = ptx.find(kDirective); at != ptx.npos; at = ptx.find(kDirective, at + 1)) {
    std::string_view before = ptx.substr(done, at - done);
    done = at;
    size_t entry = before.rfind(kEntry);
    // A body between the two: a comment, or no directive of this kernel.
    if (entry == before.npos || before.find('{', entry) != before.npos) continue;
    std::string_view name = before.substr(entry + kEntry.size());
    name.remove_prefix(std::min(name.find_first_not_of(kBlanks), name.size()));
    name = name.substr(0, std::min(name.find('('), name.find_first_of(kBlanks)));
    uint32_t number = number_at(ptx.substr(at + kDirective.size()));
    if (!name.empty() && number) out[std::string(name)] = number;
  }
  return out;
}

}  // namespace kiln::inspect
