// SPDX-License-Identifier: Apache-2.0
// Do CUB's algorithms over whole arrays have no finding? They use look-back between blocks, queues
// and last blocks; results are compared with the host's. Nothing is expected (rules.md).
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <numeric>
#include <vector>

namespace {

constexpr int kAll = 20000;

struct Odd {
  __host__ __device__ bool operator()(int v) const { return v % 2 != 0; }
};
struct Less {
  __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};

int cases = 0, wrong = 0;
std::vector<int> input;
int *x, *y, *count;

// CUB is asked twice: for the bytes that it needs, then for the work.
template <class Work>
void check(const char* name, const std::vector<int>& wanted, Work work) {
  cudaMemset(y, 0, 2 * kAll * sizeof(int));
  size_t bytes = 0;
  void* room = nullptr;
  work(room, bytes);
  cudaMalloc(&room, bytes);
  work(room, bytes);
  std::vector<int> seen(wanted.size());
  const cudaError_t code =
      cudaMemcpy(seen.data(), y, seen.size() * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(room);
  ++cases;
  if (code == cudaSuccess && seen == wanted) return;
  ++wrong;
  std::printf("%s: wrong (%s)\n", name, cudaGetErrorString(code));
}

void check_sums() {
  check("reduce", {std::accumulate(input.begin(), input.end(), 0)},
        [](void* room, size_t& bytes) { cub::DeviceReduce::Sum(room, bytes, x, y, kAll); });
  check("max", {*std::max_element(input.begin(), input.end())},
        [](void* room, size_t& bytes) { cub::DeviceReduce::Max(room, bytes, x, y, kAll); });
  std::vector<int> sums(kAll);
  std::partial_sum(input.begin(), input.end(), sums.begin());
  check("inclusive scan", sums,
        [](void* room, size_t& bytes) { cub::DeviceScan::InclusiveSum(room, bytes, x, y, kAll); });
  sums.insert(sums.begin(), 0);
  sums.pop_back();
  check("exclusive scan", sums,
        [](void* room, size_t& bytes) { cub::DeviceScan::ExclusiveSum(room, bytes, x, y, kAll); });
  int* offsets;
  const int begins[] = {0, 100, 5000, kAll};
  cudaMalloc(&offsets, sizeof begins);
  cudaMemcpy(offsets, begins, sizeof begins, cudaMemcpyHostToDevice);
  std::vector<int> parts;
  for (int i = 0; i < 3; ++i)
    parts.push_back(std::accumulate(input.begin() + begins[i], input.begin() + begins[i + 1], 0));
  check("segmented reduce", parts, [=](void* room, size_t& bytes) {
    cub::DeviceSegmentedReduce::Sum(room, bytes, x, y, 3, offsets, offsets + 1);
  });
  cudaFree(offsets);
}

void check_orders() {
  std::vector<int> sorted = input;
  std::sort(sorted.begin(), sorted.end());
  check("radix sort", sorted,
        [](void* room, size_t& bytes) { cub::DeviceRadixSort::SortKeys(room, bytes, x, y, kAll); });
  check("merge sort", sorted, [](void* room, size_t& bytes) {
    cub::DeviceMergeSort::SortKeysCopy(room, bytes, x, y, kAll, Less());
  });
  std::vector<int> bins(64);
  for (int value : input) ++bins[value / 16];
  check("histogram", bins, [](void* room, size_t& bytes) {
    cub::DeviceHistogram::HistogramEven(room, bytes, x, y, 65, 0, 1024, kAll);
  });
}

void check_choices() {
  std::vector<int> odd, all;
  std::copy_if(input.begin(), input.end(), std::back_inserter(odd), Odd());
  check("select", odd, [](void* room, size_t& bytes) {
    cub::DeviceSelect::If(room, bytes, x, y, count, kAll, Odd());
  });
  all = odd;  // the others come in reverse order
  for (int i = kAll - 1; i >= 0; --i) {
    if (!Odd()(input[i])) all.push_back(input[i]);
  }
  check("partition", all, [](void* room, size_t& bytes) {
    cub::DevicePartition::If(room, bytes, x, y, count, kAll, Odd());
  });
  std::vector<int> repeated = input, unique;
  for (int& value : repeated) value /= 256;
  unique = repeated;
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  cudaMemcpy(x, repeated.data(), kAll * sizeof(int), cudaMemcpyHostToDevice);
  check("run lengths", unique, [](void* room, size_t& bytes) {
    cub::DeviceRunLengthEncode::Encode(room, bytes, x, y, y + kAll, count, kAll);
  });
}

}  // namespace

int main() {
  for (int i = 0; i < kAll; ++i) input.push_back(static_cast<int>(i * 7919LL % 1009));
  cudaMalloc(&x, kAll * sizeof(int));
  cudaMalloc(&y, 2 * kAll * sizeof(int));
  cudaMalloc(&count, sizeof(int));
  cudaMemcpy(x, input.data(), kAll * sizeof(int), cudaMemcpyHostToDevice);
  check_sums();
  check_orders();
  check_choices();
  cudaFree(x);
  cudaFree(y);
  cudaFree(count);
  std::printf("%d cases, %d wrong\n", cases, wrong);
  return wrong ? 1 : 0;
}
