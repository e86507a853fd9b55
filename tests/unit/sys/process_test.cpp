// SPDX-License-Identifier: Apache-2.0
// Do children end as they should, and with kiln?
#include "sys/process.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "temporary_folder.h"

namespace kiln::sys {
namespace {

using ::testing::HasSubstr;

ProcessSpec shell(std::string script) {
  ProcessSpec spec;
  spec.arguments = {"/bin/sh", "-c", std::move(script)};
  return spec;
}

TEST(Process, GivesOutputAndExitCode) {
  auto result = real_processes().run(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->out, "out\nerr\n");
}

TEST(Process, TellsASignalFromAnExit) {
  auto result = real_processes().run(shell("kill -9 $$"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->signal, SIGKILL);
  EXPECT_EQ(result->exit_code, 128 + SIGKILL);
}

TEST(Process, UsesTheFolderAndEnvironmentGiven) {
  TemporaryFolder folder;
  ProcessSpec spec = shell("pwd; echo $KILN_X");
  spec.directory = folder.path();
  spec.env = Environment{{"KILN_X", "42"}};
  auto result = real_processes().run(spec);
  ASSERT_TRUE(result);
  EXPECT_THAT(result->out, HasSubstr(folder.path().string() + "\n42\n"));
}

TEST(Process, ALimitKillsTheChildAndAllThatItStarted) {
  TemporaryFolder folder;
  for (bool capture : {true, false}) {
    // The grandchild writes its number, keeps the pipe open and would sleep for ever.
    ProcessSpec spec = shell("sh -c 'echo $$ > pid; exec sleep 1000' & wait");
    spec.directory = folder.path();
    spec.capture = capture;
    spec.limit_s = 0.3;
    auto result = real_processes().run(spec);
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->timed_out);
    EXPECT_EQ(result->signal, SIGKILL);
    const auto text = real_files().read(folder.path() / "pid");
    ASSERT_TRUE(text);
    const auto grandchild = static_cast<pid_t>(*text::to_int(text::trim(*text)));
    // Killed, though perhaps not yet waited for by whoever inherited it.
    const auto is_gone = [&] {
      const auto state = real_files().read(fmt::format("/proc/{}/stat", grandchild));
      return !state || state->find(") Z") != std::string::npos;
    };
    while (!is_gone()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(Process, ALimitThatIsNotReachedChangesNothing) {
  for (bool capture : {true, false}) {
    ProcessSpec spec = shell("exit 3");
    spec.capture = capture;
    spec.limit_s = 60;
    auto result = real_processes().run(spec);
    ASSERT_TRUE(result);
    EXPECT_FALSE(result->timed_out);
    EXPECT_EQ(result->exit_code, 3);
  }
}

TEST(Process, AProgramThatIsNotThereIsAnEnvironmentError) {
  ProcessSpec spec;
  spec.arguments = {"/nowhere/tool"};
  auto result = real_processes().run(spec);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().fault, Fault::Environment);
  EXPECT_EQ(result.error().what, "cannot start /nowhere/tool");
}

TEST(Process, TakesMuchOutputWithoutBlocking) {
  auto result = real_processes().run(shell("yes 0123456789 | head -c 1000000"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out.size(), 1000000u);
}

TEST(Process, CallsOnWaitWhileTheChildRuns) {
  int ticks = 0;
  ProcessSpec spec = shell("sleep 1");
  spec.on_wait = [&] { ++ticks; };
  ASSERT_TRUE(real_processes().run(spec));
  EXPECT_GE(ticks, 2);
}

// In a process of its own: the interrupt is remembered for the rest of a process's life.
int status_of(void (*body)()) {
  pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Process, AnInterruptReachesTheChildAndComesBackAsAnError) {
  int status = status_of([] {
    std::thread later([pid = ::getpid()] {
      ::usleep(200'000);
      ::kill(pid, SIGINT);
    });
    double begun = now_seconds();
    auto result = real_processes().run(shell("exec sleep 60"));
    bool right =
        !result && result.error().fault == Fault::Interrupted && now_seconds() - begun < 50;
    later.join();
    ::_exit(right ? 0 : 1);
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Process, AChildDiesWithAKilledParent) {
  TemporaryFolder folder;
  std::string mark = (folder / "pid").string();
  pid_t parent = ::fork();
  if (parent == 0) {
    (void)real_processes().run(
        shell("echo $$ > " + mark + ".tmp; mv " + mark + ".tmp " + mark + "; exec sleep 100"));
    ::_exit(0);
  }
  for (int i = 0; i < 6000 && !real_files().state(mark).exists; ++i) ::usleep(10'000);
  ASSERT_TRUE(real_files().state(mark).exists);
  auto child = text::to_int(text::trim(*real_files().read(mark)));
  ASSERT_TRUE(child);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  bool gone = false;
  for (int i = 0; i < 6000 && !gone; ++i) {
    auto stat = real_files().read("/proc/" + std::to_string(*child) + "/stat");
    gone = !stat || stat->find(") Z ") != std::string::npos;
    ::usleep(10'000);
  }
  EXPECT_TRUE(gone);
}

TEST(Lock, IsFreeWhenItsOwnerWasKilled) {
  TemporaryFolder folder;
  fs::path path = folder / "lock";
  fs::path held = folder / "held";
  pid_t owner = ::fork();
  if (owner == 0) {
    auto lock = FileLock::acquire(path, {});
    (void)real_files().write(held, "");
    ::sleep(100);
    ::_exit(0);
  }
  for (int i = 0; i < 6000 && !real_files().state(held).exists; ++i) ::usleep(10'000);
  ASSERT_TRUE(real_files().state(held).exists);
  std::atomic<bool> waited{false};
  std::thread killer([&] {
    while (!waited) ::usleep(1000);
    ::kill(owner, SIGKILL);
  });
  auto lock = FileLock::acquire(path, [&] { waited = true; });
  killer.join();
  ::waitpid(owner, nullptr, 0);
  EXPECT_TRUE(lock);
  EXPECT_TRUE(waited);
}

}  // namespace
}  // namespace kiln::sys
