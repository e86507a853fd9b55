// SPDX-License-Identifier: Apache-2.0
// Does every instruction form give the bits that a GPU gives? One file of tests/ptx/<chapter> is
// one case (ptx_case.h), and every row of instructions.def has one.
#include <set>

#include "engine/machine/events.h"
#include "ptx/forms.h"
#include "ptx/parser.h"
#include "ptx_case.h"

namespace kiln::engine {
namespace {

class PtxFile : public testing::TestWithParam<std::string> {};

// Asks for every kind of event and looks at none.
struct WatchesAll : Sink {
  uint32_t wanted() const override { return ~0u; }
};

void check_file(const std::string& path, bool for_rows, Sink* sink = nullptr) {
  Case c = read_case(path);
  ASSERT_FALSE(c.outputs.empty()) << "a case without an expected output proves nothing";
  // Aligned as cuMemAlloc aligns.
  struct alignas(1024) Line {
    uint64_t words[128] = {};
  };
  std::vector<Line> memory(c.scratch_at() / sizeof(Line) + c.scratch / sizeof(Line) + 1);
  uint64_t* at = memory[0].words;
  std::byte* scratch = reinterpret_cast<std::byte*>(at) + c.scratch_at();
  for (uint32_t i = 0; i < c.scratch / 4; ++i) std::memcpy(scratch + size_t{i} * 4, &i, 4);
  for (const Column& column : c.inputs) {
    ASSERT_FALSE(column.values.empty());
    for (uint32_t i = 0; i < c.threads(); ++i)
      *at++ = bits_of(column.values[std::min<size_t>(i, column.values.size() - 1)], column.type);
  }
  Session session(program_of(c));
  session.for_rows = for_rows;
  session.device.sink = sink;
  ASSERT_EQ(session.load_error, "");
  Shape3 shape{{c.grid, 1, 1}, {c.block, 1, 1}};
  if (c.cluster > 1) shape.cluster = {c.cluster, 1, 1};
  TensorMap map;
  if (!c.tensor.empty()) {
    ASSERT_EQ(make_tensor_map(c, scratch, &map), 0);
  }
  LaunchOutcome outcome = session.launch("k", shape, session.allow(memory, "memory"), map);
  ASSERT_EQ(outcome.code, 0) << outcome.text << "\n" << program_of(c);
  for (const Column& column : c.outputs) {
    ASSERT_FALSE(column.values.empty());
    for (uint32_t i = 0; i < column.values.size(); ++i) {
      uint32_t bytes = bytes_of_type(column.type);
      uint64_t mask = bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (bytes * 8)) - 1;
      uint64_t wanted = bits_of(column.values[i], column.type) & mask, seen = at[i] & mask;
      if (seen == wanted || is_near(seen, wanted, column)) continue;
      ADD_FAILURE() << column.name << ", lane " << i << ": wanted " << column.values[i] << std::hex
                    << ", seen 0x" << seen;
    }
    at += c.threads();
  }
}

TEST_P(PtxFile, GivesTheExpectedBits) { check_file(GetParam(), false); }
TEST_P(PtxFile, GivesTheExpectedBitsWhereRowsFillWarps) { check_file(GetParam(), true); }
TEST_P(PtxFile, GivesTheExpectedBitsWhenWatched) {
  WatchesAll sink;
  check_file(GetParam(), false, &sink);
  check_file(GetParam(), true, &sink);
}

INSTANTIATE_TEST_SUITE_P(Files, PtxFile, testing::ValuesIn(case_files()), [](const auto& given) {
  const auto path = std::filesystem::relative(given.param, KILN_TEST_DATA "/ptx");
  std::string name = (path.parent_path() / path.stem()).string();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// A chapter is a folder of src/engine/instructions; checks of views are kiln's own.
TEST(PtxFiles, EveryFileIsInAChapter) {
  const std::set<std::string> chapters = {"async",   "compare", "control", "convert",
                                          "float",   "integer", "matrix",  "memory",
                                          "texture", "video",   "views",   "warp"};
  const std::filesystem::path root = KILN_TEST_DATA "/ptx";
  for (const std::string& file : case_files()) {
    const std::filesystem::path path = std::filesystem::relative(file, root);
    std::string chapter = path.parent_path().string();
    if (chapter.starts_with("generated/")) chapter = chapter.substr(10);
    EXPECT_TRUE(chapters.count(chapter)) << path << " is not in tests/ptx/[generated/]<chapter>";
  }
}

TEST(PtxFiles, EveryFormHasAFile) {
  std::set<uint32_t> seen;
  for (const std::string& path : case_files()) {
    const std::string text = program_of(read_case(path));
    auto module = ptx::parse_module(text);
    ASSERT_TRUE(static_cast<bool>(module)) << path << format(module.error());
    for (const ptx::Function& function : module->functions) {
      if (function.body_text.empty()) continue;
      auto body = ptx::parse_body(*module, function);
      ASSERT_TRUE(static_cast<bool>(body)) << path << ": " << format(body.error());
      for (const ptx::Instruction& ins : body->instructions) {
        if (auto match = ptx::match_form(ins)) seen.insert(match->form);
      }
    }
  }
  std::string missing;
  for (uint32_t row = 0; row < ptx::forms().size(); ++row) {
    const ptx::Form& form = ptx::forms()[row];
    // Textures want handles of the runtime: tests/programs/textures.cu.
    const bool of_a_program = form.lowering.find("texture") != form.lowering.npos ||
                              form.lowering.find("surface") != form.lowering.npos;
    if (!seen.count(row) && !of_a_program)
      missing += "\n  " + std::string(form.mnemonic) + " " + std::string(form.modifiers);
  }
  EXPECT_EQ(missing, "") << "forms of instructions.def without a file in tests/ptx/<chapter>";
}

}  // namespace
}  // namespace kiln::engine
