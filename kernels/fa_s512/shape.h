// SPDX-License-Identifier: Apache-2.0
// How large are the tiles, and where do they lie in shared memory? All of it follows from three
// defines and the head dim.
#pragma once

#include <stdint.h>

#include "divisor.h"
#include "head_dims.h"
#include "tma.h"

// The defines: BLOCK_M rows of Q a block works on, 64 a consumer warpgroup; BLOCK_N rows of K and V
// a step takes; STAGES tiles of K, and of V, in shared memory. Each may be left to the head dim.

namespace fa {

constexpr int kWarpgroup = 128;
constexpr int kRowsPerWarpgroup = 64;

#ifdef BLOCK_M
constexpr int kFewRows = BLOCK_M;
template <int kHeadDim, bool kCausal>
constexpr int kManyRows = BLOCK_M;
#else
// Rows of a tile where tiles are few, and where they are many. At head dim 64 the exponentials take
// as long as the products, and a third warpgroup hides more of both: 1.16 instead of 1.08 of cuDNN,
// although at length 512 it has no rows in every third tile. Not when causal (1.06 instead
// of 1.12).
constexpr int kFewRows = 128;
template <int kHeadDim, bool kCausal>
constexpr int kManyRows = kHeadDim == 64 && !kCausal ? 192 : 128;
#endif

template <int kHeadDim_, int kBlockM_ = kFewRows>
struct Shape {
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kBlockM = kBlockM_;
#ifdef BLOCK_N
  static constexpr int kBlockN = BLOCK_N;
#else
  static constexpr int kBlockN = 128;
#endif
#ifdef STAGES
  static constexpr int kStages = STAGES;
#else
  static constexpr int kStages = (256 / kBlockN) * (128 / kHeadDim);
#endif
#ifdef TURNS
  static constexpr bool kTurns = TURNS;
#else
  static constexpr bool kTurns = true;
#endif
#ifdef RELEASE_EARLY
  static constexpr bool kReleaseStoredEarly = RELEASE_EARLY;
#else
  static constexpr bool kReleaseStoredEarly =
      kHeadDim == 64;  // 1.12 instead of 1.09 of cuDNN, causal
#endif
  static constexpr int kQueryBuffers = 2;
  static constexpr int kConsumers = kBlockM / kRowsPerWarpgroup;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  // The block's pool is what the launch gave it: 64 K registers over its threads, a multiple of 8
  // for each. A warpgroup that asks for more than the others gave back waits for ever.
  static constexpr int kLaunchRegisters = 65536 / kThreads / 8 * 8;
  static constexpr int kProducerRegisters = kConsumers == 3 ? 32 : 24;
  static constexpr int kConsumerRegisters = kConsumers == 4 ? 112 : kConsumers == 3 ? 160 : 240;
  static_assert(kConsumers * kConsumerRegisters + kProducerRegisters <=
                    (1 + kConsumers) * kLaunchRegisters,
                "the warpgroups ask for more registers than the launch gives");

  static constexpr int kQueryBytes = kRowsPerWarpgroup * kHeadDim * 2;  // of one warpgroup
  static constexpr int kKeyBytes = kBlockN * kHeadDim * 2;              // and of V as many
  static constexpr int kQueryAt = 0;
  static constexpr int kKeyAt = kQueryAt + kQueryBuffers * kConsumers * kQueryBytes;
  static constexpr int kValueAt = kKeyAt + kStages * kKeyBytes;
  static constexpr int kBarriersAt = kValueAt + kStages * kKeyBytes;
  static constexpr int kBarriers = 2 * kQueryBuffers * kConsumers + 4 * kStages;
  // Dynamic shared memory is aligned to 16 bytes by promise; 1024 more let the kernel align it.
  static constexpr int kSharedBytes = kBarriersAt + kBarriers * 8 + 1024;

  static_assert(kHeadDim == 64 || kHeadDim == 128, "the head dim must be 64 or 128");
  static_assert(kBlockM == 64 || kBlockM == 128 || kBlockM == 192 || kBlockM == 256,
                "BLOCK_M must be 64, 128, 192 or 256");
  static_assert(kBlockN == 64 || kBlockN == 128, "BLOCK_N must be 64 or 128");
  static_assert(kStages >= 2, "STAGES must be at least 2: one tile is read while the next arrives");
  static_assert(kSharedBytes <= 227 * 1024,
                "BLOCK_M, BLOCK_N and STAGES need more than 227 KB of shared memory");
  static_assert(kQueryBytes % 1024 == 0 && kKeyBytes % 1024 == 0,
                "the swizzle repeats every 1024 bytes");
};

// Which kernel a launch takes.
struct Plan {
  int64_t head_dim;
  bool causal, many;  // many: kManyRows
  int m, n;           // BLOCK_M and BLOCK_N
};
inline int keys_a_step(int64_t head_dim) {
  int n = 0;
  with_head_dim(head_dim, [&](auto d) { n = Shape<d.value>::kBlockN; });
  return n;
}
inline Plan plan_for(int64_t head_dim, bool causal, int64_t rows_of_all, int processors) {
  Plan plan{head_dim, causal, rows_of_all >= int64_t{4} * kFewRows * processors, kFewRows,
            keys_a_step(head_dim)};
  with_head_dim(head_dim, [&](auto d) {
    if (plan.many) plan.m = causal ? kManyRows<d.value, true> : kManyRows<d.value, false>;
  });
  return plan;
}

// The addresses of a block's tiles and barriers in shared memory.
template <class S>
struct Shared {
  uint32_t base;

  __device__ __forceinline__ uint32_t query(unsigned buffer, unsigned consumer) const {
    return base + S::kQueryAt + (buffer * S::kConsumers + consumer) * S::kQueryBytes;
  }
  __device__ __forceinline__ uint32_t key(unsigned stage) const {
    return base + S::kKeyAt + stage * S::kKeyBytes;
  }
  __device__ __forceinline__ uint32_t value(unsigned stage) const {
    return base + S::kValueAt + stage * S::kKeyBytes;
  }

  __device__ __forceinline__ uint32_t barrier(unsigned i) const {
    return base + S::kBarriersAt + i * 8;
  }
  __device__ __forceinline__ uint32_t query_full(unsigned buffer, unsigned consumer) const {
    return barrier(buffer * S::kConsumers + consumer);
  }
  __device__ __forceinline__ uint32_t query_empty(unsigned buffer, unsigned consumer) const {
    return barrier((S::kQueryBuffers + buffer) * S::kConsumers + consumer);
  }
  static constexpr unsigned kFirstStage = 2 * S::kQueryBuffers * S::kConsumers;
  __device__ __forceinline__ uint32_t key_full(unsigned stage) const {
    return barrier(kFirstStage + stage);
  }
  __device__ __forceinline__ uint32_t key_empty(unsigned stage) const {
    return barrier(kFirstStage + S::kStages + stage);
  }
  __device__ __forceinline__ uint32_t value_full(unsigned stage) const {
    return barrier(kFirstStage + 2 * S::kStages + stage);
  }
  __device__ __forceinline__ uint32_t value_empty(unsigned stage) const {
    return barrier(kFirstStage + 3 * S::kStages + stage);
  }
};

// In which order do the blocks take the tiles?
//
// Rotated: one head after the other, so that neighbouring blocks share a head, whose K and V are in
// L2. The rows are rotated by the head, or a block whose stride is a multiple of tiles_per_head
// would get the same rows of every head, and the last tile of a head may have less to do.
//
// With a causal mask tile m of a head has m + 1 parts of work, which the rotation shares out well
// over many short heads only. Pairs: a block takes tile m of one head and the last but m of the
// next, so that all pairs are alike, and long and short tiles run side by side. Longest first,
// where the pairs do not go round evenly (few tiles): those of all heads, in groups of heads whose
// tensors stay in L2; every other round of blocks goes backwards, so that no block gets the longer
// tile of each round.
enum class Sharing : int { kRotated, kPairs, kLongestFirst };

struct Order {
  int count;  // of tiles, or of pairs
  Sharing sharing;
  int whole;                             // pairs of two tiles; of an odd number of heads the last
                                         // has pairs of one
  Divisor per_group, in_group, in_last;  // tiles of a group; heads of a group, and of the last one
  int groups;

  static Order of(int64_t heads, int64_t tiles_per_head, int64_t bytes_per_head, int processors,
                  bool causal) {
    constexpr int64_t kBytesInCache = 48 << 20;
    const int64_t tiles = heads * tiles_per_head, pairs = (heads + 1) / 2 * tiles_per_head;
    const int64_t rounds = (pairs + processors - 1) / processors;
    const bool many_short_heads = tiles_per_head <= 8 && tiles >= 8 * processors;
    // Longest first leaves up to a fifth of the time to one block.
    const bool even_pairs = 5 * rounds * processors <= 6 * pairs;
    const Sharing sharing = !causal || many_short_heads ? Sharing::kRotated
                            : even_pairs                ? Sharing::kPairs
                                                        : Sharing::kLongestFirst;
    const int64_t most = kBytesInCache / bytes_per_head;
    const int64_t group = most < 1 ? 1 : most < heads ? most : heads;
    const int64_t groups = (heads + group - 1) / group;
    return {static_cast<int>(sharing == Sharing::kPairs ? pairs : tiles),
            sharing,
            static_cast<int>(heads / 2 * tiles_per_head),
            Divisor::of(static_cast<uint32_t>(group * tiles_per_head)),
            Divisor::of(static_cast<uint32_t>(group)),
            Divisor::of(static_cast<uint32_t>(heads - (groups - 1) * group)),
            static_cast<int>(groups)};
  }
};

// What a launch works on. Passed as one __grid_constant__, since TMA wants the maps in memory.
struct Work {
  CUtensorMap query, key, value, out;
  float* lse;  // [batch, heads, queries]
  int queries, keys;
  Divisor heads, heads_per_key;  // heads of Q; how many of them share a head of K and V
  Divisor tiles_per_head;
  Order order;
  float scale;
  unsigned* report;  // of a wait that timed out, under FA_DEBUG_TIMEOUT
};

// The places of one block in that order, one after the other.
template <bool kCausal>
struct Queue {
  int index, round;
  bool second;  // of a pair

  static __device__ __forceinline__ Queue first() {
    return {static_cast<int>(blockIdx.x), 0, false};
  }
  __device__ __forceinline__ bool exists(const Order& order) const { return index < order.count; }
  __device__ __forceinline__ void advance(const Order& order) {
    const int blocks = static_cast<int>(gridDim.x);
    if (!kCausal || order.sharing == Sharing::kRotated) {
      index += blocks;
    } else if (order.sharing == Sharing::kPairs) {
      second = !second && index < order.whole;
      if (!second) index += blocks;
    } else {
      index = 2 * (round + blocks) - 1 - index;
      round += blocks;
    }
  }
};

// One tile of the output: kBlockM rows of one head.
struct Tile {
  int row, head, batch;

  // kFirstIsLongest: whether, under a causal mask, a head's first tile is its longest.
  template <class S, bool kCausal, bool kFirstIsLongest, class W>
  static __device__ __forceinline__ Tile of(const W& work, const Queue<kCausal>& place) {
    const Order& order = work.order;
    const uint32_t tiles_per_head = work.tiles_per_head.d;
    uint32_t m, head_of_all;  // m: from the shortest on
    if (kCausal && order.sharing == Sharing::kLongestFirst) {
      const uint32_t group = order.per_group.quotient(place.index);
      const uint32_t in_group = place.index - group * order.per_group.d;
      const bool last = static_cast<int>(group) + 1 == order.groups;
      const Divisor heads{last ? order.in_last.d : order.in_group.d,
                          last ? order.in_last.magic : order.in_group.magic,
                          last ? order.in_last.shift : order.in_group.shift};
      const uint32_t from_longest = heads.quotient(in_group);
      head_of_all = group * order.in_group.d + in_group - from_longest * heads.d;
      m = tiles_per_head - 1 - from_longest;
    } else if (kCausal && order.sharing == Sharing::kPairs) {
      const uint32_t two_heads = work.tiles_per_head.quotient(place.index);
      m = place.index - two_heads * tiles_per_head;
      head_of_all = 2 * two_heads + place.second;
      if (place.second) m = tiles_per_head - 1 - m;
    } else {
      head_of_all = work.tiles_per_head.quotient(place.index);
      const uint32_t rotated = place.index + head_of_all;
      m = rotated - work.tiles_per_head.quotient(rotated) * tiles_per_head;
    }
    if (kCausal && kFirstIsLongest && order.sharing != Sharing::kRotated)
      m = tiles_per_head - 1 - m;
    const uint32_t batch = work.heads.quotient(head_of_all);
    return {static_cast<int>(m * S::kBlockM), static_cast<int>(head_of_all - batch * work.heads.d),
            static_cast<int>(batch)};
  }

  // Steps over K and V, at least one. Causal: row r sees keys 0 ... r, as is_causal of torch's
  // SDPA.
  template <class S, bool kCausal>
  __device__ __forceinline__ int steps(const Work& work) const {
    const int seen = kCausal ? min(work.keys, row + S::kBlockM) : work.keys;
    return (seen + S::kBlockN - 1) / S::kBlockN;
  }
};

}  // namespace fa
