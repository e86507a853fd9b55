// SPDX-License-Identifier: Apache-2.0
// Does a kernel's printf print what a GPU prints? The expected lines were seen on an H200 with CUDA
// 13, except where a GPU ends the process (%n) or reads its arguments wrongly (%zu, %hhd).
#include "engine/machine/print.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <vector>

namespace kiln::engine {
namespace {

// Arguments as words of 64 bits, and texts by address.
class Given : public PrintArguments {
 public:
  explicit Given(std::vector<uint64_t> values) : values_(std::move(values)) {}
  bool word(uint32_t* value) override {
    uint64_t wide_value = 0;
    if (!wide(&wide_value)) return false;
    *value = static_cast<uint32_t>(wide_value);
    return true;
  }
  bool wide(uint64_t* value) override {
    if (used == values_.size()) return false;
    *value = values_[used++];
    return true;
  }
  bool text(uint64_t address, std::string* value) override {
    if (address != 1) return false;
    *value = "hello";
    return true;
  }
  size_t used = 0;

 private:
  std::vector<uint64_t> values_;
};

std::string printed(const char* format, std::vector<uint64_t> values, int32_t wanted_count = -1) {
  Given given(std::move(values));
  std::string out;
  int32_t count = 0;
  EXPECT_TRUE(print(format, given, &out, &count)) << format;
  EXPECT_EQ(count, static_cast<int32_t>(given.used)) << format;
  if (wanted_count >= 0) {
    EXPECT_EQ(count, wanted_count) << format;
  }
  return out;
}

uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

TEST(Print, ConversionsOfCuda) {
  EXPECT_EQ(printed("%hd|%d", {70000, 77}, 2), "4464|77");
  EXPECT_EQ(printed("%hx", {~0u}), "ffff");
  EXPECT_EQ(printed("%hhd|%hhu|%d", {300, 300, 5}), "44|44|5");
  EXPECT_EQ(printed("%ld %lld %llu %lx", {~uint64_t{4}, ~uint64_t{4}, ~uint64_t{4}, ~uint64_t{4}}),
            "-5 -5 18446744073709551611 fffffffffffffffb");
  EXPECT_EQ(printed("%zu", {uint64_t{1} << 33}), "8589934592");
  EXPECT_EQ(printed("%+05d|%# x|%.5d|%  d|%u", {5, 255, 42, 42, ~0u}),
            "+0005|0xff|00042| 42|4294967295");
  EXPECT_EQ(printed("%F %hf %lf %a %.2e", {bits(1.5), bits(1.5), bits(1.5), bits(1.5), bits(1.5)}),
            "1.500000 1.500000 1.500000 0x1.8p+0 1.50e+00");
  EXPECT_EQ(printed("%c%c|%5c", {65, 66, 65}), "AB|    A");
  EXPECT_EQ(printed("%p %p|%20p", {0x1234, 0, 0x1234}), "0x1234 (nil)|              0x1234");
  EXPECT_EQ(printed("%s|%.3s|%10s|%-10s|%s", {1, 1, 1, 1, 0}),
            "hello|hel|     hello|hello     |(null)");
  EXPECT_EQ(printed("%*d|%-*d|%.*f", {static_cast<uint32_t>(-6), 5, 6, 5, 2, bits(1.5)}, 6),
            "5     |5     |1.50");
  EXPECT_EQ(printed("%%|%5%|x", {}, 0), "%|%|x");
}

TEST(Print, WhatIsNoConversionIsPrintedAsItStands) {
  EXPECT_EQ(printed("%k %d", {5}, 1), "%k 5");
  EXPECT_EQ(printed("%y%d", {42}, 1), "%y42");
  EXPECT_EQ(printed("%5-d", {}), "%5-d");
  for (const char* format : {"%", "end %5", "end %l", "%-", "%.", "%#08.3", "%hh"})
    EXPECT_EQ(printed(format, {}), format);
}

// It would write through a pointer of the kernel's choice; a GPU's process crashes.
TEST(Print, TheCountIsNeverWritten) {
  for (const char* format : {"%n", "%hhn", "%lln", "%5n", "%*d%n"}) {
    EXPECT_EQ(printed(format, {3, 7}).back(), 'n') << format;
  }
  EXPECT_EQ(printed("%d %n %d", {1, 2}, 2), "1 %n 2");
}

// A text, a width or digits of any size take bounded memory.
TEST(Print, WidthsAreBounded) {
  EXPECT_EQ(printed("%2000d", {5}).size(), 2000u);
  EXPECT_EQ(printed("%999999999999d", {5}).size(), 4096u);
  EXPECT_EQ(printed("%.999999999999f", {bits(1.5)}).size(), 4098u);
  EXPECT_EQ(printed("%*d", {0x7fffffff, 5}).size(), 4096u);
  EXPECT_EQ(printed("%*d", {0x80000000, 5}).size(), 4096u);
}

TEST(Print, AnArgumentThatCannotBeReadIsAFault) {
  Given none({});
  std::string out;
  int32_t count = 0;
  EXPECT_FALSE(print("%d", none, &out, &count));
  Given wild({2});
  EXPECT_FALSE(print("%s", wild, &out, &count));
}

}  // namespace
}  // namespace kiln::engine
