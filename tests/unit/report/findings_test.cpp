// SPDX-License-Identifier: Apache-2.0
// Are the names of kernels short enough to read?
#include "report/findings.h"

#include <gtest/gtest.h>

namespace kiln::report {
namespace {

TEST(FoldedName, ShortNamesAreWhole) {
  EXPECT_EQ(folded_name("void scale<float, 4>(float*, int)"), "void scale<float, 4>(float*, int)");
}

TEST(FoldedName, LongTemplateArgumentsAreLeftOut) {
  const std::string inner(90, 'x');
  EXPECT_EQ(folded_name("void cub::scan<cub::Policy<" + inner + ">, int>(int*, Op<float>)"),
            "void cub::scan<...>(int*, Op<float>)");
  EXPECT_EQ(folded_name("void k<" + inner + ">(" + inner + ", " + inner + ")"), "void k<...>(...)");
}

TEST(FoldedName, OddNamesStayAsTheyAre) {
  const std::string open = "k<" + std::string(120, 'x');  // never closed
  EXPECT_EQ(folded_name(open), open);
  const std::string shift = "bool operator<<" + std::string(120, 'x');
  EXPECT_EQ(folded_name(shift), shift);
}

}  // namespace
}  // namespace kiln::report
