// SPDX-License-Identifier: Apache-2.0
// Does a value stay what it is wherever it lives? More of them than a CPU has registers, across
// calls and loops, in code that is longer than a short jump reaches.
#if __has_include(<asmjit/core.h>)
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/compile/target.h"
#include "engine/memory/code_memory.h"

namespace kiln::engine {
namespace {

// Puts something else into all registers that a function may change.
const void* overwrite_registers(void* count, const void* op) {
  ++*static_cast<uint64_t*>(count);
#if defined(__aarch64__)
  asm volatile(
      "mov x2, #2\nmov x3, #3\nmov x4, #4\nmov x5, #5\nmov x6, #6\nmov x7, #7\nmov x8, #8\n"
      "mov x9, #9\nmov x10, #9\nmov x11, #9\nmov x12, #9\nmov x13, #9\nmov x14, #9\nmov x15, #9\n"
      "mov x16, #9\nmov x17, #9\nmov x19, #9\nmov x20, #9\nmov x28, #9\n"
      "movi v0.16b, #1\nmovi v1.16b, #1\nmovi v2.16b, #1\nmovi v3.16b, #1\nmovi v4.16b, #1\n"
      "movi v5.16b, #1\nmovi v6.16b, #1\nmovi v7.16b, #1\nmovi v8.16b, #1\nmovi v9.16b, #1\n"
      "movi v10.16b, #1\nmovi v11.16b, #1\nmovi v15.16b, #1\nmovi v16.16b, #1\n"
      "movi v17.16b, #1\nmovi v18.16b, #1\nmovi v24.16b, #1\nmovi v31.16b, #1\n" ::
          : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
            "x15", "x16", "x17", "x19", "x20", "x28", "v0", "v1", "v2", "v3", "v4", "v5", "v6",
            "v7", "v8", "v9", "v10", "v11", "v15", "v16", "v17", "v18", "v24", "v31");
#elif defined(__x86_64__)
  asm volatile(
      "mov $1, %%eax\nmov $1, %%ecx\nmov $1, %%edx\nmov $1, %%esi\nmov $1, %%edi\nmov $1, %%r8d\n"
      "mov $1, %%r9d\nmov $1, %%r10d\nmov $1, %%r11d\nmov $1, %%ebx\nmov $1, %%r12d\n"
      "pcmpeqd %%xmm0, %%xmm0\npcmpeqd %%xmm1, %%xmm1\npcmpeqd %%xmm2, %%xmm2\n"
      "pcmpeqd %%xmm3, %%xmm3\npcmpeqd %%xmm7, %%xmm7\npcmpeqd %%xmm12, %%xmm12\n" ::
          : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "rbx", "r12", "xmm0",
            "xmm1", "xmm2", "xmm3", "xmm7", "xmm12");
#endif
  return op;
}

// Lanes of the vectors that code of this CPU may have.
std::vector<uint32_t> widths() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return {8, 16};
#endif
  return {least_row_lanes()};
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) const void* overwrite_more_registers(void* count,
                                                                        const void* op) {
  asm volatile(
      "vpxord %%zmm0, %%zmm0, %%zmm0\nvpxord %%zmm13, %%zmm13, %%zmm13\n"
      "vpxord %%zmm16, %%zmm16, %%zmm16\nvpxord %%zmm20, %%zmm20, %%zmm20\n"
      "vpxord %%zmm28, %%zmm28, %%zmm28\nvpxord %%zmm31, %%zmm31, %%zmm31\n" ::
          : "xmm0", "xmm13", "xmm16", "xmm20", "xmm28", "xmm31");
  return overwrite_registers(count, op);
}
const void* overwriting(uint32_t lanes) {
  return reinterpret_cast<const void*>(lanes == 16 ? overwrite_more_registers
                                                   : overwrite_registers);
}
#else
const void* overwriting(uint32_t) { return reinterpret_cast<const void*>(overwrite_registers); }
#endif

uint32_t run_target(Target& target, Pass& pass) {
  std::vector<std::byte> bytes;
  CodeMemory memory;
  if (!target.finish(&bytes) || !memory.fill(bytes)) {
    ADD_FAILURE() << "no code";
    return 0;
  }
  return std::bit_cast<Code>(memory.begin())(&pass);
}

uint64_t word_in(const Pass& pass, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, pass.scratch + at, 8);
  return word;
}

constexpr int64_t kScratch = offsetof(Pass, scratch);

TEST(CompiledRegisters, AreKeptAcrossCalls) {
  if (!has_target()) GTEST_SKIP() << "no compiler for this CPU";
  for (const uint32_t lanes : widths()) {
    for (uint32_t count : {1u, 5u, 12u, 40u, 90u}) {
      const std::unique_ptr<Target> target = make_target(lanes);
      const auto pass = std::make_unique<Pass>();
      uint64_t calls = 0;
      target->begin();
      std::vector<Reg> words, vectors;
      for (uint64_t i = 0; i < count; ++i) {
        words.push_back(target->new_word()), vectors.push_back(target->new_vector());
        target->constant_word(words.back(), (i + 1) << 33 | i);
        target->constant(vectors.back(), (i * i + 7) << 32 | (i + 3), 8);
      }
      // Twice around, so that what is changed behind the call is there before the next one.
      const Reg left = target->new_word(), counter = target->new_word();
      target->constant_word(left, 2);
      const Label again = target->label();
      target->bind(again);
      target->constant_word(counter, reinterpret_cast<uint64_t>(&calls));
      target->call(overwriting(lanes), counter, nullptr);
      for (uint32_t i = 0; i < count; ++i) {
        target->word_add(words[i], words[i], 1);
        target->binary(Does::Add, Number::U64, vectors[i], vectors[i], vectors[(i + 1) % count]);
      }
      target->call(overwriting(lanes), counter, nullptr);
      target->word_add(left, left, -1);
      target->jump_if(left, true, again);
      const Reg sum = target->new_word(), lane = target->new_word(), folded = target->new_word();
      target->constant_word(sum, 0);
      target->constant_word(folded, 0);
      for (uint32_t i = 0; i < count; ++i) {
        target->word_binary(Does::Add, Number::U64, sum, sum, words[i]);
        target->lane_word(lane, vectors[i], 1, 8);
        target->word_binary(Does::Xor, Number::U64, folded, folded, lane);
        target->word_binary(Does::Add, Number::U64, folded, folded, folded);
      }
      target->store_word(sum, target->pass(), kScratch, 8);
      target->store_word(folded, target->pass(), kScratch + 8, 8);
      target->leave(count);
      ASSERT_EQ(run_target(*target, *pass), count);
      std::vector<uint64_t> numbers;
      uint64_t total = 0, wanted = 0;
      for (uint64_t i = 0; i < count; ++i) {
        total += ((i + 1) << 33 | i) + 2;
        numbers.push_back((i * i + 7) << 32 | (i + 3));
      }
      for (uint32_t round = 0; round < 2; ++round) {
        for (uint32_t i = 0; i < count; ++i) numbers[i] += numbers[(i + 1) % count];
      }
      for (uint64_t number : numbers) wanted = (wanted ^ number) * 2;
      EXPECT_EQ(calls, 4u);
      EXPECT_EQ(word_in(*pass, 0), total) << count;
      EXPECT_EQ(word_in(*pass, 8), wanted) << count;
    }
  }
}

// More than 1 MB.
TEST(CompiledRegisters, JumpsReachAnyPlace) {
  if (!has_target()) GTEST_SKIP() << "no compiler for this CPU";
  for (const uint32_t lanes : widths()) {
    constexpr uint32_t kMany = 300'000;
    for (bool is_set : {false, true}) {
      const std::unique_ptr<Target> target = make_target(lanes);
      const auto pass = std::make_unique<Pass>();
      target->begin();
      const Reg word = target->new_word(), sum = target->new_word(), limit = target->new_word();
      target->constant_word(word, is_set);
      target->constant_word(sum, 5);
      target->constant_word(limit, kMany);
      const Label far = target->label(), bare = target->bare_label(), back = target->label();
      target->bind(back);
      target->jump_if(word, true, far);
      for (uint32_t i = 0; i < kMany; ++i) target->word_add(sum, sum, 1);
      target->jump_if_above(limit, sum, back);
      target->bind(far);
      target->jump_if_bits(word, 2, bare);
      target->store_word(sum, target->pass(), kScratch, 8);
      target->leave(3);
      target->bind(bare);
      target->leave(4);
      EXPECT_EQ(run_target(*target, *pass), 3u);
      EXPECT_EQ(word_in(*pass, 0), is_set ? 5 : kMany + 5);
    }
  }
}

// Those of one loop are in the memory of the loop before it.
TEST(CompiledRegisters, ShareMemoryFromLoopToLoop) {
  if (!has_target()) GTEST_SKIP() << "no compiler for this CPU";
  for (const uint32_t lanes : widths()) {
    const std::unique_ptr<Target> target = make_target(lanes);
    const auto pass = std::make_unique<Pass>();
    constexpr uint64_t kLoops = 5, kValues = 500;
    target->begin();
    const Reg sum = target->new_vector(), left = target->new_word(), out = target->new_word();
    target->constant(sum, 0, 8);
    for (uint64_t loop = 0; loop < kLoops; ++loop) {
      std::vector<Reg> values;
      for (uint64_t i = 0; i < kValues; ++i) {
        values.push_back(target->new_vector());
        target->constant(values.back(), loop * 1000 + i, 8);
      }
      target->constant_word(left, 2);
      const Label again = target->label();
      target->bind(again);
      for (const Reg& each : values) target->binary(Does::Add, Number::U64, sum, sum, each);
      target->word_add(left, left, -1);
      target->jump_if(left, true, again);
    }
    target->lane_word(out, sum, 1, 8);
    target->store_word(out, target->pass(), kScratch, 8);
    target->leave(1);
    EXPECT_EQ(run_target(*target, *pass), 1u);
    EXPECT_EQ(word_in(*pass, 0), 2 * (kLoops * (kValues * (kValues - 1) / 2) + 10'000 * kValues));
  }
}

TEST(CompiledRegisters, MayBeTooFewWithAllMemory) {
  if (!has_target()) GTEST_SKIP() << "no compiler for this CPU";
  for (const uint32_t lanes : widths()) {
    const std::unique_ptr<Target> target = make_target(lanes);
    target->begin();
    std::vector<Reg> vectors;
    for (uint64_t i = 0; i < kSpilledBytes / 16 + 64; ++i) {
      vectors.push_back(target->new_vector());
      target->constant(vectors.back(), i, 8);
    }
    for (const Reg& each : vectors) target->store(each, target->pass(), kScratch);
    target->leave(1);
    std::vector<std::byte> bytes;
    EXPECT_FALSE(target->finish(&bytes));
  }
}

}  // namespace
}  // namespace kiln::engine
#endif
