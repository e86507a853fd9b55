// SPDX-License-Identifier: Apache-2.0
// Which tensor copies does the engine stop, as a GPU does? The copies that work are files of
// tests/ptx.
#include "engine/machine/fault.h"
#include "ptx_case.h"

namespace kiln::engine {
namespace {

// CUTLASS and Triton do this to the map of a tensor of less than 128 KB.
void clear_bit_21(TensorMap* map) {
  uint64_t words[sizeof *map / 8];
  std::memcpy(words, map, sizeof words);
  words[1] &= ~(uint64_t{1} << 21);
  std::memcpy(map, words, sizeof words);
}

TEST(TensorMap, TheSecondWordHasNothingThatTheEngineReads) {
  // One of two neighbours of 2 MB has the bit in its address.
  constexpr uint64_t kSide = 1 << 21;
  std::vector<std::byte> memory(2 * kSide + 128);
  const auto first = (reinterpret_cast<uint64_t>(memory.data()) + 127) & ~uint64_t{127};
  const uint64_t size = 64;
  const uint32_t box = 64, step = 1;
  using Encode = int(TensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                     const uint32_t*, const uint32_t*, int, int, int, int);
  auto* encode = reinterpret_cast<Encode*>(driver_function("cuTensorMapEncodeTiled"));
  for (uint64_t address : {first, first + kSide}) {
    TensorMap map;
    ASSERT_EQ(encode(&map, 0, 1, reinterpret_cast<void*>(address), &size, nullptr, &box, &step, 0,
                     0, 0, 0),
              0);
    clear_bit_21(&map);
    EXPECT_STREQ(why_bad_tensor_map(map), "");
    EXPECT_EQ(map.address, address);
  }
}

// tests/ptx/async/tma_2d_f16.ptx with another innermost coordinate, in elements of 2 bytes.
LaunchOutcome copy_from(int coordinate) {
  const Case c = read_case(KILN_TEST_DATA "/ptx/async/tma_2d_f16.ptx");
  std::string text = program_of(c);
  const std::string before = "mov.u32 c0, 24;";
  const size_t at = text.find(before);
  if (at == text.npos) return {-1, "the file has no such line", false};
  text.replace(at, before.size(), "mov.u32 c0, " + std::to_string(coordinate) + ";");
  struct alignas(1024) Line {
    std::byte bytes[1024] = {};
  };
  std::vector<Line> memory(c.scratch_at() / sizeof(Line) + c.scratch / sizeof(Line) + 1);
  Session session(text);
  EXPECT_EQ(session.load_error, "");
  TensorMap map;
  EXPECT_EQ(make_tensor_map(c, memory[0].bytes + c.scratch_at(), &map), 0);
  return session.launch("k", {{c.grid, 1, 1}, {c.block, 1, 1}}, session.allow(memory, "memory"),
                        map);
}

TEST(TensorCopy, RowsStartAtMultiplesOf16Bytes) {
  for (int aligned : {0, 8, 24, -8, 1 << 20}) {
    const LaunchOutcome outcome = copy_from(aligned);
    EXPECT_EQ(outcome.code, 0) << aligned << ": " << outcome.text;
  }
  for (int between : {1, 4, 20, -4, -1}) {
    const LaunchOutcome outcome = copy_from(between);
    EXPECT_EQ(outcome.code, kIllegalInstruction) << between;
    EXPECT_NE(
        outcome.text.find("Invalid tensor coordinate: the innermost is " + std::to_string(between)),
        std::string::npos)
        << outcome.text;
  }
}

}  // namespace
}  // namespace kiln::engine
