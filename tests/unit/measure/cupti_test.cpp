// SPDX-License-Identifier: Apache-2.0
// Are CUPTI's records read, and is it told why there are none: not permitted, taken by another
// profiler?
#include "measure/device/cupti.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cupti/cupti.h"

namespace kiln::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CuptiTest : public testing::Test {
 protected:
  CuptiTest() { fake_cupti() = {}; }
};

TEST_F(CuptiTest, KernelsAreReadAndWhatElseRanIsNot) {
  const uint64_t year_2026_ns = 1790000000'000000000ull;
  fake_cupti().records = {{2, year_2026_ns, year_2026_ns + 9, nullptr},
                          {10, year_2026_ns + 100, year_2026_ns + 14933, "_Z9plain_addPfS_"},
                          {10, year_2026_ns + 20000, year_2026_ns + 20001, nullptr}};
  ASSERT_TRUE(cupti_begin(false));
  EXPECT_THAT(fake_cupti().enabled, ElementsAre(10));
  auto records = cupti_end();
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[0].name, "plain_add");
  // To the nanosecond: a double that counts from 1970 has steps of 256.
  EXPECT_EQ((*records)[0].end_ns - (*records)[0].begin_ns, 14833);
  EXPECT_EQ((*records)[1].name, "?");
  EXPECT_TRUE(fake_cupti().enabled.empty());
}

TEST_F(CuptiTest, MemsetsAreFollowedOnRequest) {
  ASSERT_TRUE(cupti_begin(true));
  EXPECT_THAT(fake_cupti().enabled, ElementsAre(10, 2));
  ASSERT_TRUE(cupti_end());
  EXPECT_TRUE(fake_cupti().enabled.empty());
}

TEST_F(CuptiTest, AUserWhoMayNotProfileIsTold) {
  fake_cupti().enable_code = 35;
  auto begun = cupti_begin(false);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().what, "no kernel times from CUPTI");
  EXPECT_THAT(begun.error().why,
              HasSubstr("INSUFFICIENT_PRIVILEGES (35): this user may not profile"));
  EXPECT_THAT(begun.error().fix, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
}

TEST_F(CuptiTest, AnExceptionInACallbackIsAnErrorAtTheEnd) {
  fake_cupti().records = {{10, 100, 200, "_Z9plain_addPfS_"}};
  fake_cupti().out_of_memory = true;
  ASSERT_TRUE(cupti_begin(false));
  auto records = cupti_end();
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().why, "there was not enough memory for its records");
  // The next trace does not inherit it.
  fake_cupti().out_of_memory = false;
  ASSERT_TRUE(cupti_begin(false));
  ASSERT_TRUE(cupti_end());
}

TEST_F(CuptiTest, AnotherProfilerIsTold) {
  fake_cupti().enable_code = 39;
  auto begun = cupti_begin(false);
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().why, HasSubstr("(39): another profiler uses it"));
  // And when it has gone, the next trace works.
  fake_cupti().enable_code = 0;
  ASSERT_TRUE(cupti_begin(false));
  EXPECT_TRUE(cupti_end());
}

}  // namespace
}  // namespace kiln::measure
