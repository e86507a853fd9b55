// SPDX-License-Identifier: Apache-2.0
// Do Thrust's other algorithms run, with its iterators and vectors?
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/gather.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>
#include <thrust/universal_vector.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "expect.h"

constexpr int kCount = 5000;

struct Mix {
  __host__ __device__ float operator()(int a, float b) const {
    return 2.0f * static_cast<float>(a) + b;
  }
};
struct IsSmall {
  __host__ __device__ bool operator()(int value) const { return value < 100; }
};
struct Halve {
  __host__ __device__ int operator()(int value) const { return value / 2; }
};
struct Product {
  __host__ __device__ int operator()(const thrust::tuple<int, int>& both) const {
    return thrust::get<0>(both) * thrust::get<1>(both);
  }
};

std::vector<int> values_of(unsigned seed, int most) {
  std::vector<int> values(kCount);
  for (int& value : values)
    value = static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 8) % most;
  return values;
}
template <class T>
std::vector<T> host(const thrust::device_vector<T>& from) {
  std::vector<T> out(from.size());
  thrust::copy(from.begin(), from.end(), out.begin());
  return out;
}

void transforms_and_sums() {
  const std::vector<int> values = values_of(1, 1000);
  thrust::device_vector<int> a(values.begin(), values.end());
  thrust::device_vector<float> b(kCount, 0.5f), c(kCount);
  thrust::transform(a.begin(), a.end(), b.begin(), c.begin(), Mix{});
  const std::vector<float> seen = host(c);
  for (int i = 0; i < kCount; ++i) EXPECT(seen[i] == Mix{}(values[i], 0.5f));
  thrust::device_vector<int> sums(kCount);
  thrust::inclusive_scan(thrust::device, a.begin(), a.end(), sums.begin());
  std::vector<int> wanted(kCount);
  std::partial_sum(values.begin(), values.end(), wanted.begin());
  EXPECT(host(sums) == wanted);
  EXPECT(thrust::inner_product(a.begin(), a.end(), a.begin(), 0ll) ==
         std::inner_product(values.begin(), values.end(), values.begin(), 0ll));
  EXPECT(thrust::count_if(a.begin(), a.end(), IsSmall{}) ==
         std::count_if(values.begin(), values.end(), IsSmall{}));
  EXPECT(thrust::max_element(a.begin(), a.end()) - a.begin() ==
         std::max_element(values.begin(), values.end()) - values.begin());
}

void sorts_by_key() {
  std::vector<int> keys = values_of(2, 40), order(kCount);
  thrust::device_vector<int> k(keys.begin(), keys.end()), v(kCount);
  thrust::sequence(v.begin(), v.end());
  thrust::stable_sort_by_key(k.begin(), k.end(), v.begin());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  EXPECT(host(v) == order);
  thrust::device_vector<int> unique(kCount), lengths(kCount), ones(kCount, 1);
  const auto ends =
      thrust::reduce_by_key(k.begin(), k.end(), ones.begin(), unique.begin(), lengths.begin());
  EXPECT(ends.first - unique.begin() == 40);
  EXPECT(lengths[7] == std::count(keys.begin(), keys.end(), 7));
  EXPECT(thrust::lower_bound(k.begin(), k.end(), 13) - k.begin() ==
         std::count_if(keys.begin(), keys.end(), [](int key) { return key < 13; }));
}

void iterators() {
  const auto first = thrust::make_counting_iterator(0);
  const auto halves = thrust::make_transform_iterator(first, Halve{});
  EXPECT(thrust::reduce(halves, halves + 1001) == 250000);
  thrust::device_vector<int> small(kCount), map(100), picked(100);
  const auto end = thrust::copy_if(first, first + kCount, small.begin(), IsSmall{});
  EXPECT(end - small.begin() == 100 && small[99] == 99);
  thrust::transform(first, first + 100, map.begin(), Halve{});
  thrust::gather(map.begin(), map.end(), small.begin(), picked.begin());
  EXPECT(picked[99] == 49);
  const auto both = thrust::make_zip_iterator(thrust::make_tuple(first, halves));
  EXPECT(thrust::transform_reduce(both, both + 10, Product{}, 0, ::cuda::std::plus<int>()) ==
         0 + 0 + 2 + 3 + 8 + 10 + 18 + 21 + 32 + 36);
  thrust::universal_vector<int> shared(64, 3);
  thrust::sequence(shared.begin(), shared.end());
  EXPECT(shared[63] == 63 && thrust::reduce(shared.begin(), shared.end()) == 2016);
}

int main() {
  transforms_and_sums();
  sorts_by_key();
  iterators();
  return finish();
}
