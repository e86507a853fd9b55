// SPDX-License-Identifier: Apache-2.0
// Does kiln report the failure of a process that it watches once, and in that process's own words?
#include "cli/commands/watched_process.h"

#include <gtest/gtest.h>

namespace kiln::cli {
namespace {

const Error kOtherwise{Fault::Work, "add.cu failed", "it ended with exit code 9", ""};

TEST(WatchedProcess, TheErrorOfKilnIsReadBack) {
  const Error error = error_of_kiln(
      "note: something\nerror: no op 'ad' in the library\n  why: it has add\n  fix: did you mean "
      "add?\n",
      2, kOtherwise);
  EXPECT_EQ(error.fault, Fault::Usage);
  EXPECT_EQ(error.what, "no op 'ad' in the library");
  EXPECT_EQ(error.why, "it has add");
  EXPECT_EQ(error.fix, "did you mean add?");
}

TEST(WatchedProcess, AReasonOfSeveralLinesIsWhole) {
  const std::string reason = "add: shapes differ: [8] and [9]\n  at: add.cu:12";
  const Error error = error_of_kiln(
      "warming up\n" + reason + "\nerror: add failed\n  why: add: shapes differ: [8] and [9]\n", 1,
      kOtherwise);
  EXPECT_EQ(error.what, "add failed");
  EXPECT_EQ(error.why, reason);
  EXPECT_EQ(error.fix, "");
}

TEST(WatchedProcess, OtherWordsAndOtherCodesAreNoErrorOfKiln) {
  EXPECT_EQ(error_of_kiln("Segmentation fault\n", 1, kOtherwise).what, kOtherwise.what);
  EXPECT_EQ(error_of_kiln("error: mine\n", 9, kOtherwise).what, kOtherwise.what);
  EXPECT_EQ(error_of_kiln("", 0, kOtherwise).what, kOtherwise.what);
}

TEST(WatchedProcess, AFailureNamesHowItEndedAndHowToTryItAlone) {
  const WatchTarget script{"sanitize", "sanitize", "a.py", {}, {}};
  sys::ProcessResult done;
  done.exit_code = 5;
  Error error = failure_of(script, WatchedProcess::Kind::Script, done, 0);
  EXPECT_EQ(error.fault, Fault::Work);
  EXPECT_EQ(error.why, "it ended with exit code 5");
  EXPECT_NE(error.fix.find("python3 a.py"), std::string::npos);
  done.timed_out = true;
  error = failure_of(script, WatchedProcess::Kind::Script, done, 2);
  EXPECT_EQ(error.what, "cannot sanitize a.py");
  EXPECT_EQ(error.why, "it did not finish in 2 s (--limit)");
}

}  // namespace
}  // namespace kiln::cli
