// SPDX-License-Identifier: Apache-2.0
// Which variants of the portable path of fa_s512 are ordered by their predicted time? Rows of Q of
// a block, keys of a step, warps, and whether Q stays in registers.
//
// The shapes are those of `kiln tune kernels/fa_s512 forward_portable`, without the ones whose
// registers spill, which the tuner drops too.
#include "../../../kernels/fa_s512/portable.h"
#include "patterns.cuh"

template <int M, int N, int WARPS, bool HELD>
struct Tile {
  static constexpr int kHeadDim = 128, kBlockM = M, kBlockN = N, kWarps = WARPS;
  static constexpr bool kQueryInRegisters = HELD;
  template <bool kCausal>
  static constexpr fa::NextKeys kNextKeys = fa::kAfterSoftmax;
  static constexpr int kThreads = 32 * kWarps, kRowTiles = kBlockM / 16 / kWarps;
  static constexpr int kQueryBytes = kBlockM * kHeadDim * 2, kKeyBytes = kBlockN * kHeadDim * 2;
  static constexpr int kKeyAt = kQueryBytes, kValueAt = kKeyAt + kKeyBytes;
  static constexpr int kSharedBytes = kValueAt + kKeyBytes;
};

template <int M, int N, int WARPS, bool HELD>
__global__ void __launch_bounds__(32 * WARPS)
    attend(const __grid_constant__ fa::PortableWork work) {
  extern __shared__ __align__(128) char tiles[];
  fa::portable_forward<fa::Bf16, Tile<M, N, WARPS, HELD>, false>(
      work, static_cast<uint32_t>(__cvta_generic_to_shared(tiles)));
}

template <int M, int N, int WARPS, bool HELD>
void launch(fa::PortableWork work, int heads) {
  using Shape = Tile<M, N, WARPS, HELD>;
  const auto kernel = attend<M, N, WARPS, HELD>;
  work.tiles_per_head = fa::Divisor::of(static_cast<uint32_t>(work.queries / M));
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             Shape::kSharedBytes),
        "cudaFuncSetAttribute");
  kernel<<<heads * work.queries / M, Shape::kThreads, Shape::kSharedBytes>>>(work);
}

int main(int count, char** words) {
  constexpr int kBatch = 8, kHeads = 16, kLength = 512, kHeadDim = 128;
  constexpr int64_t kRow = kHeadDim, kHead = kRow * kLength, kOne = kHead * kHeads;
  const auto tensor = [&] {
    return fa::PortableTensor{device_array<uint16_t>(kBatch * kOne), kOne, kHead, kRow};
  };
  fa::PortableWork work{};
  work.query = tensor();
  work.key = tensor();
  work.value = tensor();
  work.out = tensor();
  work.lse = device_array<float>(kBatch * kHeads * kLength);
  work.queries = work.keys = kLength;
  work.heads = fa::Divisor::of(kHeads);
  work.heads_per_key = fa::Divisor::of(1);
  work.scale_log2 = 0.1275f;
  Launches all;
#define VARIANT(m, n, warps, held)        \
  all.add(#m "x" #n "_" #warps "_" #held, \
          [=] { launch<m, n, warps, held>(work, kBatch * kHeads); });
  VARIANT(64, 16, 4, false)
  VARIANT(64, 32, 4, false)
  VARIANT(64, 48, 4, false)
  VARIANT(64, 64, 4, false)
  VARIANT(64, 96, 4, false)
  VARIANT(64, 128, 4, false)
  VARIANT(64, 16, 4, true)
  VARIANT(64, 32, 4, true)
  VARIANT(64, 64, 4, true)
  VARIANT(64, 128, 4, true)
  VARIANT(128, 16, 4, false)
  VARIANT(128, 32, 4, false)
  VARIANT(128, 48, 4, false)
  VARIANT(128, 64, 4, false)
  VARIANT(128, 16, 8, false)
  VARIANT(128, 32, 8, false)
  VARIANT(128, 64, 8, false)
  VARIANT(128, 96, 8, false)
  VARIANT(128, 128, 8, false)
  VARIANT(128, 32, 8, true)
  VARIANT(128, 64, 8, true)
  VARIANT(128, 128, 8, true)
  return all.run(count, words);
}
