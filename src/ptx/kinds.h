// SPDX-License-Identifier: Apache-2.0
// What does an instruction do, in one word? For counts of instructions by kind.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::ptx {

enum class Kind : uint8_t {
  Integer,
  Float,
  Conversion,
  Movement,
  Memory,
  Control,
  Synchronisation,  // barriers, fences, mbarriers
  Exchange,         // between lanes: shuffles, votes
  Matrix
};
constexpr size_t kKindCount = 9;
std::string_view name_of(Kind kind);

// `form` is an index into forms().
Kind kind_of(uint32_t form);

}  // namespace kiln::ptx
