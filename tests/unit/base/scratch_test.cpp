// SPDX-License-Identifier: Apache-2.0
#include "base/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

namespace kiln {
namespace {

TEST(Scratch, ListsKeepWhatTheyHold) {
  Scratch scratch;
  for (int round = 0; round < 3; ++round) {
    const Scratch::Use here(scratch);
    List<List<uint32_t>> all(300);
    for (uint32_t i = 0; i < 100'000; ++i) all[i % all.size()].push_back(i);
    uint64_t sum = 0;
    for (const List<uint32_t>& each : all) sum = std::accumulate(each.begin(), each.end(), sum);
    EXPECT_EQ(sum, uint64_t{100'000} * 99'999 / 2);
    ListedMap<uint32_t, uint32_t> squares;
    for (uint32_t i = 0; i < 1000; ++i) squares[i] = i * i;
    for (const auto& [number, square] : squares) ASSERT_EQ(square, number * number);
  }
}

TEST(Scratch, GivesTheLastPlaceAgain) {
  Scratch scratch;
  const Scratch::Use here(scratch);
  void* const first = Scratch::allocate(100);
  Scratch::free(first, 100);
  EXPECT_EQ(Scratch::allocate(8), first);
  void* const last = Scratch::allocate(24);
  EXPECT_NE(last, first);
  Scratch::free(first, 8);  // others lie behind it
  EXPECT_NE(Scratch::allocate(8), first);
}

TEST(Scratch, MayBeUsedInsideOfAnother) {
  Scratch outer, inner;
  const Scratch::Use here(outer);
  List<int> before{1, 2, 3};
  {
    const Scratch::Use there(inner);
    const List<int> other{4, 5, 6};
    EXPECT_EQ(other[2], 6);
  }
  before.push_back(4);
  EXPECT_EQ(before, (List<int>{1, 2, 3, 4}));
}

TEST(Scratch, ListsWithoutOneAreTheSystems) {
  List<int> list{1, 2, 3};
  list.resize(100'000, 7);
  EXPECT_EQ(list.back(), 7);
}

}  // namespace
}  // namespace kiln
