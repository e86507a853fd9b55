// SPDX-License-Identifier: Apache-2.0
// Do the blocks of a cooperative launch meet, and is one that cannot be resident refused?
#include <cooperative_groups.h>

#include <algorithm>
#include <vector>

#include "expect.h"

namespace cg = cooperative_groups;

// Each round every thread adds its neighbour's value of the round before: wrong at once if a block
// runs ahead.
__global__ void rounds(int* from, int* to, int count) {
  cg::grid_group grid = cg::this_grid();
  const int i = static_cast<int>(grid.thread_rank());
  for (int round = 0; round < 4; ++round) {
    to[i] = from[i] + from[(i + blockDim.x) % count];
    grid.sync();
    int* swap = from;
    from = to;
    to = swap;
  }
}
__global__ void uses_shared(int* p) {
  __shared__ int tile[12000];
  tile[threadIdx.x] = 1;
  p[0] = tile[threadIdx.x];
}

int main() {
  constexpr int kThreads = 64;
  int multiprocessors = 0, each = 0, can = 0;
  EXPECT_OK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_OK(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, 0));
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, rounds, kThreads, 0));
  EXPECT(can == 1 && each > 0 && multiprocessors > 0);
  const int blocks = std::min(multiprocessors * each, 128), count = blocks * kThreads;
  std::vector<int> values(count), seen(count);
  for (int i = 0; i < count; ++i) values[i] = i % 17;
  int *from, *to;
  EXPECT_OK(cudaMalloc(&from, count * 4));
  EXPECT_OK(cudaMalloc(&to, count * 4));
  EXPECT_OK(cudaMemcpy(from, values.data(), count * 4, cudaMemcpyHostToDevice));
  void* arguments[] = {&from, &to, const_cast<int*>(&count)};
  EXPECT_OK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(rounds), dim3(blocks),
                                        dim3(kThreads), arguments, 0, nullptr));
  EXPECT_OK(cudaMemcpy(seen.data(), from, count * 4, cudaMemcpyDeviceToHost));
  for (int round = 0; round < 4; ++round) {
    std::vector<int> next(count);
    for (int i = 0; i < count; ++i) next[i] = values[i] + values[(i + kThreads) % count];
    values = next;
  }
  EXPECT(seen == values);
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, uses_shared, 32, 0));
  void* one[] = {&from};
  EXPECT_CODE(
      cudaErrorCooperativeLaunchTooLarge,
      cudaLaunchCooperativeKernel(reinterpret_cast<void*>(uses_shared),
                                  dim3(each * multiprocessors + 1), dim3(32), one, 0, nullptr));
  return finish();
}
