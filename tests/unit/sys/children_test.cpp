// SPDX-License-Identifier: Apache-2.0
#include "sys/children.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace kiln::sys {
namespace {

ChildSpec shell_child(const std::string& script, bool talks = false) {
  ChildSpec spec;
  spec.arguments = {"/bin/sh", "-c", script};
  spec.talks = talks;
  return spec;
}

// Until every child has ended, a minute at most. Two may end within one wait.
std::vector<ChildEvent> until_end(Children& children) {
  std::vector<ChildEvent> all;
  for (int i = 0; i < 600 && children.running() > 0; ++i)
    for (ChildEvent& event : children.wait(0.1)) all.push_back(std::move(event));
  return all;
}

TEST(Children, TellWhatEachWroteAndHowItEnded) {
  Children children;
  ASSERT_TRUE(children.start(shell_child("echo data; echo complaint >&2; exit 3")));
  const auto events = until_end(children);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].child, 1);
  EXPECT_EQ(events[0].exit_code, 3);
  EXPECT_EQ(events[0].out, "data\n");
  EXPECT_EQ(events[0].last_err, "complaint\n");
}

TEST(Children, RunSideBySide) {
  Children children;
  // The first waits for a file that the second makes.
  ASSERT_TRUE(children.start(
      shell_child("f=/tmp/kiln-children-$PPID; while [ ! -e $f ]; do sleep 0.01; done; rm $f")));
  ASSERT_TRUE(children.start(shell_child("touch /tmp/kiln-children-$PPID")));
  const auto events = until_end(children);
  EXPECT_EQ(children.running(), 0u);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].exit_code, 0);
  EXPECT_EQ(events[1].exit_code, 0);
}

TEST(Children, TalkLineByLine) {
  Children children;
  auto child =
      children.start(shell_child("while read line; do echo \"heard $line\"; done; exit 0", true));
  ASSERT_TRUE(child);
  ASSERT_TRUE(children.say(*child, "one"));
  auto events = children.wait(10);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_FALSE(events[0].ended);
  EXPECT_EQ(events[0].line, "heard one");
  children.kill(*child, SIGKILL);
  events = until_end(children);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().signal, SIGKILL);
  EXPECT_FALSE(children.say(*child, "two"));
}

TEST(Children, OneThatWentAwayDoesNotEndThisProcess) {
  Children children;
  auto child = children.start(shell_child("exec <&-; sleep 0.2", true));
  ASSERT_TRUE(child);
  ::usleep(100000);
  EXPECT_FALSE(children.say(*child, std::string(1 << 20, 'x')));
}

TEST(Children, AProgramThatIsNotThereIsAnError) {
  Children children;
  ChildSpec spec;
  spec.arguments = {"/nowhere/at/all"};
  auto child = children.start(spec);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().what, "cannot start /nowhere/at/all");
}

TEST(Children, TheWaitEndsInTime) {
  Children children;
  ASSERT_TRUE(children.start(shell_child("sleep 30")));
  EXPECT_TRUE(children.wait(0.05).empty());
}

// Reported as a number through a pipe: between fork and exec nothing that takes a lock may be
// called.
TEST(Children, WhatCannotBecomeItsProgramIsAnErrorOfTheStart) {
  Children children;
  ChildSpec spec = shell_child("true");
  spec.directory = "/nowhere/at/all";
  auto child = children.start(spec);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().why, "No such file or directory");
  EXPECT_EQ(children.running(), 0u);
  spec.directory.clear();
  spec.arguments[0] = "/etc/passwd";
  EXPECT_FALSE(children.start(spec));
  ASSERT_TRUE(children.start(shell_child("true")));
  EXPECT_EQ(until_end(children).size(), 1u);
}

}  // namespace
}  // namespace kiln::sys
