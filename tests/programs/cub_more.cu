// SPDX-License-Identifier: Apache-2.0
// Do the other families of cub run: sorts of pairs and segments, scans and sums by key, selections,
// merges, blocks and warps?
#include <algorithm>
#include <cub/cub.cuh>
#include <numeric>
#include <vector>

#include "expect.h"

constexpr int kCount = 10000;

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

template <class F>
void run(F&& algorithm) {
  size_t bytes = 0;
  EXPECT_OK(algorithm(nullptr, bytes));
  Device<char> temporary(std::max<size_t>(bytes, 1));
  EXPECT_OK(algorithm(temporary.at, bytes));
  EXPECT_OK(cudaDeviceSynchronize());
}

struct Less {
  __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};
struct Triple {
  int* data;
  __device__ void operator()(int i) const { data[i] *= 3; }
};

std::vector<int> random_values(unsigned seed, int most) {
  std::vector<int> values(kCount);
  for (int& value : values)
    value = static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 8) % most;
  return values;
}

void sorts() {
  std::vector<int> keys = random_values(1, 1 << 20), values(kCount);
  std::iota(values.begin(), values.end(), 0);
  std::vector<int> order = values;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });
  Device<int> k(keys), v(values), k_out(kCount), v_out(kCount);
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairsDescending(memory, bytes, k.at, k_out.at, v.at, v_out.at,
                                                     kCount);
  });
  EXPECT(v_out.get(kCount) == order);
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceMergeSort::SortKeysCopy(memory, bytes, k.at, k_out.at, kCount, Less{});
  });
  std::sort(keys.begin(), keys.end());
  EXPECT(k_out.get(kCount) == keys);
}

void sums_by_key_and_segment() {
  std::vector<int> keys = random_values(2, 50), values = random_values(3, 1000);
  std::sort(keys.begin(), keys.end());
  std::vector<int> unique, sums, lengths, offsets{0};
  for (int i = 0; i < kCount; ++i) {
    if (i == 0 || keys[i] != keys[i - 1]) {
      if (i) offsets.push_back(i);
      unique.push_back(keys[i]);
      sums.push_back(0);
      lengths.push_back(0);
    }
    sums.back() += values[i];
    ++lengths.back();
  }
  offsets.push_back(kCount);
  const int groups = static_cast<int>(unique.size());
  Device<int> k(keys), v(values), k_out(kCount), v_out(kCount), number(1), at(offsets);
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceReduce::ReduceByKey(memory, bytes, k.at, k_out.at, v.at, v_out.at, number.at,
                                          ::cuda::std::plus<>{}, kCount);
  });
  EXPECT(number.get(1)[0] == groups && k_out.get(groups) == unique && v_out.get(groups) == sums);
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceRunLengthEncode::Encode(memory, bytes, k.at, k_out.at, v_out.at, number.at,
                                              kCount);
  });
  EXPECT(number.get(1)[0] == groups && v_out.get(groups) == lengths);
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(memory, bytes, v.at, v_out.at, groups, at.at, at.at + 1);
  });
  EXPECT(v_out.get(groups) == sums);
  std::vector<int> before(kCount);
  std::exclusive_scan(values.begin(), values.end(), before.begin(), 100);
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(memory, bytes, v.at, v_out.at, ::cuda::std::plus<>{}, 100,
                                          kCount);
  });
  EXPECT(v_out.get(kCount) == before);
}

void selections() {
  std::vector<int> values = random_values(4, 7);
  std::vector<char> flags(kCount);
  for (int i = 0; i < kCount; ++i) flags[i] = i % 3 == 0;
  Device<int> in(values), out(kCount), number(1);
  Device<char> f(flags);
  std::vector<int> wanted;
  for (int i = 0; i < kCount; i += 3) wanted.push_back(values[i]);
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceSelect::Flagged(memory, bytes, in.at, f.at, out.at, number.at, kCount);
  });
  EXPECT(number.get(1)[0] == static_cast<int>(wanted.size()) && out.get(wanted.size()) == wanted);
  wanted = values;
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  run([&](void* memory, size_t& bytes) {
    return cub::DeviceSelect::Unique(memory, bytes, in.at, out.at, number.at, kCount);
  });
  EXPECT(number.get(1)[0] == static_cast<int>(wanted.size()) && out.get(wanted.size()) == wanted);
  EXPECT_OK(cub::DeviceFor::Bulk(kCount, Triple{in.at}));
  std::vector<int> tripled = values;
  for (int& value : tripled) value *= 3;
  EXPECT(in.get(kCount) == tripled);
}

constexpr int kThreads = 128, kItems = 4;
__global__ void of_a_block(const int* in, int* sorted, int* sums, int* warps) {
  using Sort = cub::BlockRadixSort<int, kThreads, kItems>;
  using Scan = cub::BlockScan<int, kThreads>;
  using Reduce = cub::WarpReduce<int>;
  __shared__ union {
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce[kThreads / 32];
  } shared;
  int items[kItems];
  cub::LoadDirectBlocked(static_cast<int>(threadIdx.x), in, items);
  Sort(shared.sort).Sort(items);
  cub::StoreDirectBlocked(static_cast<int>(threadIdx.x), sorted, items);
  __syncthreads();
  int sum = 0;
  Scan(shared.scan).InclusiveSum(in[threadIdx.x], sum);
  sums[threadIdx.x] = sum;
  __syncthreads();
  const int whole = Reduce(shared.reduce[threadIdx.x / 32]).Sum(in[threadIdx.x]);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = whole;
}

void blocks_and_warps() {
  std::vector<int> values = random_values(5, 1000);
  values.resize(kThreads * kItems);
  Device<int> in(values), sorted(values.size()), sums(kThreads), warps(kThreads / 32);
  of_a_block<<<1, kThreads>>>(in.at, sorted.at, sums.at, warps.at);
  EXPECT_OK(cudaDeviceSynchronize());
  std::vector<int> wanted(kThreads), of_warps;
  std::partial_sum(values.begin(), values.begin() + kThreads, wanted.begin());
  for (int i = 0; i < kThreads; i += 32)
    of_warps.push_back(std::accumulate(values.begin() + i, values.begin() + i + 32, 0));
  std::sort(values.begin(), values.end());
  EXPECT(sorted.get(values.size()) == values && sums.get(kThreads) == wanted &&
         warps.get(4) == of_warps);
}

int main() {
  sorts();
  sums_by_key_and_segment();
  selections();
  blocks_and_warps();
  return finish();
}
