// SPDX-License-Identifier: Apache-2.0
// Does CUB inside of kernels have no finding? Each case is a correct kernel with one of its
// algorithms of a block or a warp; its results are compared with the host's. Nothing is expected
// (rules.md).
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <numeric>
#include <vector>

namespace {

constexpr int kThreads = 128, kItems = 4, kAll = kThreads * kItems;

template <cub::BlockReduceAlgorithm kHow>
__global__ void reduce(const int* x, int* y) {
  using Reduce = cub::BlockReduce<int, kThreads, kHow>;
  __shared__ typename Reduce::TempStorage room;
  int items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  const int sum = Reduce(room).Sum(items);
  __syncthreads();  // the room is used again
  const int most = Reduce(room).Reduce(items[0], [](int a, int b) { return a > b ? a : b; });
  if (threadIdx.x == 0) y[0] = sum, y[1] = most;
}

template <cub::BlockScanAlgorithm kHow>
__global__ void scan(const int* x, int* y) {
  using Scan = cub::BlockScan<int, kThreads, kHow>;
  __shared__ typename Scan::TempStorage room;
  int items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  Scan(room).InclusiveSum(items, items);
  for (int i = 0; i < kItems; ++i) y[threadIdx.x * kItems + i] = items[i];
}

template <cub::BlockLoadAlgorithm kLoad, cub::BlockStoreAlgorithm kStore>
__global__ void load_and_store(const int* x, int* y) {
  using Load = cub::BlockLoad<int, kThreads, kItems, kLoad>;
  using Store = cub::BlockStore<int, kThreads, kItems, kStore>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
  } room;
  int items[kItems];
  Load(room.load).Load(x, items);
  for (int& item : items) item *= 2;
  __syncthreads();
  Store(room.store).Store(y, items);
}

__global__ void radix_sort(const int* x, int* y) {
  using Sort = cub::BlockRadixSort<int, kThreads, kItems>;
  __shared__ typename Sort::TempStorage room;
  int items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  Sort(room).Sort(items);
  for (int i = 0; i < kItems; ++i) y[threadIdx.x * kItems + i] = items[i];
}

struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};

__global__ void merge_sort(const int* x, int* y) {
  using Sort = cub::BlockMergeSort<int, kThreads, kItems>;
  __shared__ typename Sort::TempStorage room;
  int items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  Sort(room).Sort(items, Less());
  for (int i = 0; i < kItems; ++i) y[threadIdx.x * kItems + i] = items[i];
}

template <cub::BlockHistogramAlgorithm kHow>
__global__ void histogram(const int* x, unsigned* y) {
  using Histogram = cub::BlockHistogram<unsigned char, kThreads, kItems, 16, kHow>;
  __shared__ typename Histogram::TempStorage room;
  __shared__ unsigned bins[16];
  unsigned char items[kItems];
  for (int i = 0; i < kItems; ++i)
    items[i] = static_cast<unsigned char>(x[threadIdx.x * kItems + i] & 15);
  Histogram(room).Histogram(items, bins);
  __syncthreads();
  if (threadIdx.x < 16) y[threadIdx.x] = bins[threadIdx.x];
}

__global__ void exchange(const int* x, int* y) {
  using Exchange = cub::BlockExchange<int, kThreads, kItems>;
  __shared__ typename Exchange::TempStorage room;
  int items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[i * kThreads + threadIdx.x];
  Exchange(room).StripedToBlocked(items, items);
  for (int i = 0; i < kItems; ++i) y[threadIdx.x * kItems + i] = 2 * items[i];
}

struct Differs {
  __device__ bool operator()(int a, int b) const { return a != b; }
};
struct Minus {
  __device__ int operator()(int a, int b) const { return a - b; }
};

__global__ void neighbours(const int* x, int* y) {
  using Flags = cub::BlockDiscontinuity<int, kThreads>;
  using Difference = cub::BlockAdjacentDifference<int, kThreads>;
  __shared__ typename Flags::TempStorage flags_room;
  __shared__ typename Difference::TempStorage difference_room;
  int items[kItems], differences[kItems], flags[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  Flags(flags_room).FlagHeads(flags, items, Differs());
  Difference(difference_room).SubtractLeft(items, differences, Minus());
  for (int i = 0; i < kItems; ++i)
    y[threadIdx.x * kItems + i] = differences[i] + (flags[i] ? 1 : 0);
}

__global__ void shuffle_up(const int* x, int* y) {
  using Shuffle = cub::BlockShuffle<int, kThreads>;
  __shared__ typename Shuffle::TempStorage room;
  int items[kItems], before[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  Shuffle(room).Up(items, before);
  for (int i = 0; i < kItems; ++i) y[threadIdx.x * kItems + i] = threadIdx.x || i ? before[i] : 0;
}

// 8 lanes each, and whole warps.
__global__ void warps(const int* x, int* y) {
  using Reduce = cub::WarpReduce<int, 8>;
  using Scan = cub::WarpScan<int>;
  using Sort = cub::WarpMergeSort<int, 1, 32>;
  __shared__ typename Reduce::TempStorage reduce_room[kThreads / 8];
  __shared__ typename Scan::TempStorage scan_room[kThreads / 32];
  __shared__ typename Sort::TempStorage sort_room[kThreads / 32];
  const int value = x[threadIdx.x], warp = threadIdx.x / 32;
  const int sum = Reduce(reduce_room[threadIdx.x / 8]).Sum(value);
  if (threadIdx.x % 8 == 0) y[threadIdx.x / 8] = sum;
  int scanned;
  Scan(scan_room[warp]).InclusiveSum(value, scanned);
  if (threadIdx.x % 32 == 31) y[kThreads / 8 + warp] = scanned;
  int sorted[1] = {value};
  Sort(sort_room[warp]).Sort(sorted, Less());
  if (threadIdx.x % 32 == 0) y[kThreads / 8 + kThreads / 32 + warp] = sorted[0];
}

// ---- The host

int cases = 0, wrong = 0;
std::vector<int> input;
int *x, *y;

template <class Kernel>
void check(const char* name, Kernel kernel, const std::vector<int>& wanted) {
  cudaMemset(y, 0, kAll * sizeof(int));
  kernel();
  std::vector<int> seen(wanted.size());
  const cudaError_t code =
      cudaMemcpy(seen.data(), y, seen.size() * sizeof(int), cudaMemcpyDeviceToHost);
  ++cases;
  if (code == cudaSuccess && seen == wanted) return;
  ++wrong;
  std::printf("%s: wrong (%s)\n", name, cudaGetErrorString(code));
}

std::vector<int> sums_of(int group) {
  std::vector<int> out;
  for (int i = 0; i < kThreads; i += group)
    out.push_back(std::accumulate(&input[i], &input[i] + group, 0));
  return out;
}

std::vector<int> expected_warps() {
  std::vector<int> out = sums_of(8);
  const std::vector<int> of_warps = sums_of(32);
  out.insert(out.end(), of_warps.begin(), of_warps.end());
  for (int i = 0; i < kThreads; i += 32)
    out.push_back(*std::min_element(&input[i], &input[i] + 32));
  return out;
}

void check_reductions() {
  int most = 0;
  for (int i = 0; i < kAll; i += kItems) most = std::max(most, input[i]);
  const std::vector<int> right = {std::accumulate(input.begin(), input.end(), 0), most};
  check(
      "reduce raking", [] { reduce<cub::BLOCK_REDUCE_RAKING><<<1, kThreads>>>(x, y); }, right);
  check(
      "reduce raking commutative",
      [] { reduce<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY><<<1, kThreads>>>(x, y); }, right);
  check(
      "reduce warps", [] { reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS><<<1, kThreads>>>(x, y); },
      right);
  std::vector<int> sums(kAll);
  std::partial_sum(input.begin(), input.end(), sums.begin());
  check(
      "scan raking", [] { scan<cub::BLOCK_SCAN_RAKING><<<1, kThreads>>>(x, y); }, sums);
  check(
      "scan warps", [] { scan<cub::BLOCK_SCAN_WARP_SCANS><<<1, kThreads>>>(x, y); }, sums);
}

void check_moves() {
  std::vector<int> twice(kAll);
  std::transform(input.begin(), input.end(), twice.begin(), [](int v) { return 2 * v; });
  check(
      "load and store transposed",
      [] {
        load_and_store<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>
            <<<1, kThreads>>>(x, y);
      },
      twice);
  check(
      "load and store by warps",
      [] {
        load_and_store<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>
            <<<1, kThreads>>>(x, y);
      },
      twice);
  check(
      "exchange", [] { exchange<<<1, kThreads>>>(x, y); }, twice);
  std::vector<int> differences(kAll), before(kAll);
  for (int i = 0; i < kAll; ++i) {
    differences[i] = i ? input[i] - input[i - 1] + (input[i] != input[i - 1]) : input[0] + 1;
    before[i] = i ? input[i - 1] : 0;
  }
  check(
      "neighbours", [] { neighbours<<<1, kThreads>>>(x, y); }, differences);
  check(
      "shuffle", [] { shuffle_up<<<1, kThreads>>>(x, y); }, before);
}

void check_orders() {
  std::vector<int> sorted = input, bins(16);
  std::sort(sorted.begin(), sorted.end());
  for (int value : input) ++bins[value & 15];
  check(
      "radix sort", [] { radix_sort<<<1, kThreads>>>(x, y); }, sorted);
  check(
      "merge sort", [] { merge_sort<<<1, kThreads>>>(x, y); }, sorted);
  auto* counts = reinterpret_cast<unsigned*>(y);
  check(
      "histogram by sorting", [=] { histogram<cub::BLOCK_HISTO_SORT><<<1, kThreads>>>(x, counts); },
      bins);
  check(
      "histogram by atomics",
      [=] { histogram<cub::BLOCK_HISTO_ATOMIC><<<1, kThreads>>>(x, counts); }, bins);
  check(
      "warps", [] { warps<<<1, kThreads>>>(x, y); }, expected_warps());
}

}  // namespace

int main() {
  for (int i = 0; i < kAll; ++i) input.push_back(i * 7919 % 1009);
  cudaMalloc(&x, kAll * sizeof(int));
  cudaMalloc(&y, kAll * sizeof(int));
  cudaMemcpy(x, input.data(), kAll * sizeof(int), cudaMemcpyHostToDevice);
  check_reductions();
  check_moves();
  check_orders();
  cudaFree(x);
  cudaFree(y);
  std::printf("%d cases, %d wrong\n", cases, wrong);
  return wrong ? 1 : 0;
}
