// SPDX-License-Identifier: Apache-2.0
// Do programs with Thrust have no finding? Results are compared with the host's. Nothing is
// expected (rules.md).
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <vector>

namespace {

using Device = thrust::device_vector<int>;
using Host = std::vector<int>;

constexpr int kAll = 5000;

struct Twice {
  __host__ __device__ int operator()(int v) const { return 2 * v; }
};
struct Odd {
  __host__ __device__ bool operator()(int v) const { return v % 2 != 0; }
};

int cases = 0, wrong = 0;

void check(const char* name, const Host& seen, const Host& wanted) {
  ++cases;
  if (seen == wanted) return;
  ++wrong;
  std::printf("%s: wrong\n", name);
}
Host read(const Device& from) {
  Host out(from.size());
  thrust::copy(from.begin(), from.end(), out.begin());
  return out;
}

void check_sums(const Host& input, const Device& x) {
  Host twice(kAll), sums(kAll);
  std::transform(input.begin(), input.end(), twice.begin(), Twice());
  std::partial_sum(input.begin(), input.end(), sums.begin());
  Device y(kAll);
  thrust::transform(x.begin(), x.end(), y.begin(), Twice());
  check("transform", read(y), twice);
  thrust::inclusive_scan(x.begin(), x.end(), y.begin());
  check("scan", read(y), sums);
  check("reduce", {thrust::reduce(x.begin(), x.end())}, {sums.back()});
  check("transform and reduce",
        {thrust::transform_reduce(x.begin(), x.end(), Twice(), 0, thrust::plus<int>())},
        {2 * sums.back()});
  check("sum of a counting iterator",
        {thrust::reduce(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(kAll))},
        {kAll * (kAll - 1) / 2});
}

void check_orders(const Host& input, const Device& x) {
  Host sorted = input;
  std::sort(sorted.begin(), sorted.end());
  Device y = x;
  thrust::sort(y.begin(), y.end());
  check("sort", read(y), sorted);
  Device keys = x, places(kAll);
  thrust::sequence(places.begin(), places.end());
  thrust::stable_sort_by_key(keys.begin(), keys.end(), places.begin());
  Host order(kAll);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return input[a] < input[b]; });
  check("sort by key", read(places), order);
  thrust::sort(y.begin(), y.end(), thrust::greater<int>());
  std::reverse(sorted.begin(), sorted.end());
  check("sort by a function", read(y), sorted);
  Device back(kAll), again(kAll);
  thrust::gather(places.begin(), places.end(), x.begin(), back.begin());
  check("gather", read(back), read(keys));
  thrust::scatter(back.begin(), back.end(), places.begin(), again.begin());
  check("scatter", read(again), input);
}

void check_choices(const Host& input, const Device& x) {
  Host odd;
  std::copy_if(input.begin(), input.end(), std::back_inserter(odd), Odd());
  Device y(kAll);
  y.resize(thrust::copy_if(x.begin(), x.end(), y.begin(), Odd()) - y.begin());
  check("copy if", read(y), odd);
  Device sorted = x;
  thrust::sort(sorted.begin(), sorted.end());
  std::map<int, int> counts;
  for (int value : input) ++counts[value];
  Device keys(kAll), sums(kAll), ones(kAll, 1);
  const auto ends =
      thrust::reduce_by_key(sorted.begin(), sorted.end(), ones.begin(), keys.begin(), sums.begin());
  sums.resize(ends.second - sums.begin());
  Host wanted;
  for (const auto& [value, count] : counts) wanted.push_back(count);
  check("reduce by key", read(sums), wanted);
  // Not in place: there Thrust 3.0 orders a block's reads before another block's writes with
  // relaxed stores alone, which is a race.
  const auto end = thrust::unique_copy(sorted.begin(), sorted.end(), keys.begin());
  check("unique", {static_cast<int>(end - keys.begin())}, {static_cast<int>(counts.size())});
}

}  // namespace

int main() {
  Host input(kAll);
  for (int i = 0; i < kAll; ++i) input[i] = i * 7919 % 1009;
  const Device x(input.begin(), input.end());
  check_sums(input, x);
  check_orders(input, x);
  check_choices(input, x);
  std::printf("%d cases, %d wrong\n", cases, wrong);
  return wrong ? 1 : 0;
}
