// SPDX-License-Identifier: Apache-2.0
// Do cub's device-wide algorithms run? Its scan looks back at blocks that still run, its radix sort
// too.
#include <algorithm>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <numeric>
#include <vector>

#include "expect.h"

constexpr int kCount = 50000;

template <class T>
struct Device {
  explicit Device(size_t count) { EXPECT_OK(cudaMalloc(&at, count * sizeof(T))); }
  explicit Device(const std::vector<T>& from) : Device(from.size()) {
    EXPECT_OK(cudaMemcpy(at, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> get(size_t count) const {
    std::vector<T> out(count);
    EXPECT_OK(cudaMemcpy(out.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }
  T* at = nullptr;
};

// Asks for the temporary memory, then runs.
template <class F>
void run(F&& algorithm) {
  size_t bytes = 0;
  EXPECT_OK(algorithm(nullptr, bytes));
  Device<char> temporary(std::max<size_t>(bytes, 1));
  EXPECT_OK(algorithm(temporary.at, bytes));
  EXPECT_OK(cudaDeviceSynchronize());
}

struct IsOdd {
  __host__ __device__ bool operator()(unsigned value) const { return value & 1; }
};

int main() {
  std::vector<unsigned> values(kCount);
  unsigned seed = 12345;
  for (unsigned& value : values) value = (seed = seed * 1664525u + 1013904223u) >> 8;
  Device<unsigned> in(values), out(kCount);
  Device<int> number(1);

  run([&](void* memory, size_t& bytes) {
    return cub::DeviceReduce::Sum(memory, bytes, in.at, out.at, kCount);
  });
  EXPECT(out.get(1)[0] == std::accumulate(values.begin(), values.end(), 0u));
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceReduce::Max(memory, bytes, in.at, out.at, kCount);
  });
  EXPECT(out.get(1)[0] == *std::max_element(values.begin(), values.end()));

  std::vector<unsigned> wanted(kCount);
  std::partial_sum(values.begin(), values.end(), wanted.begin());
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, in.at, out.at, kCount);
  });
  EXPECT(out.get(kCount) == wanted);

  wanted = values;
  std::sort(wanted.begin(), wanted.end());
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(memory, bytes, in.at, out.at, kCount);
  });
  EXPECT(out.get(kCount) == wanted);

  wanted.clear();
  std::copy_if(values.begin(), values.end(), std::back_inserter(wanted), IsOdd{});
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceSelect::If(memory, bytes, in.at, out.at, number.at, kCount, IsOdd{});
  });
  EXPECT(number.get(1)[0] == static_cast<int>(wanted.size()));
  EXPECT(out.get(wanted.size()) == wanted);

  constexpr int kBins = 16;
  std::vector<int> bins(kBins);
  for (unsigned value : values) ++bins[value >> 20];
  Device<int> counts(kBins);
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(memory, bytes, in.at, counts.at, kBins + 1, 0u,
                                               1u << 24, kCount);
  });
  EXPECT(counts.get(kBins) == bins);
  return finish();
}
