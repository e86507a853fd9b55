// SPDX-License-Identifier: Apache-2.0
// Do Thrust's sort, scan and reductions run?
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>

#include <algorithm>
#include <vector>

#include "expect.h"

struct Square {
  __host__ __device__ double operator()(int value) const {
    return static_cast<double>(value) * value;
  }
};

int main() {
  constexpr int kCount = 20000;
  std::vector<int> values(kCount);
  unsigned seed = 7;
  for (int& value : values)
    value = static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 12) - 500000;
  thrust::device_vector<int> device(values.begin(), values.end());

  double wanted = 0;
  for (int value : values) wanted += Square{}(value);
  EXPECT(thrust::transform_reduce(device.begin(), device.end(), Square{}, 0.0,
                                  ::cuda::std::plus<double>()) == wanted);

  thrust::device_vector<int> sums(kCount);
  thrust::exclusive_scan(device.begin(), device.end(), sums.begin());
  EXPECT(sums[0] == 0 && sums[1] == values[0] && sums[2] == values[0] + values[1]);

  thrust::sort(device.begin(), device.end());
  std::sort(values.begin(), values.end());
  std::vector<int> sorted(kCount);
  thrust::copy(device.begin(), device.end(), sorted.begin());
  EXPECT(sorted == values);
  EXPECT(thrust::reduce(device.begin(), device.begin() + 2) == values[0] + values[1]);
  return finish();
}
