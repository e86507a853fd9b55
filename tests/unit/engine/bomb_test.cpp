// SPDX-License-Identifier: Apache-2.0
// What does PTX that asks for too much of everything meet? An error code and a sentence; the
// process goes on.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness.h"

namespace kiln::engine {
namespace {

using ::testing::HasSubstr;

// The process is alive and an ordinary kernel still runs.
void expect_alive() {
  Session session(kernel_text("u64 p", "ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 7;"));
  std::vector<uint32_t> out(1, 0);
  EXPECT_EQ(session.launch("k", {{1, 1, 1}, {1, 1, 1}}, session.allow(out, "out")).code, 0);
  EXPECT_EQ(out[0], 7u);
}

void expect_refused(const std::string& text, const char* why, int code = 0) {
  Session session(text);
  LaunchOutcome outcome = session.launch("k", {});
  EXPECT_NE(outcome.code, 0);
  if (code) {
    EXPECT_EQ(outcome.code, code);
  }
  EXPECT_THAT(outcome.text, HasSubstr(why));
  expect_alive();
}

std::string entry(const std::string& body) {
  return module_text(".visible .entry k()\n{\n" + body + "\nret;\n}\n");
}

TEST(Bomb, ABillionRegisters) {
  expect_refused(entry(".reg .b32 %r<1000000000>;\nmov.u32 %r999999999, 1;"), "registers");
}

TEST(Bomb, MoreRegistersThanMemory) {
  constexpr int kCount = 20000;  // 2.5 MB a warp, 80 MB a block
  std::string body = fmt::format(".reg .b32 %r<{}>;\nmov.u32 %r0, %laneid;\n", kCount + 1);
  for (int i = 1; i <= kCount; ++i) body += fmt::format("add.u32 %r{}, %r{}, %r0;\n", i, i - 1);
  body += "bar.sync 0;\n";  // all warps of the block at once
  body += "L:\n";           // each is read behind a label, so that none gives its place to another
  for (int i = 0; i <= kCount; ++i) body += fmt::format("add.u32 %r{}, %r0, 1;\n", i);
  setenv("KILN_ENGINE_MEMORY_MB", "40", 1);
  Session session(entry(body));
  LaunchOutcome outcome = session.launch("k", {{64, 1, 1}, {1024, 1, 1}});
  unsetenv("KILN_ENGINE_MEMORY_MB");
  EXPECT_EQ(outcome.code, kLaunchOutOfResources);
  EXPECT_THAT(outcome.text, HasSubstr("Out of memory"));
  EXPECT_EQ(session.launch("k", {{1, 1, 1}, {64, 1, 1}}).code, 0)
      << "what was taken must have been given back";
  expect_alive();
}

TEST(Bomb, MoreLocalMemoryThanThereIs) {
  setenv("KILN_ENGINE_MEMORY_MB", "40", 1);
  Session session(
      entry(".local .align 8 .b8 x[1000000];\n.reg .b64 %rd<2>;\nmov.u64 %rd1, x;\nst.local.u64 "
            "[%rd1], %rd1;"));
  LaunchOutcome outcome = session.launch("k", {{4, 1, 1}, {1024, 1, 1}});
  unsetenv("KILN_ENGINE_MEMORY_MB");
  EXPECT_EQ(outcome.code, kLaunchOutOfResources);
  EXPECT_THAT(outcome.text, HasSubstr("local memory"));
  expect_alive();
}

TEST(Bomb, RecursionWithLargeFrames) {
  expect_refused(module_text(R"(
    .func f() { .local .align 8 .b8 big[65536]; .reg .b64 %rd<2>;
      mov.u64 %rd1, big; st.local.u64 [%rd1], %rd1; call f, (); ret; }
    .visible .entry k() { call f, (); ret; }
  )"),
                 "Stack overflow", kLaunchFailure);
}

TEST(Bomb, RecursionOnManyWarps) {
  Session session(module_text(R"(
    .func f() { .reg .b64 %rd<200>; .reg .b32 %r<4>;
      mov.u32 %r1, %laneid; mul.wide.u32 %rd1, %r1, 3; call f, ();
                add.u64 %rd2, %rd1, 1; ret; }
    .visible .entry k() { call f, (); ret; }
  )"));
  LaunchOutcome outcome = session.launch("k", {{64, 1, 1}, {1024, 1, 1}});
  EXPECT_EQ(outcome.code, kLaunchFailure) << outcome.text;
  expect_alive();
}

TEST(Bomb, GiantLocalMemory) {
  expect_refused(entry(".local .align 8 .b8 x[2000000];\n.reg .b64 %rd<2>;\nmov.u64 %rd1, x;"),
                 "local variables");
  expect_refused(
      entry(".local .align 8 .b8 x[1099511627776];\n.reg .b64 %rd<2>;\nmov.u64 %rd1, x;"),
      "the variable is too large");
}

TEST(Bomb, GiantSharedMemory) {
  expect_refused(entry(".shared .align 8 .b8 x[2000000];\n.reg .b64 %rd<2>;\nmov.u64 %rd1, x;"),
                 "shared variables");
  expect_refused(
      entry(".shared .align 8 .b8 x[1099511627776];\n.reg .b64 %rd<2>;\nmov.u64 %rd1, x;"),
      "the variable is too large");
}

TEST(Bomb, SharedMemoryBeyondTheDevice) {
  expect_refused(entry(".shared .align 8 .b8 x[500000];\n.reg .b64 %rd<2>;\nmov.u64 %rd1, x;"),
                 "shared", kInvalidValue);
}

TEST(Bomb, AGlobalVariableLargerThanMemory) {
  expect_refused(module_text(".global .align 8 .b8 x[1152921504606846976];\n.visible .entry k() { "
                             ".reg .b64 %rd<2>; mov.u64 "
                             "%rd1, x; ret; }"),
                 "the variable is too large");
}

TEST(Bomb, SizesThatOverflow) {
  expect_refused(
      entry(".local .align 8 .b64 x[4611686018427387904];\n.reg .b64 %rd<2>;\nmov.u64 %rd1, x;"),
      "");
  expect_refused(
      entry(
          ".shared .align 8 .b64 x[2305843009213693952][8];\n.reg .b64 %rd<2>;\nmov.u64 %rd1, x;"),
      "");
}

TEST(Bomb, DeepNesting) {
  std::string open(200000, '{'), close(200000, '}');
  Session session(entry(open + close));
  session.launch("k", {});  // either answer, and no crash
  expect_alive();
}

TEST(Bomb, AParameterBlockOfGigabytes) {
  expect_refused(module_text(".visible .entry k(.param .align 8 .b8 p[4294967296]) { ret; }"),
                 "parameters");
}

}  // namespace
}  // namespace kiln::engine
