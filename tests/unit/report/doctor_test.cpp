// SPDX-License-Identifier: Apache-2.0
#include "report/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::report {
namespace {

using testing::HasSubstr;
using testing::Not;

results::DoctorReport examined() {
  results::DoctorReport report;
  report.verdict = "fault";
  report.areas = {{"Build tools", "fault", "no ninja, g++ 12.2.0"}, {"Caches", "ok", "/cache"}};
  report.checks = {{1, "ninja", "Build tools", "fault", "ninja is not there", "kiln setup", true},
                   {2, "g++", "Build tools", "ok", "g++ 12.2.0", "", false},
                   {3, "cache", "Caches", "ok", "it can be written", "", false},
                   {4, "gpu", "GPU, driver", "skip", "no GPU", "", false}};
  report.facts = {{"cores", "2"}};
  return report;
}

TEST(DoctorText, HasOneLineAnAreaAndTheFixBelow) {
  EXPECT_EQ(doctor_text(examined(), {}),
            "[x]  Build tools     no ninja, g++ 12.2.0\n"
            "       x ninja: ninja is not there\n"
            "         fix: kiln setup\n"
            "[ok] Caches          /cache\n"
            "1 fault, 0 warnings; 1 can be fixed with kiln doctor --fix\n");
}

TEST(DoctorText, ShowsEveryCheckAndTheFactsOnRequest) {
  const std::string text = doctor_text(examined(), {false, true});
  EXPECT_THAT(text, HasSubstr("       . g++: g++ 12.2.0\n"));
  EXPECT_THAT(text, HasSubstr("\ncores                  2\n"));
  EXPECT_THAT(text, Not(HasSubstr("gpu")));  // its area has nothing to say
  EXPECT_THAT(doctor_text(examined(), {true, false}), HasSubstr("\x1b[1;31m[x] \x1b[0m"));
}

TEST(DoctorText, SaysThatThereAreNoFaults) {
  EXPECT_EQ(doctor_text({"ok", {{"Caches", "ok", "/cache"}}, {}, {}}, {}),
            "[ok] Caches          /cache\nno faults found\n");
}

}  // namespace
}  // namespace kiln::report
