// SPDX-License-Identifier: Apache-2.0
// How large are the tiles of the backward kernels, and where do they lie in shared memory? Two
// kernels of one form: a warpgroup owns 64 rows of two tensors, and tiles of two others pass by.
//
//   rows of Q:  owns Q and dO, K and V pass by, gives dQ
//   rows of K:  owns K and V, Q and dO pass by, gives dK and dV
//
// The scores and the weights' gradients are computed in both, which is seven products in place of
// five. In return nothing is added up across blocks: the result is the same in each run, and no
// fp32 dQ passes through memory.
#pragma once

#include "shape.h"

// The defines: B_CONSUMERS warpgroups a block, B_BLOCK_N rows of a passing tile, B_STAGES of them
// in shared memory, B_OWN_BUFFERS places for the rows a warpgroup owns, B_WAIT_LATE 1 to keep the
// exponentials ahead of the wait for the weights' gradients. A define may be an expression of
// kHeadDim and kSide; each may be left out.

namespace fa {

// LSE and D are kept for so many rows: a multiple of every step over Q.
constexpr int kRowMultiple = 128;

enum class Side { kQueries, kKeys };

template <int kHeadDim_, Side kSide_>
struct BackwardShape {
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr Side kSide = kSide_;
#ifdef B_CONSUMERS
  static constexpr int kConsumers = B_CONSUMERS;
#else
  // Three at head dim 64: 1.20 instead of 1.16 of cuDNN. The rows of K have no registers for it.
  static constexpr int kConsumers = kHeadDim == 64 && kSide == Side::kQueries ? 3 : 2;
#endif
#ifdef B_BLOCK_N
  static constexpr int kBlockN = B_BLOCK_N;
#else
  static constexpr int kBlockN = 64;
#endif
#ifdef B_OWN_BUFFERS
  static constexpr int kOwnBuffers = B_OWN_BUFFERS;
#else
  static constexpr int kOwnBuffers = 2;
#endif
#ifdef B_STAGES
  static constexpr int kStages = B_STAGES;
#else
  static constexpr int kStages = 3 * (128 / kHeadDim) * (64 / kBlockN);
#endif
#ifdef B_WAIT_LATE
  static constexpr bool kWaitLate = B_WAIT_LATE;
#else
  // Exponentials under the second product, which ptxas otherwise waits for first: 195 us instead
  // of 205. At head dim 64 the products are too short to gain from it (135 instead of 131), and
  // rows of K at 128 have no registers for it.
  static constexpr bool kWaitLate = kHeadDim == 128 && kSide == Side::kQueries;
#endif
  static constexpr int kBlockM = kConsumers * kRowsPerWarpgroup;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = kConsumers == 3 ? 32 : 24;
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 160 : 240;

  static constexpr int kOwnBytes = kRowsPerWarpgroup * kHeadDim * 2;  // of one of the two tensors
  static constexpr int kStepBytes = kBlockN * kHeadDim * 2;
  static constexpr int kStepsAt = kOwnBuffers * kConsumers * 2 * kOwnBytes;
  static constexpr int kRowsAt = kStepsAt + kStages * 2 * kStepBytes;
  static constexpr int kRowValuesBytes =
      kSide == Side::kKeys ? kBlockN * 4 : 0;  // LSE, and D as many
  static constexpr int kBarriersAt = kRowsAt + kStages * 2 * kRowValuesBytes;
  static constexpr int kBarriers = 2 * kOwnBuffers * kConsumers + 4 * kStages;
  static constexpr int kSharedBytes = kBarriersAt + kBarriers * 8 + 1024;

  // O passes by ahead of K and V, 64 rows in the place of each.
  static constexpr int kOutSteps = (kConsumers + 1) / 2;

  static_assert(kConsumers == 2 || kConsumers == 3, "B_CONSUMERS must be 2 or 3");
  static_assert(kBlockN == 64 || kBlockN == 128, "B_BLOCK_N must be 64 or 128");
  static_assert(kStages >= 2,
                "B_STAGES must be at least 2: one tile is read while the next arrives");
  static_assert(
      kSharedBytes <= 227 * 1024,
      "B_CONSUMERS, B_BLOCK_N, B_STAGES and B_OWN_BUFFERS need more than 227 KB of shared "
      "memory");
};

// The addresses of a block's tiles and barriers. Of each pair, 0 is what the scores are made of (Q,
// K), 1 what the weights' gradients are made of (dO, V).
template <class S>
struct BackwardShared {
  uint32_t base;

  __device__ __forceinline__ uint32_t own(unsigned buffer, unsigned consumer,
                                          unsigned which) const {
    return base + ((buffer * S::kConsumers + consumer) * 2 + which) * S::kOwnBytes;
  }
  __device__ __forceinline__ uint32_t step(unsigned stage, unsigned which) const {
    return base + S::kStepsAt + (stage * 2 + which) * S::kStepBytes;
  }
  // Of the rows of a passing Q: the LSE, then D.
  __device__ __forceinline__ uint32_t rows(unsigned stage, unsigned which) const {
    return base + S::kRowsAt + (stage * 2 + which) * S::kRowValuesBytes;
  }

  __device__ __forceinline__ uint32_t barrier(unsigned i) const {
    return base + S::kBarriersAt + i * 8;
  }
  __device__ __forceinline__ uint32_t own_full(unsigned buffer, unsigned consumer) const {
    return barrier(buffer * S::kConsumers + consumer);
  }
  __device__ __forceinline__ uint32_t own_empty(unsigned buffer, unsigned consumer) const {
    return barrier((S::kOwnBuffers + buffer) * S::kConsumers + consumer);
  }
  __device__ __forceinline__ uint32_t step_full(unsigned stage, unsigned which) const {
    return barrier(2 * S::kOwnBuffers * S::kConsumers + which * S::kStages + stage);
  }
  __device__ __forceinline__ uint32_t step_empty(unsigned stage, unsigned which) const {
    return step_full(stage, which) + 2 * S::kStages * 8;
  }
};

// What the two launches work on. `own` and `passing` as in BackwardShared; boxes are 64 rows.
struct BackwardWork {
  CUtensorMap own[2], passing[2], out, gradients[2];  // dQ; or dK and dV
  const float* lse;                                   // [batch, heads, queries]
  const float* grad_lse;                              // the same, or null
  // [batch, heads, padded]: -LSE * log2(e), and D = sum(dO * O) less the gradient of LSE. The first
  // kernel writes them; rows beyond the end have -inf, so their weights are 0, and 0.
  float *row_lse, *row_sum;
  int queries, keys, padded;
  Divisor heads;  // of the rows owned
  Divisor heads_per_key;
  Divisor tiles_per_head;
  Order order;
  float scale;
  unsigned* report;
};

}  // namespace fa
