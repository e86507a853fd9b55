// SPDX-License-Identifier: Apache-2.0
// Are lanes chosen by the bits of a mask, whatever their width? And does local memory stay each
// lane's own where only some lanes come to it?
#include "engine/machine/lane_masks.h"

#include <random>

#include "harness.h"

namespace kiln::engine {
namespace {

template <class T>
class SelectLanes : public testing::Test {};
using Widths = testing::Types<uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(SelectLanes, Widths);

TYPED_TEST(SelectLanes, TakesEachLaneByItsBit) {
  using T = TypeParam;
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    T a[kWarpSize], b[kWarpSize], both[kWarpSize], a_one[kWarpSize], b_one[kWarpSize];
    for (uint32_t i = 0; i < kWarpSize; ++i)
      a[i] = static_cast<T>(random()), b[i] = static_cast<T>(random());
    const uint32_t mask = round == 0 ? 0 : round == 1 ? ~0u : static_cast<uint32_t>(random());
    select_lanes(both, a, b, mask);
    select_lanes<T, true, false>(a_one, a, b, mask);
    select_lanes<T, false, true>(b_one, a, b, mask);
    T in_place[kWarpSize];
    std::memcpy(in_place, b, sizeof b);
    select_lanes(in_place, a, in_place, mask);
    for (uint32_t i = 0; i < kWarpSize; ++i) {
      const bool is_set = mask >> i & 1;
      EXPECT_EQ(both[i], is_set ? a[i] : b[i]);
      EXPECT_EQ(in_place[i], both[i]);
      EXPECT_EQ(a_one[i], is_set ? a[0] : b[i]);
      EXPECT_EQ(b_one[i], is_set ? a[i] : b[0]);
    }
  }
}

// Odd lanes and even lanes write at other places of their array, by one address or by one for each
// lane, local or generic; then all read everything.
std::string local_kernel(const std::string& space, const std::string& to_space) {
  std::string body =
      ".local .align 8 .b8 array[64];\n"
      "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u64 %rd2, array;\n" +
      to_space +
      "mov.u32 %r9, 0; mov.u64 %rd9, %rd2;\n"
      "clear: st" +
      space +
      ".u32 [%rd9], 0; add.s64 %rd9, %rd9, 4; add.u32 %r9, %r9, 1;\n"
      "setp.lt.u32 %p2, %r9, 16; @%p2 bra clear;\n"
      "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1; and.b32 %r3, %r1, 7;\n"
      "mad.wide.u32 %rd3, %r3, 4, %rd2; add.u32 %r4, %r1, 100;\n"
      "@%p1 bra odd;\n"
      "st" +
      space + ".u32 [%rd2+60], %r4; ld" + space +
      ".u32 %r5, [%rd2+60];\n"
      "st" +
      space +
      ".u8 [%rd3+33], %r5; bra join;\n"
      "odd: st" +
      space + ".u32 [%rd3], %r4; ld" + space +
      ".u32 %r5, [%rd3];\n"
      "st" +
      space +
      ".u16 [%rd2+58], %r5;\n"
      "join: mov.u32 %r6, 0; mov.u32 %r7, 0;\n"
      "sum: mul.wide.u32 %rd4, %r7, 4; add.s64 %rd5, %rd2, %rd4; ld" +
      space +
      ".u32 %r8, [%rd5];\n"
      "mad.lo.u32 %r6, %r6, 31, %r8; add.u32 %r7, %r7, 1;\n"
      "setp.lt.u32 %p2, %r7, 16; @%p2 bra sum;\n"
      "mad.wide.u32 %rd6, %r1, 4, %rd1; st.global.u32 [%rd6], %r6;\n";
  return kernel_text("u64 p", body);
}

uint32_t local_wanted(uint32_t thread) {
  uint8_t bytes[64] = {};
  const uint32_t value = thread + 100, at = thread % 8 * 4;
  if (thread % 2 == 1) {
    std::memcpy(bytes + at, &value, 4);
    std::memcpy(bytes + 58, &value, 2);
  } else {
    std::memcpy(bytes + 60, &value, 4);
    bytes[at + 33] = static_cast<uint8_t>(value);
  }
  uint32_t words[16], sum = 0;
  std::memcpy(words, bytes, sizeof words);
  for (uint32_t word : words) sum = sum * 31 + word;
  return sum;
}

void expect_own_local_memory(const std::string& text) {
  for (uint32_t threads : {32u, 45u, 64u}) {
    Session session(text);
    std::vector<uint32_t> out(threads, ~0u), wanted;
    for (uint32_t i = 0; i < threads; ++i) wanted.push_back(local_wanted(i));
    const LaunchOutcome outcome =
        session.launch("k", {{1, 1, 1}, {threads, 1, 1}}, session.allow(out, "out"));
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_EQ(out, wanted);
  }
}

TEST(LocalMemory, IsEachLanesOwn) { expect_own_local_memory(local_kernel(".local", "")); }

TEST(LocalMemory, IsEachLanesOwnByGenericAddresses) {
  expect_own_local_memory(local_kernel("", "cvta.local.u64 %rd2, %rd2;\n"));
}

TEST(LocalMemory, BehindItsEndIsAFault) {
  Session session(kernel_text("u64 p",
                              ".local .align 8 .b8 array[64];\nmov.u64 %rd2, array;\n"
                              "mov.u32 %r1, %tid.x; mad.wide.u32 %rd3, %r1, 4, %rd2;\n"
                              "st.local.u32 [%rd3], %r1;\n"));
  std::vector<uint32_t> out(32);
  EXPECT_NE(session.launch("k", {}, session.allow(out, "out")).code, 0);
}

}  // namespace
}  // namespace kiln::engine
