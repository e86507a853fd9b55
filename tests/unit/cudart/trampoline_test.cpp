// SPDX-License-Identifier: Apache-2.0
//
// Does a call through a trampoline arrive as it was made, and does each trampoline carry the entry
// that its row of cudart.def says?
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fake_runtime_12.h"
#include "trampoline_calls.h"

class Trampoline : public testing::TestWithParam<trampoline_calls::Case> {};
TEST_P(Trampoline, Call) { EXPECT_STREQ(GetParam().run(), ""); }
INSTANTIATE_TEST_SUITE_P(Calls, Trampoline, testing::ValuesIn(trampoline_calls::kCases),
                         [](const auto& each) { return std::string(each.param.name); });

extern "C" void* kiln_front_symbol(const char* name) { return fake_runtime_12::symbol(name); }

// Every row's entry and trampoline, by name.
#define ROW(name) \
  extern "C" __attribute__((visibility("hidden"))) KilnFrontEntry kiln_front_entry_##name;
#define CUDART_SAME(name, since) ROW(name)
#define CUDART_RETURNS(name, since) ROW(name)
#define CUDART_RENAMED(name, since, on_12) ROW(name)
#define CUDART_RENAMED_ELSE_SAME(name, since, on_12) ROW(name)
#define CUDART_CONVERT(name, since, on_12) ROW(name)
#define CUDART_ONLY_13(name, since) ROW(name)
#define CUDART_REFUSE_ON_12(name, since, why) ROW(name)
#define CUDART_REFUSE(name, since, why) ROW(name)
#define CUDART_ONLY_12(name, since) ROW(name)
#define CUDART_ONLY_12_NOW(name, since, on_13) ROW(name)
#define CUDART_FRONT(name, since)
#include "cudart.def"
#undef ROW
#undef CUDART_SAME
#undef CUDART_RETURNS
#undef CUDART_RENAMED
#undef CUDART_RENAMED_ELSE_SAME
#undef CUDART_CONVERT
#undef CUDART_ONLY_13
#undef CUDART_REFUSE_ON_12
#undef CUDART_REFUSE
#undef CUDART_ONLY_12
#undef CUDART_ONLY_12_NOW
#undef CUDART_FRONT

namespace {

struct Row {
  const char* name;
  const char* on_12;
  const char* on_13;
  const char* why;
  bool converts;
  uint32_t rule;
  uint32_t since;
  const KilnFrontEntry* entry;
};

const Row kRows[] = {
#define CUDART_SAME(name, since) \
  {#name, #name, #name, "", false, KILN_FRONT_SAME, since, &kiln_front_entry_##name},
#define CUDART_RETURNS(name, since) CUDART_SAME(name, since)
#define CUDART_RENAMED(name, since, on_12) \
  {#name, #on_12, #name, "", false, KILN_FRONT_RENAMED, since, &kiln_front_entry_##name},
#define CUDART_RENAMED_ELSE_SAME(name, since, on_12) \
  {#name, #on_12, #name, "", false, KILN_FRONT_RENAMED_ELSE_SAME, since, &kiln_front_entry_##name},
#define CUDART_CONVERT(name, since, on_12) \
  {#name, #on_12, #name, "", true, KILN_FRONT_CONVERT, since, &kiln_front_entry_##name},
#define CUDART_ONLY_13(name, since) \
  {#name, "", #name, "", false, KILN_FRONT_ONLY_13, since, &kiln_front_entry_##name},
#define CUDART_REFUSE_ON_12(name, since, why) \
  {#name, "", #name, why, false, KILN_FRONT_REFUSE_ON_12, since, &kiln_front_entry_##name},
#define CUDART_REFUSE(name, since, why) \
  {#name, "", "", why, false, KILN_FRONT_REFUSE, since, &kiln_front_entry_##name},
#define CUDART_ONLY_12(name, since) \
  {#name, #name, "", "", false, KILN_FRONT_ONLY_12, since, &kiln_front_entry_##name},
#define CUDART_ONLY_12_NOW(name, since, on_13) \
  {#name, #name, #on_13, "", false, KILN_FRONT_ONLY_12, since, &kiln_front_entry_##name},
#define CUDART_FRONT(name, since) {#name, "", "", "", false, 0, since, nullptr},
#include "cudart.def"
};

std::string text_or_empty(const char* text) { return text ? text : ""; }

}  // namespace

TEST(Table, EveryTrampolineCarriesTheEntryOfItsRow) {
  for (const Row& row : kRows) {
    if (!row.entry) continue;
    EXPECT_EQ(text_or_empty(row.entry->name), row.name);
    EXPECT_EQ(text_or_empty(row.entry->name_on_12), row.on_12) << row.name;
    EXPECT_EQ(text_or_empty(row.entry->name_on_13), row.on_13) << row.name;
    EXPECT_EQ(text_or_empty(row.entry->why), row.why) << row.name;
    EXPECT_EQ(row.entry->convert_on_12 != nullptr, row.converts) << row.name;
    EXPECT_EQ(row.entry->rule, row.rule) << row.name;
    EXPECT_EQ(row.entry->since, row.since) << row.name;
    EXPECT_EQ(row.entry->target[0], nullptr) << row.name;
    EXPECT_EQ(row.entry->target[1], nullptr) << row.name;
  }
}

TEST(Table, RefusedCallsYieldAnErrorCodeSaveThoseThatReturnSomethingElse) {
  std::set<std::string> others;
  for (const Row& row : kRows) {
    if (row.entry && row.entry->when_refused) others.insert(row.name);
  }
  EXPECT_EQ(others, (std::set<std::string>{"cudaCreateChannelDesc", "cudaGetErrorName",
                                           "cudaGetErrorString"}));
}

TEST(Table, NamesAreUnique) {
  std::set<std::string> seen;
  for (const Row& row : kRows) EXPECT_TRUE(seen.insert(row.name).second) << row.name;
}

TEST(Table, SinceAgreesWithTheRule) {
  for (const Row& row : kRows) {
    const uint32_t major = row.since / 1000;
    EXPECT_TRUE(major == 12 || major == 13) << row.name;
    if (!row.entry || row.rule == KILN_FRONT_REFUSE) continue;
    EXPECT_EQ(major == 13, row.rule == KILN_FRONT_ONLY_13) << row.name;
  }
}

// What the notes on both majors found, stated once more by hand: a wrong row here would corrupt
// memory in silence.
TEST(Table, NamesWithAnotherAbiIn12AreNotForwardedAsTheyAre) {
  const std::set<std::string> changed = {"cudaChooseDevice",
                                         "cudaGetDeviceProperties",
                                         "cudaGraphAddDependencies",
                                         "cudaGraphAddNode",
                                         "cudaGraphGetEdges",
                                         "cudaGraphNodeGetDependencies",
                                         "cudaGraphNodeGetDependentNodes",
                                         "cudaGraphRemoveDependencies",
                                         "cudaMemAdvise",
                                         "cudaMemPrefetchAsync",
                                         "cudaMemPrefetchAsync_ptsz",
                                         "cudaMemcpy3DBatchAsync",
                                         "cudaMemcpy3DBatchAsync_ptsz",
                                         "cudaMemcpyBatchAsync",
                                         "cudaMemcpyBatchAsync_ptsz",
                                         "cudaSignalExternalSemaphoresAsync",
                                         "cudaSignalExternalSemaphoresAsync_ptsz",
                                         "cudaStreamGetCaptureInfo",
                                         "cudaStreamGetCaptureInfo_ptsz",
                                         "cudaStreamUpdateCaptureDependencies",
                                         "cudaStreamUpdateCaptureDependencies_ptsz",
                                         "cudaWaitExternalSemaphoresAsync",
                                         "cudaWaitExternalSemaphoresAsync_ptsz",
                                         "cudaPointerGetAttributes",
                                         "cudaGetTextureObjectResourceDesc",
                                         "cudaGetSurfaceObjectResourceDesc",
                                         "cudaGetTextureObjectResourceViewDesc",
                                         "cudaGetDriverEntryPoint"};
  size_t found = 0;
  for (const Row& row : kRows) {
    if (changed.count(row.name) == 0) continue;
    ++found;
    EXPECT_TRUE(row.rule == KILN_FRONT_RENAMED || row.rule == KILN_FRONT_CONVERT) << row.name;
  }
  EXPECT_EQ(found, changed.size());
}
