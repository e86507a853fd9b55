// SPDX-License-Identifier: Apache-2.0
// Does the vector of a lane move as one, though blocks run on several threads? CUB's look-back
// keeps a flag and its value side by side and counts on it.
#include "harness.h"

namespace kiln::engine {
namespace {

// Even blocks write {n, ~n} for n = 1, 2, ...; odd blocks read what their neighbour writes, and
// count pairs of two writers. Each lane has a place of its own.
std::string writers_and_readers(const std::string& store, const std::string& load) {
  return kernel_text(
      "u64 places, u64 torn, u32 rounds",
      "ld.param.u64 %rd1, [places]; ld.param.u64 %rd2, [torn]; ld.param.u32 %r1, [rounds];\n"
      "mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;\n"
      "shr.u32 %r5, %r3, 1; mad.lo.u32 %r6, %r5, %r4, %r2; mul.wide.u32 %rd3, %r6, 16;\n"
      "add.u64 %rd3, %rd3, %rd1; mul.wide.u32 %rd4, %r6, 4; add.u64 %rd4, %rd4, %rd2;\n"
      "and.b32 %r7, %r3, 1; setp.ne.u32 %p1, %r7, 0; mov.u64 %rd5, 1; mov.u32 %r8, 0; mov.u32 %r9, "
      "0;\n"
      "@%p1 bra READ;\n"
      "WRITE: not.b64 %rd6, %rd5;\n" +
          store +
          "\nadd.u64 %rd5, %rd5, 1; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, %r1;\n"
          "@%p2 bra WRITE; ret;\n"
          "READ:\n" +
          load +
          "\nnot.b64 %rd6, %rd6; setp.ne.u64 %p3, %rd5, %rd6; @%p3 add.u32 %r9, %r9, 1;\n"
          "add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, %r1;\n"
          "@%p2 bra READ; st.global.u32 [%rd4], %r9;");
}

uint32_t torn_pairs(const std::string& store, const std::string& load) {
  constexpr uint32_t kThreads = 256, kBlocks = 8, kRounds = 2000;
  struct alignas(16) Place {
    uint64_t low = 0, high = ~uint64_t{0};
  };
  std::vector<Place> places(kThreads * kBlocks / 2);
  std::vector<uint32_t> torn(kThreads * kBlocks / 2, ~0u);
  Session session(writers_and_readers(store, load));
  EXPECT_EQ(session.load_error, "");
  const LaunchOutcome outcome =
      session.launch("k", {{kBlocks, 1, 1}, {kThreads, 1, 1}}, session.allow(places, "places"),
                     session.allow(torn, "torn"), kRounds);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const Place& place : places) EXPECT_EQ(place.low, kRounds);
  uint32_t sum = 0;
  for (uint32_t count : torn) sum += count;
  return sum;
}

TEST(Whole, VectorsOfRelaxedAccesses) {
  EXPECT_EQ(torn_pairs("st.relaxed.gpu.global.v2.u64 [%rd3], {%rd5, %rd6};",
                       "ld.relaxed.gpu.global.v2.u64 {%rd5, %rd6}, [%rd3];"),
            0u);
  EXPECT_EQ(torn_pairs("st.volatile.global.v2.u64 [%rd3], {%rd5, %rd6};",
                       "ld.volatile.global.v2.u64 {%rd5, %rd6}, [%rd3];"),
            0u);
}

TEST(Whole, ValuesOf128Bits) {
  EXPECT_EQ(
      torn_pairs("{.reg .b128 w; mov.b128 w, {%rd5, %rd6}; st.relaxed.gpu.global.b128 [%rd3], w;}",
                 "{.reg .b128 w; ld.relaxed.gpu.global.b128 w, [%rd3]; mov.b128 {%rd5, %rd6}, w;}"),
      0u);
  EXPECT_EQ(
      torn_pairs(
          "{.reg .b128 w, old; mov.b128 w, {%rd5, %rd6}; atom.global.exch.b128 old, [%rd3], w;}",
          "{.reg .b128 w; ld.relaxed.gpu.global.b128 w, [%rd3]; mov.b128 {%rd5, %rd6}, w;}"),
      0u);
}

}  // namespace
}  // namespace kiln::engine
