// SPDX-License-Identifier: Apache-2.0
// Does compiled code stay within what the system and the user allow? Without memory, without pages
// that can be executed, in the child of a fork, and in loops that do not end.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <thread>

#include "engine/compile/facts.h"
#include "harness.h"
#include "scarcity.h"

namespace kiln::engine {
namespace {

// Each lane takes a number of rounds of its own, between 1 and 13, and loads in each.
const std::string kRounds = kernel_text(
    "u64 p, u64 q",
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 7;"
    "rem.u32 %r3, %r2, 13; mov.u32 %r4, 0; mov.f32 %f1, 0f00000000; mov.u32 %r7, %r1;\n"
    "L: and.b32 %r5, %r7, 63; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3;"
    "ld.global.f32 %f2, [%rd4]; fma.rn.f32 %f1, %f1, %f2, %f2; mad.lo.u32 %r7, %r7, 5, 1;"
    "add.u32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r3; @%p1 bra L;\n"
    "mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd2, %rd5; st.global.f32 [%rd6], %f1;");

struct Answer {
  int code = 0;
  std::vector<float> out = std::vector<float>(64);
  CompiledFacts facts;
};

Answer answer(const char* compile, uint64_t no_memory_from = ~uint64_t{0}, bool* lacked = nullptr) {
  std::vector<float> in(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i) / 32;
  Answer out;
  Session session(kRounds);
  float *from = session.allow(in, "in", false), *to = session.allow(out.out, "out");
  setenv("KILN_ENGINE_THREADS", "1", 1);
  setenv("KILN_ENGINE_COMPILE", "0", 1);
  session.launch("k", {{1, 1, 1}, {64, 1, 1}}, from, to);  // decodes
  std::fill(out.out.begin(), out.out.end(), 0.0f);
  setenv("KILN_ENGINE_COMPILE", compile, 1);
  {
    NoMemory none(no_memory_from, false);
    try {
      out.code = session.launch("k", {{1, 1, 1}, {64, 1, 1}}, from, to).code;
    } catch (const std::bad_alloc&) {  // of the launch, whose caller would answer it
      out.code = kMemoryAllocation;
    }
    if (lacked) *lacked = none.happened();
  }
  unsetenv("KILN_ENGINE_COMPILE");
  unsetenv("KILN_ENGINE_THREADS");
  if (auto program = session.image.kernel("k", {true, 0})) out.facts = compiled_facts(**program);
  return out;
}

#if defined(__aarch64__)
constexpr bool kCompiles = true;
#else
constexpr bool kCompiles = false;
#endif

TEST(CompiledLoops, RunWithMasksWhereLanesLeaveOneAfterTheOther) {
  const Answer compiled = answer("always"), interpreted = answer("0");
  EXPECT_EQ(compiled.out, interpreted.out);
  if (!kCompiles) return;
  EXPECT_GT(compiled.facts.entered, compiled.facts.missed);
  EXPECT_EQ(interpreted.facts.entered, 0u);
}

TEST(CompiledLoops, LeaveTheirFactsToWhoAsked) {
  EXPECT_TRUE(kept_facts().empty());
  keep_facts();
  const Answer compiled = answer("always");
  const std::vector<KernelFacts> kept = kept_facts();
  if (!kCompiles) return;
  ASSERT_EQ(kept.size(), 1u);  // the program is gone by now
  EXPECT_EQ(kept[0].name, "k");
  EXPECT_EQ(kept[0].facts.entered, compiled.facts.entered);
  EXPECT_GT(kept[0].facts.compiling_ns, 0u);
  EXPECT_EQ(kept[0].facts.refused, 0u);
  EXPECT_EQ(kept[0].interpreted.count("ret"), 1u);
  EXPECT_EQ(kept[0].interpreted.count("fma.rn.f32"), 0u);
}

TEST(CompiledLoops, GoOnInTheInterpreterWithoutMemory) {
  const Answer wanted = answer("0");
  uint32_t right = 0, refused = 0;
  bool lacked = true;
  for (uint64_t first = 0; lacked; ++first) {
    const Answer got = answer("always", first, &lacked);
    if (got.code != 0) {
      ++refused;  // the launch itself had no memory
      continue;
    }
    ASSERT_EQ(got.out, wanted.out) << "without allocation " << first;
    right += lacked;
  }
  if (!kCompiles) return;
  EXPECT_GT(right, 20u);  // of those that compiling asks for
  EXPECT_LT(refused, 20u);
}

// In a process of its own: a filter stays.
template <class Run>
int status_of_child(Run run) {
  const pid_t child = fork();
  if (child == 0) _exit(run());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool refuse_executable_memory() {
  constexpr auto kNumber = static_cast<uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto kRights = static_cast<uint32_t>(offsetof(seccomp_data, args[2]));
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kRights),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(steps), steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(CompiledLoops, GoOnInTheInterpreterWithoutExecutableMemory) {
  const int status = status_of_child([] {
    const Answer wanted = answer("0");
    if (!refuse_executable_memory()) return 77;
    const Answer got = answer("always");
    if (got.code != 0) return 1;
    if (got.out != wanted.out) return 2;
    return got.facts.compiled || (kCompiles && !got.facts.refused) ? 3 : 0;
  });
  if (status == 77) GTEST_SKIP() << "this system has no seccomp filters";
  EXPECT_EQ(status, 0);
}

TEST(CompiledLoops, ChildrenCompileWhateverOtherThreadsCompile) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own locks do not survive a fork beside threads";
#endif
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      Session session(kRounds);
      std::vector<float> in(64), out(64);
      session.launch("k", {{1, 1, 1}, {64, 1, 1}}, session.allow(in, "in"),
                     session.allow(out, "out"));
    }
  });
  setenv("KILN_ENGINE_COMPILE", "always", 1);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(status_of_child([] {
                alarm(60);
                Session session(kRounds);
                std::vector<float> in(64, 1.0f), out(64);
                const int code = session
                                     .launch("k", {{1, 1, 1}, {64, 1, 1}}, session.allow(in, "in"),
                                             session.allow(out, "out"))
                                     .code;
                return code == 0 && out[0] == 1.0f ? 0 : 1;
              }),
              0)
        << i;
  }
  stop = true;
  other.join();
  unsetenv("KILN_ENGINE_COMPILE");
}

// Two lanes stay in the loop for ever, which the mask of a pass cannot show.
TEST(CompiledLoops, WithMasksReachTheStepLimit) {
  const std::string text = kernel_text(
      "u64 p",
      "mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.f32 %f1, 0f3F800000;\n"
      "L: fma.rn.f32 %f1, %f1, %f1, %f1; add.u32 %r2, %r2, 2; xor.b32 %r3, %r2, %r1;"
      "add.f32 %f2, %f1, %f1; and.b32 %r4, %r3, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra L;");
  setenv("KILN_ENGINE_STEP_LIMIT", "1000000", 1);
  setenv("KILN_ENGINE_COMPILE", "always", 1);
  Session session(text);
  const LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, {32, 1, 1}}, uint64_t{0});
  unsetenv("KILN_ENGINE_COMPILE");
  unsetenv("KILN_ENGINE_STEP_LIMIT");
  EXPECT_NE(outcome.text.find("Step limit reached"), std::string::npos) << outcome.text;
}

// Shared memory has the size of the launch. Code that was made with some of it finds none later,
// also behind a branch, where memory may lack that no lane accesses.
TEST(CompiledLoops, FindNoSharedMemoryInALaunchWithoutIt) {
  for (const char* access : {"st.shared.u32 [%r7], %r3;", "ld.shared.u32 %r4, [%r7];"}) {
    const std::string text = kernel_text(
        "u64 q, u32 n",
        "ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x; mov.u32 %r3, 0;"
        "mul.lo.u32 %r8, %r1, %r9; and.b32 %r6, %r1, 7; add.u32 %r6, %r6, 20; mov.u32 %r4, 0;\n"
        "L: add.u32 %r3, %r3, 1; mad.lo.u32 %r8, %r8, 5, %r9; and.b32 %r5, %r8, 8;"
        "setp.ne.u32 %p1, %r5, 0; @%p1 bra SKIP;\n"
        "mul.lo.u32 %r7, %r3, %r8; and.b32 %r7, %r7, 252; " +
            std::string(access) +
            "\nSKIP: xor.b32 %r4, %r4, %r3; setp.lt.u32 %p2, %r3, %r6; @%p2 bra L;\n"
            "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r4;");
    const auto last_text = [&](const char* compile) {
      setenv("KILN_ENGINE_COMPILE", compile, 1);
      Session session(text);
      std::vector<uint32_t> out(64);
      uint32_t* to = session.allow(out, "out");
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(session.launch("k", {{2, 1, 1}, {64, 1, 1}, 256}, to, 3u).text, "");
      const LaunchOutcome last = session.launch("k", {{1, 1, 1}, {64, 1, 1}, 0}, to, 0u);
      unsetenv("KILN_ENGINE_COMPILE");
      return last.text.substr(0, last.text.find("Address"));
    };
    const std::string wanted = last_text("0");
    EXPECT_NE(wanted, "");
    for (const char* compile : {"always", "alone"}) {
      // In another process: it may end by a signal.
      EXPECT_EQ(status_of_child([&] { return last_text(compile) == wanted ? 0 : 1; }), 0)
          << access << ", " << compile;
    }
  }
}

// Code that is for what an index looks like: by ones at first, by twos for long, by ones again.
// What served for long does not stay the first to be tried.
TEST(CompiledVersions, ComeBack) {
  if (!compiles()) GTEST_SKIP();
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 by",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r2, [by];"
      "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3;"
      "add.s64 %rd5, %rd2, %rd3; mad.lo.u32 %r3, %r2, 64, %r1; mul.wide.u32 %rd6, %r3, 4;"
      "add.s64 %rd7, %rd1, %rd6; ld.global.u32 %r4, [%rd7]; bar.sync 0;\n"
      "mul.wide.u32 %rd8, %r4, 4; add.s64 %rd9, %rd1, %rd8; ld.global.u32 %r5, [%rd9];"
      "xor.b32 %r6, %r5, %r4; mad.lo.u32 %r7, %r6, 77, %r4; mad.lo.u32 %r8, %r7, 33, %r5;"
      "sub.u32 %r9, %r8, %r6; st.global.u32 [%rd5], %r9;");
  constexpr uint32_t kMany = 3000;
  std::vector<uint32_t> in(192), out(64);
  for (uint32_t i = 0; i < 64; ++i) in[i] = i * 5, in[64 + i] = i, in[128 + i] = i * 2;
  setenv("KILN_ENGINE_COMPILE", "always", 1);
  Session session(text);
  const uint32_t* from = session.allow(in, "in", false);
  uint32_t* to = session.allow(out, "out");
  const auto missed = [&](uint32_t by, uint32_t times) {
    for (uint32_t i = 0; i < times; ++i)
      EXPECT_EQ(session.launch("k", {{1, 1, 1}, {64, 1, 1}}, from, to, by).text, "");
    uint32_t all = 0;
    for (const Variant& variant : {Variant{}, Variant{.rows_fill_warps = true}}) {
      if (auto program = session.image.kernel("k", variant))
        all += compiled_facts(**program).missed;
    }
    return all;
  };
  missed(1, 1);
  const uint32_t before = missed(2, kMany), after = missed(1, kMany);
  unsetenv("KILN_ENGINE_COMPILE");
  EXPECT_GT(before, 0u);
  EXPECT_LT(after - before, 100u) << before;
}

}  // namespace
}  // namespace kiln::engine
