// SPDX-License-Identifier: Apache-2.0
// Do lanes that come to a reduction, a match or a vote at several places meet there? nvcc unrolls
// the loop over the columns of a row by four, and lanes that have a column less begin with the
// rest. Every lane that a mask names comes, so that all of it is defined.

#include "expect.h"

constexpr int kRows = 3, kMost = 700, kResults = 4;

__global__ void meet(const int* in, unsigned* out, int columns) {
  const int lane = static_cast<int>(threadIdx.x);
  const int* from = in + blockIdx.x * columns;
  unsigned* to = out + blockIdx.x * columns * kResults;
  for (int c = lane; c < columns; c += 32) {
    const int left = columns - (c - lane), value = from[c];
    const unsigned members = left >= 32 ? 0xffffffffu : (1u << left) - 1u;
    to[c * kResults] = static_cast<unsigned>(__reduce_add_sync(members, value));
    to[c * kResults + 1] = __match_any_sync(members, value & 3);
    to[c * kResults + 2] = __ballot_sync(members, value > 5);
    int all = 0;
    to[c * kResults + 3] = __match_all_sync(members, static_cast<long long>(value + 8) >> 20, &all);
    to[c * kResults + 3] += static_cast<unsigned>(all);
  }
}

int main() {
  int* in = nullptr;
  unsigned* out = nullptr;
  EXPECT_OK(cudaMallocManaged(&in, kRows * kMost * sizeof(int)));
  EXPECT_OK(cudaMallocManaged(&out, kRows * kMost * kResults * sizeof(unsigned)));
  for (const int columns : {31, 33, 84, 132, 500, 699, kMost}) {
    for (int i = 0; i < kRows * columns; ++i) in[i] = i * 37 % 21 - 7 + (i == 40) * (1 << 22);
    for (int i = 0; i < kRows * columns * kResults; ++i) out[i] = 0;
    // Often enough for the engine to compile it.
    for (int i = 0; i < 50; ++i) meet<<<kRows, 32>>>(in, out, columns);
    EXPECT_OK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int at = 0; at < kRows * columns; ++at) {
      const int column = at % columns, first = at - column % 32;
      const int count = columns - (column - column % 32) < 32 ? columns % 32 : 32;
      unsigned sum = 0, same = 0, large = 0, members = 0;
      bool all = true;
      for (int i = 0; i < count; ++i) {
        const int value = in[first + i];
        const unsigned bit = 1u << i;
        sum += static_cast<unsigned>(value);
        members |= bit;
        same |= (value & 3) == (in[at] & 3) ? bit : 0;
        large |= value > 5 ? bit : 0;
        all &= (value + 8) >> 20 == (in[first] + 8) >> 20;
      }
      const unsigned* got = out + at * kResults;
      wrong +=
          got[0] != sum || got[1] != same || got[2] != large || got[3] != (all ? members + 1 : 0);
    }
    EXPECT(wrong == 0);
  }
  EXPECT_OK(cudaFree(in));
  EXPECT_OK(cudaFree(out));
  return finish();
}
