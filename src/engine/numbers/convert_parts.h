// SPDX-License-Identifier: Apache-2.0
// What does a handler of a common conversion know about its types?
#pragma once

#include <cstdint>

#include "engine/numbers/small_formats.h"

namespace kiln::engine {

// How the low bits of a register become a number of type W: the other bits are dropped, and the
// sign, if there is one, fills them.
template <class W>
struct Extends {
  W kept, sign;

  Extends(uint32_t bits, bool is_signed)
      : kept(bits >= sizeof(W) * 8 ? static_cast<W>(~W{0}) : static_cast<W>((W{1} << bits) - 1)),
        sign(is_signed ? static_cast<W>(W{1} << (bits - 1)) : W{0}) {}
  W operator()(W value) const { return static_cast<W>(((value & kept) ^ sign) - sign); }
};

// The types, as a handler has them in Op::imm.
struct WideParts {
  uint8_t from_bits, to_bits;
  bool from_signed, to_signed, uniform;
  Rounding rounding;
  bool integral, saturate, flush;

  int64_t bits() const {
    return from_bits | to_bits << 8 | from_signed << 16 | to_signed << 17 | uniform << 18 |
           static_cast<int>(rounding) << 20 | integral << 24 | saturate << 25 | flush << 26;
  }
  static WideParts of(int64_t bits) {
    return {static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8),
            (bits >> 16 & 1) != 0,      (bits >> 17 & 1) != 0,
            (bits >> 18 & 1) != 0,      static_cast<Rounding>(bits >> 20 & 3),
            (bits >> 24 & 1) != 0,      (bits >> 25 & 1) != 0,
            (bits >> 26 & 1) != 0};
  }
};

}  // namespace kiln::engine
