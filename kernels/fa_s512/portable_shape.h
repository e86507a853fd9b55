// SPDX-License-Identifier: Apache-2.0
// How large are the tiles of the portable path, and what does a launch work on?
#pragma once

#include <stdint.h>

#include "divisor.h"

// The defines: P_BLOCK_M rows of Q a block works on, P_BLOCK_N rows of K and V a step takes,
// P_WARPS warps that share the rows of Q, P_Q_IN_REGISTERS 1 to read Q from shared memory once and
// keep it, P_NEXT_KEYS 0, 1 or 2: where the copy of the next keys begins. Each may be left to the
// head dim.
namespace fa {

enum NextKeys { kBeforeSoftmax, kWithinSoftmax, kAfterSoftmax };

template <int kHeadDim_>
struct PortableShape {
  static constexpr int kHeadDim = kHeadDim_;
#ifdef P_BLOCK_M
  static constexpr int kBlockM = P_BLOCK_M;
#else
  static constexpr int kBlockM = 128;
#endif
#ifdef P_BLOCK_N
  static constexpr int kBlockN = P_BLOCK_N;
#else
  static constexpr int kBlockN = kHeadDim == 64 ? 128 : 64;
#endif
#ifdef P_WARPS
  static constexpr int kWarps = P_WARPS;
#else
  static constexpr int kWarps = 4;
#endif
#ifdef P_Q_IN_REGISTERS
  static constexpr bool kQueryInRegisters = P_Q_IN_REGISTERS;
#else
  static constexpr bool kQueryInRegisters = false;
#endif
  // The earliest place that ptxas can hold in 255 registers.
  template <bool kCausal>
#ifdef P_NEXT_KEYS
  static constexpr NextKeys kNextKeys = static_cast<NextKeys>(P_NEXT_KEYS);
#elif __CUDA_ARCH__ == 900
  static constexpr NextKeys kNextKeys = kHeadDim == 64 ? kWithinSoftmax
                                        : kCausal      ? kAfterSoftmax
                                                       : kBeforeSoftmax;
#else
  static constexpr NextKeys kNextKeys = kAfterSoftmax;
#endif
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRowTiles = kBlockM / 16 / kWarps;  // of 16 rows, a warp
  static constexpr int kQueryBytes = kBlockM * kHeadDim * 2, kKeyBytes = kBlockN * kHeadDim * 2;
  // Q, then one tile of K and one of V. The output leaves through Q's place.
  static constexpr int kKeyAt = kQueryBytes, kValueAt = kKeyAt + kKeyBytes;
  static constexpr int kSharedBytes = kValueAt + kKeyBytes;

  static_assert(kHeadDim == 64 || kHeadDim == 128, "the head dim must be 64 or 128");
  static_assert(kBlockM % (16 * kWarps) == 0 && kRowTiles >= 1,
                "P_BLOCK_M must be a multiple of 16 rows a warp");
  static_assert(kBlockN % 16 == 0 && kBlockN >= 16, "P_BLOCK_N must be a multiple of 16");
  static_assert(
      kSharedBytes <= 99 * 1024,
      "P_BLOCK_M and P_BLOCK_N need more than 99 KB of shared memory, which is all that sm_86 has");
};

// Sizes in elements. The last dimension has stride 1.
struct PortableTensor {
  void* data;
  int64_t batch_stride, head_stride, row_stride;
};

struct PortableWork {
  PortableTensor query, key, value, out;
  float* lse;  // [batch, heads, queries]
  int queries, keys;
  Divisor heads, heads_per_key;  // heads of Q; how many of them share a head of K and V
  Divisor tiles_per_head;        // set at the launch
  float scale_log2;              // scale * log2(e)
};

}  // namespace fa
