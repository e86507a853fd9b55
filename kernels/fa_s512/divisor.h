// SPDX-License-Identifier: Apache-2.0
// How does a kernel divide by a number that only the launch knows? By a multiplication.
#pragma once

#include <stdint.h>

namespace fa {

// n / d by a multiplication, for 0 <= n < 2^31 and 0 < d < 2^31: every tile needs three quotients,
// and a division takes a hundred cycles in which a warpgroup gives the tensor cores nothing.
struct Divisor {
  uint32_t d, magic, shift;

  static Divisor of(uint32_t d) {
    uint32_t shift = 0;
    while ((uint64_t{1} << shift) < d) shift++;
    return {d, static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1),
            shift};
  }
  __device__ __forceinline__ uint32_t quotient(uint32_t n) const {
    return (__umulhi(n, magic) + n) >> shift;
  }
};

}  // namespace fa
