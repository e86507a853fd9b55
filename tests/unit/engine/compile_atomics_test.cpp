// SPDX-License-Identifier: Apache-2.0
// Do atomics in compiled code do what the interpreter does? Of every operation and type, in global
// memory, in shared memory and in either, at one address, at neighbours, apart and anywhere, for
// all lanes and for some.
#include <fmt/format.h>

#include <algorithm>

#include "compile_case.h"
#include "engine/machine/spins.h"

namespace kiln::engine::atomics {
namespace {

// One thread: the order of blocks decides what the atomics return.
class OneThread {
 public:
  OneThread() { setenv("KILN_ENGINE_THREADS", "1", 1); }
  ~OneThread() { unsetenv("KILN_ENGINE_THREADS"); }
};

struct Operation {
  const char* what;
  uint32_t bytes;
};
constexpr Operation kOperations[] = {
    {"add.u32", 4}, {"add.s32", 4},  {"min.s32", 4},        {"max.u32", 4}, {"and.b32", 4},
    {"or.b32", 4},  {"xor.b32", 4},  {"inc.u32", 4},        {"dec.u32", 4}, {"exch.b32", 4},
    {"add.f32", 4}, {"add.u64", 8},  {"min.s64", 8},        {"max.u64", 8}, {"xor.b64", 8},
    {"add.f64", 8}, {"exch.b64", 8}, {"add.noftz.f16x2", 4}};

// %r20: a number of the lane's own; %rd20: an address of 8 bytes for it, in memory of 4 KB at %rd9.
const std::string kPlaces[] = {
    "mov.u64 %rd20, %rd9;",                                      // one for all
    "mul.wide.u32 %rd20, %r1, 8; add.s64 %rd20, %rd20, %rd9;",   // neighbours
    "mul.wide.u32 %rd20, %r1, 16; add.s64 %rd20, %rd20, %rd9;",  // apart
    "and.b32 %r21, %r20, 31; mul.wide.u32 %rd20, %r21, 8; add.s64 %rd20, %rd20, %rd9;"};

const std::string kLoop = ".shared .align 8 .b8 own[4096];" + kBegin +
                          "add.s64 %rd9, %rd2, 131072; mov.u32 %r10, 0; mov.u32 %r11, 0;"
                          "mov.u64 %rd11, 0; mov.u32 %r22, own;";
// `work`: what the loop does with %r20 and %rd20.
std::string loop_of(const std::string& place, const std::string& work) {
  return kLoop +
         "L: mad.lo.u32 %r23, %r10, 64, %r1; and.b32 %r23, %r23, 8191; mul.wide.u32 %rd12, %r23, 4;"
         "add.s64 %rd12, %rd12, %rd1; ld.global.u32 %r20, [%rd12];" +
         place + work +
         "add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 20; @%p1 bra L;\n"
         "st.global.u32 [%rd6], %r11; st.global.u64 [%rd6+8], %rd11;";
}

void expect_same(const std::string& body, bool enters = true) {
  const OneThread one;
  const std::string text = kernel_text("u64 p, u64 q, u32 n", body);
  for (KilnDim3 block : {KilnDim3{64, 1, 1}, KilnDim3{16, 6, 1}, KilnDim3{40, 1, 1}}) {
    const Ran compiled = run_compiled(text, block, 3, "always", 11);
    const Ran interpreted = run_compiled(text, block, 3, "0", 11);
    ASSERT_EQ(compiled.text, interpreted.text) << body;
    ASSERT_EQ(compiled.out, interpreted.out) << body << "\nin blocks of " << block.x;
    if (compiles() && enters) {
      EXPECT_GT(compiled.facts.entered - compiled.facts.missed, 0u) << body;
    }
  }
}

std::string operand_of(const Operation& how) {
  return how.bytes == 8 ? "mov.b64 %rd13, {%r20, %r1};" : "";
}

// An atomic, with and without what was there before.
std::string atomic_of(const Operation& how, const char* space, bool returns, const char* at) {
  const char* operand = how.bytes == 8 ? "%rd13" : "%r20";
  if (!returns) return fmt::format("red{}.{} [{}], {};", space, how.what, at, operand);
  return how.bytes == 8 ? fmt::format("atom{}.{} %rd14, [{}], {}; xor.b64 %rd11, %rd11, %rd14;",
                                      space, how.what, at, operand)
                        : fmt::format("atom{}.{} %r24, [{}], {}; mad.lo.u32 %r11, %r11, 3, %r24;",
                                      space, how.what, at, operand);
}

TEST(CompiledAtomics, AreTheInterpretersInGlobalMemory) {
  for (const Operation& how : kOperations) {
    const bool has_reduction = std::string_view(how.what).find("exch") == std::string_view::npos;
    for (const std::string& place : kPlaces) {
      for (const char* space : {".global", ""}) {
        for (bool returns : {true, false}) {
          if (!returns && !has_reduction) continue;
          expect_same(loop_of(place, operand_of(how) + atomic_of(how, space, returns, "%rd20+8")));
        }
      }
    }
  }
}

TEST(CompiledAtomics, AreTheInterpretersInSharedMemory) {
  const std::string begin =
      "sub.s64 %rd20, %rd20, %rd9; cvt.u32.u64 %r25, %rd20; add.u32 %r25, %r25, %r22;";
  const std::string fill = "mov.u64 %rd13, 0; st.shared.u64 [%r25], %rd13; bar.sync 0;\n";
  for (const Operation& how : kOperations) {
    for (const std::string& place : kPlaces) {
      std::string body =
          loop_of(place + begin, operand_of(how) + atomic_of(how, ".shared", true, "%r25"));
      body.insert(kLoop.size(), "mov.u32 %r20, %r1;" + place + begin + fill);
      expect_same(body);
    }
  }
}

// Branches around an atomic, with more than that behind them, and loops in which lanes go apart.
TEST(CompiledAtomics, RunForSomeLanes) {
  for (const Operation& how : kOperations) {
    const std::string atomic = operand_of(how) + atomic_of(how, ".global", true, "%rd20");
    const std::string reduction = std::string_view(how.what).find("exch") == std::string_view::npos
                                      ? operand_of(how) + atomic_of(how, ".global", false, "%rd20")
                                      : atomic;
    for (const std::string& place : kPlaces) {
      const std::string odd = "and.b32 %r26, %r20, 3; setp.eq.u32 %p2, %r26, 1;";
      expect_same(loop_of(place, odd + "@%p2 bra A; " + reduction + "A: "));
      expect_same(loop_of(place, odd + "@%p2 " + reduction), false);
      expect_same(loop_of(place, odd + "@%p2 bra A; add.u32 %r11, %r11, 5; " + atomic +
                                     "mul.lo.u32 %r11, %r11, 7; A: "));
      expect_same(
          loop_of(place, odd + "mov.u32 %r27, 0; B: add.u32 %r27, %r27, 1; @%p2 bra A; " + atomic +
                             "A: and.b32 %r28, %r1, 3; setp.lt.u32 %p3, %r27, %r28; @%p3 bra B;"));
    }
  }
}

// What is out of bounds, or not aligned, is a fault at the same place, and all before it is done.
TEST(CompiledAtomics, FindTheSameFaults) {
  for (const char* far : {"262143", "268435456"}) {
    const std::string place = fmt::format(
        "and.b32 %r21, %r20, 31; mul.wide.u32 %rd20, %r21, 8; add.s64 %rd20, %rd20, %rd9;"
        "setp.eq.u32 %p4, %r10, 7; @%p4 add.s64 %rd20, %rd9, {};",
        far);
    expect_same(loop_of(place, "red.global.add.u32 [%rd20], %r20;"), false);
  }
}

// Of several threads no count is lost.
TEST(CompiledAtomics, CountOnSeveralThreads) {
  for (const char* threads : {"1", "4"}) {
    setenv("KILN_ENGINE_THREADS", threads, 1);
    const std::string text = kernel_text(
        "u64 p, u64 q, u32 n",
        loop_of("mov.u64 %rd20, %rd9; mov.u32 %r20, 1;", "red.global.add.u32 [%rd20], %r20;"));
    const Ran ran = run_compiled(text, {64, 1, 1}, 3, "always", 11);
    EXPECT_EQ(ran.text, "");
    EXPECT_EQ(ran.out[131072 / 4], 3 * 64 * 20u) << threads;
    if (compiles()) {
      EXPECT_GT(ran.facts.entered - ran.facts.missed, 0u);
    }
  }
  unsetenv("KILN_ENGINE_THREADS");
}

// Behind a branch that becomes a mask: where the check of what follows fails, nothing is done
// twice.
TEST(CompiledAtomics, AreDoneOnce) {
  const std::string begin =
      "and.b32 %r26, %r20, 3; setp.eq.u32 %p2, %r26, 1; add.s64 %rd15, %rd2, 262080;"
      "mul.wide.u32 %rd16, %r1, 4; add.s64 %rd15, %rd15, %rd16; setp.gt.u32 %p3, %r1, 15;"
      "selp.b32 %r26, 1, 0, %p3; @%p2 mov.u32 %r26, 1; setp.ne.u32 %p2, %r26, 0;";
  for (const char* behind : {"st.global.u32 [%rd15], %r20;", "red.global.add.u32 [%rd15], 1;",
                             "st.global.u32 [%rd6+4], %r20; st.global.u32 [%rd15], %r20;"}) {
    // Lanes from 16 on go around: for them the place is behind the array.
    expect_same(loop_of("mov.u64 %rd20, %rd9;",
                        begin + "@%p2 bra A; red.global.add.u32 [%rd20], 1;" + behind + "A: "),
                false);
    expect_same(kLoop + "ld.global.u32 %r20, [%rd4];" + begin +
                    "@%p2 bra A; red.global.add.u32 [%rd9], 1;" + behind + "A: ",
                false);
  }
}

// Nor is a store done twice whose value was loaded from its own place. The lanes change memory of
// two allocations, which the check of the atomic refuses.
TEST(CompiledAtomics, BehindAStoreDoNotRepeatIt) {
  const OneThread one;
  const std::string text = kernel_text(
      "u64 p, u64 q, u64 s, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u64 %rd3, [s];"
      "ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;"
      "mad.lo.u32 %r4, %r2, %r3, %r1; sub.s32 %r11, %r1, 5; max.s32 %r11, %r11, 0;"
      "mul.lo.u32 %r10, %r11, 7; xor.b32 %r10, %r10, 5; and.b32 %r10, %r10, 31;"
      "setp.ge.u32 %p1, %r10, %r9;\n"
      "@%p1 bra END; mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd1, %rd4;"
      "ld.global.u32 %r5, [%rd5]; add.u32 %r6, %r5, 1; and.b32 %r11, %r11, 1;"
      "add.u32 %r6, %r6, %r11; and.b32 %r7, %r5, 1; setp.eq.u32 %p2, %r7, 0;"
      "selp.b64 %rd6, %rd2, %rd3, %p2; and.b32 %r8, %r5, 7; mul.wide.u32 %rd7, %r8, 4;"
      "add.s64 %rd8, %rd6, %rd7; st.global.u32 [%rd5], %r6; red.global.add.u32 [%rd8], 1;\n"
      "END: ");
  const auto run = [&](const char* compile) {
    setenv("KILN_ENGINE_COMPILE", compile, 1);
    Session session(text);
    std::mt19937 random(1);
    std::vector<uint32_t> values(2048), even(64), odd(64);
    for (uint32_t& value : values) value = random() % 100;
    const LaunchOutcome outcome =
        session.launch("k", {{64, 1, 1}, {32, 1, 1}}, session.allow(values, "values"),
                       session.allow(even, "even"), session.allow(odd, "odd"), 20u);
    unsetenv("KILN_ENGINE_COMPILE");
    EXPECT_EQ(outcome.text, "");
    values.insert(values.end(), even.begin(), even.end());
    values.insert(values.end(), odd.begin(), odd.end());
    return values;
  };
  EXPECT_EQ(run("always"), run("0"));
}

// A loop that an atomic decides to leave waits for others, one that only counts does not.
TEST(CompiledAtomics, LocksAreNotCompiledLoops) {
  const OneThread one;
  const std::string lock =
      "L: atom.global.exch.b32 %r24, [%rd9], 1; setp.ne.u32 %p2, %r24, 0; @%p2 bra L;"
      "ld.volatile.global.u32 %r25, [%rd9+64]; add.u32 %r25, %r25, %r1;"
      "st.volatile.global.u32 [%rd9+64], %r25; membar.gl; st.volatile.global.u32 [%rd9], 0;\n"
      "st.global.u32 [%rd6], %r25;";
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kLoop + lock);
  const Ran compiled = run_compiled(text, {1, 1, 1}, 3, "always", 11);
  EXPECT_EQ(compiled.text, "");
  EXPECT_EQ(compiled.out, run_compiled(text, {1, 1, 1}, 3, "0", 11).out);
}

// What an atomic returns may go through memory before it decides.
TEST(CompiledAtomics, LocksMayLookByWayOfMemory) {
  const OneThread one;
  const std::string lock =
      ".local .align 4 .b8 frame[16]; mov.u32 %r28, frame;\n"
      "L: atom.global.exch.b32 %r24, [%rd9], 1; st.local.u32 [%r28], %r24; ld.local.u32 %r27, "
      "[%r28];"
      "setp.ne.u32 %p2, %r27, 0; @%p2 bra L;"
      "ld.volatile.global.u32 %r25, [%rd9+64]; add.u32 %r25, %r25, 1;"
      "st.volatile.global.u32 [%rd9+64], %r25; membar.gl; st.volatile.global.u32 [%rd9], 0;\n";
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kLoop + lock);
  const Ran ran = run_compiled(text, {256, 1, 1}, 3, "always", 11);
  EXPECT_EQ(ran.text, "");
  EXPECT_EQ(ran.out[(131072 + 64) / 4], 3 * 256u);
}

// A store that only the lane with the lock does is a way through memory too.
TEST(CompiledAtomics, LocksMayLookByWayOfAGuardedStore) {
  const auto spins = [](const std::string& store) {
    Session session(kernel_text(
        "u64 p, u64 q, u32 n",
        kLoop + "L: atom.global.exch.b32 %r24, [%rd9], 1; setp.eq.u32 %p2, %r24, 0;" + store +
            "ld.shared.u32 %r25, [%r22]; setp.eq.u32 %p3, %r25, 0; @%p3 bra L;"));
    const auto program = session.image.kernel("k", {true, 0, false});
    return program && std::ranges::any_of((*program)->ops, [](const Op& op) {
             return op.target && op.target < &op && (op.y & kSpins);
           });
  };
  EXPECT_TRUE(spins("@%p2 st.shared.u32 [%r22], 1;"));
  EXPECT_TRUE(spins("selp.u32 %r26, 1, 0, %p2; st.shared.u32 [%r22], %r26;"));
  EXPECT_FALSE(spins("st.shared.u32 [%r22], 1;"));
}

}  // namespace
}  // namespace kiln::engine::atomics
