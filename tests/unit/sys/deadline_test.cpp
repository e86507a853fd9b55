// SPDX-License-Identifier: Apache-2.0
// Does work that hangs or throws end with an error?
#include "sys/deadline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <new>
#include <stdexcept>

#include "sys/connection.h"

namespace kiln::sys {
namespace {

const Error kLate{Fault::Environment, "cannot ask", "no answer", ""};

TEST(Within, GivesWhatTheWorkGives) {
  EXPECT_EQ(*within(
                Deadline(60), [] { return Result<int>(7); }, kLate),
            7);
  EXPECT_EQ(within(
                Deadline(60),
                [] {
                  return Result<int>(Error{Fault::Work, "w", "own", ""});
                },
                kLate)
                .error()
                .why,
            "own");
}

TEST(Within, AnExceptionIsAnError) {
  auto result = within(
      Deadline(60), []() -> Result<int> { throw std::bad_alloc(); }, kLate);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "cannot ask");
}

TEST(Within, WhatHangsIsLeftBehind) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  auto result = within(
      Deadline(0.05),
      [from = ends[0]]() -> Result<int> {
        char byte = 0;
        return ::read(from, &byte, 1) == 1 ? 1 : 2;  // nobody writes until the limit is over
      },
      kLate);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().why, "no answer");
  ::close(ends[1]);
}

TEST(Connection, ADeadlineThatIsOverIsAnError) {
  auto opened = Connection::open("a-name-that-nobody-has.invalid", 1, Deadline(-1));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().what, "cannot talk to the server");
}

}  // namespace
}  // namespace kiln::sys
