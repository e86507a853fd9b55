// SPDX-License-Identifier: Apache-2.0
// Do cooperative groups smaller than a grid run: tiles, partitions, reductions, scans, copies?
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <vector>

#include "expect.h"

namespace cg = cooperative_groups;
constexpr int kThreads = 96;

__global__ void of_tiles(int* sums, int* ranks, int* shuffled) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const int i = static_cast<int>(block.thread_rank());
  sums[i] = cg::reduce(tile, i, cg::plus<int>());
  ranks[i] = static_cast<int>(tile.meta_group_rank() * 100 + tile.thread_rank());
  shuffled[i] = tile.shfl_xor(i, 3) + (tile.any(i == 17) ? 1000 : 0) +
                10000 * static_cast<int>(tile.ballot(i & 1));
}
__global__ void of_partitions(int* odd, int* labelled, int* coalesced) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = static_cast<int>(threadIdx.x), lane = i % 32;
  const auto half = cg::binary_partition(warp, lane % 2 == 1);
  odd[i] = static_cast<int>(half.size() * 100 + half.thread_rank());
  const auto third = cg::labeled_partition(warp, lane % 3);
  labelled[i] = cg::reduce(third, lane, cg::greater<int>());
  coalesced[i] = -1;
  if (lane > 20) {
    const auto active = cg::coalesced_threads();
    coalesced[i] = cg::exclusive_scan(active, lane, cg::plus<int>());
  }
}
__global__ void of_a_copy(const int* from, int* to, int count) {
  extern __shared__ int tile[];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, from, sizeof(int) * static_cast<size_t>(count));
  cg::wait(block);
  for (int i = static_cast<int>(block.thread_rank()); i < count;
       i += static_cast<int>(block.size()))
    to[i] = tile[count - 1 - i];
}

struct Managed {
  Managed() { EXPECT_OK(cudaMallocManaged(&at, 3 * 1024 * sizeof(int))); }
  int* at = nullptr;
  int* part(int i) const { return at + i * 1024; }
};

int main() {
  const Managed memory;
  int *a = memory.part(0), *b = memory.part(1), *c = memory.part(2);
  of_tiles<<<1, kThreads>>>(a, b, c);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) {
    const int first = i / 8 * 8;
    EXPECT(a[i] == 8 * first + 28 && b[i] == i / 8 * 100 + i % 8);
    EXPECT(c[i] == (first | (i % 8 ^ 3)) + (i / 8 == 2 ? 1000 : 0) + 10000 * 0xaa);
  }
  of_partitions<<<1, kThreads>>>(a, b, c);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) {
    const int lane = i % 32;
    EXPECT(a[i] == 1600 + lane / 2);
    EXPECT(b[i] == 29 + (lane % 3 + 1) % 3);
    EXPECT(c[i] == (lane > 20 ? (lane - 21) * (lane + 20) / 2 : -1));
  }
  for (int i = 0; i < 1000; ++i) a[i] = 7 * i;
  of_a_copy<<<1, kThreads, 4000>>>(a, b, 1000);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 1000; ++i) EXPECT(b[i] == 7 * (999 - i));
  return finish();
}
