// SPDX-License-Identifier: Apache-2.0
// Are the paths of findings shown as people wrote them?
#include "results/findings.h"

#include <gtest/gtest.h>

namespace kiln::results {
namespace {

Findings one_finding() {
  Findings findings;
  Finding& finding = findings.findings.emplace_back();
  finding.places.emplace_back().stack = {{"/srv/p/k/a.cu", 7, ""}, {"/usr/include/b.h", 9, ""}};
  finding.notes = {"set up in /srv/p/k/a.cu:3 (/srv/p/c.cu:1)", "not /x/srv/p/k/a.cu"};
  return findings;
}

TEST(Findings, PathsInsideOfAFolderAreShort) {
  Findings findings = one_finding();
  shorten_paths(findings, "/srv/p", "");
  const Finding& finding = findings.findings[0];
  EXPECT_EQ(finding.places[0].stack[0].file, "k/a.cu");
  EXPECT_EQ(finding.places[0].stack[1].file, "/usr/include/b.h");
  EXPECT_EQ(finding.notes[0], "set up in k/a.cu:3 (c.cu:1)");
  EXPECT_EQ(finding.notes[1], "not /x/srv/p/k/a.cu");
}

TEST(Findings, AFolderIsShownAsItWasWritten) {
  Findings findings = one_finding();
  shorten_paths(findings, "/srv/p/k/", "../k");
  EXPECT_EQ(findings.findings[0].places[0].stack[0].file, "../k/a.cu");
  EXPECT_EQ(findings.findings[0].notes[0], "set up in ../k/a.cu:3 (/srv/p/c.cu:1)");
}

TEST(Findings, TheRootIsNoFolderToShorten) {
  Findings findings = one_finding();
  shorten_paths(findings, "/", "");
  EXPECT_EQ(findings.findings[0].places[0].stack[0].file, "/srv/p/k/a.cu");
}

}  // namespace
}  // namespace kiln::results
