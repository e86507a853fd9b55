// SPDX-License-Identifier: Apache-2.0
// Are ELF files, cubins, line tables and archives of the corpus read right, and their damaged forms
// refused with an offset?
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "binary/containers.h"
#include "binary/cubin.h"
#include "binary/line_table.h"
#include "binary/symbols.h"

namespace kiln::binary {
namespace {

using testing::HasSubstr;

std::vector<std::byte> corpus(const char* name) {
  std::ifstream file(std::string(KILN_TEST_DATA) + "/fuzz/corpus/" + name, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

TEST(Elf, SymbolsWithVersions) {
  auto bytes = corpus("versioned.so");
  auto elf = read_elf(bytes);
  ASSERT_TRUE(static_cast<bool>(elf)) << format(elf.error());
  auto symbols = read_symbols(*elf, *elf->find_type(kSectionDynamicSymbols));
  ASSERT_TRUE(static_cast<bool>(symbols));
  bool found = false;
  for (const Symbol& symbol : *symbols)
    if (symbol.name == "f") {
      found = true;
      EXPECT_EQ(symbol.version, "V1");
      EXPECT_TRUE(symbol.default_version);
      EXPECT_EQ(nm_letter(*elf, symbol), 'T');
    }
  EXPECT_TRUE(found);
}

TEST(Elf, EveryTruncationIsAnErrorOrAWholeRead) {
  auto bytes = corpus("host.so");
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    auto elf = read_elf(cut);
    if (!elf) {
      EXPECT_THAT(elf.error().why, HasSubstr("at offset "));
    }
  }
}

TEST(Elf, ASectionBeyondTheFileIsRefused) {
  auto bytes = corpus("host.so");
  auto elf = read_elf(bytes);
  ASSERT_TRUE(static_cast<bool>(elf));
  uint64_t lie = ~uint64_t{0} - 8;
  std::memcpy(bytes.data() + elf->section_table_offset + 64 + 32, &lie, sizeof lie);
  auto refused = read_elf(bytes);
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_THAT(refused.error().why, HasSubstr("a section claims"));
}

TEST(Cubin, ResourcesOfAKernel) {
  auto bytes = corpus("tiny_sm90_lines.cubin");
  auto cubin = read_cubin(bytes);
  ASSERT_TRUE(static_cast<bool>(cubin)) << format(cubin.error());
  EXPECT_EQ(cubin->arch, 90u);
  EXPECT_THAT(std::string(cubin->compiler), HasSubstr("release 13"));
  ASSERT_EQ(cubin->kernels.size(), 1u);
  const Kernel& kernel = cubin->kernels[0];
  EXPECT_EQ(kernel.name, "_Z4tinyPfi");
  EXPECT_EQ(kernel.shared_bytes - kernel.shared_reserved_bytes, 128u);
  EXPECT_EQ(kernel.shared_reserved_bytes, 1024u);
  EXPECT_EQ(kernel.attributes.parameter_bytes, 12u);
  ASSERT_EQ(kernel.attributes.parameters.size(), 2u);
  EXPECT_EQ(kernel.attributes.parameters[0].bytes, 8u);
  EXPECT_EQ(kernel.attributes.parameters[1].offset, 8u);
  EXPECT_EQ(kernel.attributes.barriers, 1u);
  EXPECT_GT(kernel.registers, 0u);
  EXPECT_EQ(kernel.counts[static_cast<size_t>(SassClass::Other)], 0u);
  EXPECT_GT(kernel.counts[static_cast<size_t>(SassClass::Global)], 1u);
}

TEST(Lines, InlinedCodeNamesItsCaller) {
  auto bytes = corpus("tiny_sm90_lines.cubin");
  auto cubin = read_cubin(bytes);
  ASSERT_TRUE(static_cast<bool>(cubin));
  auto table = read_lines(cubin->elf, ".debug_line");
  ASSERT_TRUE(static_cast<bool>(table)) << format(table.error());
  ASSERT_EQ(table->sequences.size(), 1u);
  EXPECT_EQ(table->sequences[0].section, cubin->kernels[0].section);
  bool inlined = false;
  for (const LineRow& row : table->sequences[0].rows) {
    EXPECT_THAT(table->files[row.file], HasSubstr("tiny.cu"));
    if (row.inlined_at < 0) continue;
    inlined = true;
    EXPECT_EQ(demangle(row.function), "twice(float)");
    EXPECT_EQ(row.line, 1u);
    EXPECT_EQ(table->sequences[0].rows[static_cast<size_t>(row.inlined_at)].line, 2u);
  }
  EXPECT_TRUE(inlined);
  EXPECT_EQ(table->find(0, 1u << 30), nullptr);
}

TEST(ControlCode, BitsOfARealInstruction) {
  // ISETP of sm_90: "B-1----:R-:W-:Y:S13" by nvdisasm's words 0x...; stall 13, waits for barrier 1.
  ControlCode code = control_code(0x004fda0003f06270);
  EXPECT_EQ(code.stall, 13);
  EXPECT_EQ(code.write_barrier, 7);
  EXPECT_EQ(code.read_barrier, 7);
  EXPECT_EQ(code.wait_mask, 4);
}

TEST(Wheel, MembersAndNamesThatLeadOut) {
  auto bytes = corpus("wheel.whl");
  auto members = read_zip(bytes);
  ASSERT_TRUE(static_cast<bool>(members)) << format(members.error());
  ASSERT_EQ(members->size(), 2u);
  auto library = unpack_member((*members)[0]);
  ASSERT_TRUE(static_cast<bool>(library));
  EXPECT_EQ(*library, corpus("versioned.so"));
  // "pkg/x.so" becomes "../../xso", and so in both places where zip keeps the name.
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t at = text.find("pkg/x.so"); at != text.npos; at = text.find("pkg/x.so", at + 1))
    std::memcpy(bytes.data() + at, "../../xs", 8);
  auto refused = read_zip(bytes);
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_THAT(refused.error().why, HasSubstr("is outside its folder"));
}

TEST(Wheel, ANameThatDiffersBeforeTheData) {
  auto bytes = corpus("wheel.whl");
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  bytes[text.find("pkg/x.so")] = std::byte{'q'};
  auto refused = read_zip(bytes);
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_THAT(refused.error().why, HasSubstr("has another name before its data"));
}

TEST(Wheel, ABombIsRefused) {
  Member member{"x.so", Bytes(reinterpret_cast<const std::byte*>("abcd"), 4), uint64_t{1} << 30, 8};
  auto refused = unpack_member(member);
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_THAT(refused.error().why, HasSubstr("bytes from 4 packed ones"));
}

}  // namespace
}  // namespace kiln::binary
