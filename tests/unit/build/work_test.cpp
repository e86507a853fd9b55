// SPDX-License-Identifier: Apache-2.0
// Which steps does a build run, if what they read changes before, while or after they run?
#include "build/run/work.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <functional>

#include "sys/fake_files.h"

namespace kiln::build {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

// A compiler that makes of /w/a.cu and its header what both hold, and a moment in which somebody
// edits them.
class Compiler final : public sys::Processes {
 public:
  Compiler(sys::FakeFiles& files, std::string staging)
      : files_(files), staging_(std::move(staging)) {}
  std::function<void()> meanwhile;
  int runs = 0;

  Result<sys::ProcessResult> run(const sys::ProcessSpec&) override {
    ++runs;
    // The first on the search path is taken.
    const std::string header = files_.has("/w/first/value.h") ? "/w/first/value.h" : "/w/value.h";
    TRY(std::string text, files_.read(header));
    if (meanwhile) meanwhile();
    files_.add(staging_ + "/a.ptx", "made of " + text);
    files_.add(staging_ + "/a.cu.d", "a.ptx: /w/a.cu " + header + "\n");
    return sys::ProcessResult{};
  }

 private:
  sys::FakeFiles& files_;
  std::string staging_;
};

// One step. Whoever is killed after any of its calls must not leave an output of the old header
// beside a record of the new one.
class StaleSteps : public testing::Test {
 protected:
  StaleSteps() {
    env.set("KILN_CACHE_DIR", "off");
    files.add("/w/a.cu", "#include \"value.h\"\n").add("/w/value.h", "1");
    files.add_directory("/w/first");
    work.plan.build_dir = "/b";
    Step step;
    step.kind = StepKind::Device;
    step.key = "a.cu";
    step.source = "/w/a.cu";
    step.outputs = {"a.ptx"};
    step.writes_depfile = true;
    step.search = {"/w/first", "/w"};
    step.circumstances = "{}";
    step.commands = {{own("cicc")}};
    work.graph.steps.push_back(step);
    begin_build();
  }

  void begin_build() {
    files.add("/b/staging/1/tick");
    work.started_ns = files.state("/b/staging/1/tick").ctime_ns;
  }

  bool run() {
    StepReport report;
    auto code = run_step(work.graph.steps[0], work.step_world(), report);
    return code && *code == 0;
  }

  std::string output() { return files.has("/b/obj/a.ptx") ? *files.read("/b/obj/a.ptx") : ""; }
  bool is_stale() { return stale_steps(work).contains("a.cu"); }
  bool is_recorded() { return files.has("/b/obj/a.cu.reads"); }

  sys::FakeFiles files;
  Compiler processes{files, "/b/staging/1"};
  sys::Environment env;
  World world{files, processes, env, {}, {}, {}};
  Work work{world, {}, "", {}, {}, "/b/staging/1", 0, {}, {}, {}};
};

TEST_F(StaleSteps, WithoutARecordIsEachThatHasNotRun) {
  EXPECT_TRUE(is_stale());
  ASSERT_TRUE(run());
  EXPECT_FALSE(is_stale());
  auto reads = reads_of_all(work);
  ASSERT_TRUE(reads && *reads);
  EXPECT_THAT((*reads)->files, Contains(Field(&ReadFile::path, "/w/value.h")));
  EXPECT_THAT((*reads)->absent, Contains("/w/first/value.h"));
  EXPECT_FALSE(is_stale());
}

TEST_F(StaleSteps, AreThoseWhoseHeaderChangedAfterThem) {
  ASSERT_TRUE(run());
  files.add("/w/value.h", "2");
  EXPECT_TRUE(is_stale());
}

TEST_F(StaleSteps, AreThoseWhoseHeaderChangedWhileTheyRan) {
  processes.meanwhile = [&] { files.add("/w/value.h", "2"); };
  ASSERT_TRUE(run());
  EXPECT_EQ(output(), "made of 1");
  EXPECT_FALSE(is_recorded());
  EXPECT_TRUE(is_stale());
  processes.meanwhile = {};
  ASSERT_TRUE(run());
  EXPECT_EQ(output(), "made of 2");
  EXPECT_FALSE(is_stale());
}

TEST_F(StaleSteps, AreThoseWhoseSourceWentWhileTheyRan) {
  processes.meanwhile = [&] { ASSERT_TRUE(files.remove("/w/a.cu")); };
  (void)run();
  EXPECT_FALSE(is_recorded());
  EXPECT_TRUE(is_stale());
}

TEST_F(StaleSteps, AreThoseWhoseHeaderWasShadowedWhileTheyRan) {
  processes.meanwhile = [&] { files.add("/w/first/value.h", "2"); };
  ASSERT_TRUE(run());
  EXPECT_EQ(output(), "made of 1");
  EXPECT_TRUE(is_stale());
}

TEST_F(StaleSteps, AreThoseWhoseHeaderWasShadowedAfterThem) {
  ASSERT_TRUE(run());
  files.add("/w/first/value.h", "2");
  EXPECT_TRUE(is_stale());
}

TEST_F(StaleSteps, AreThoseThatReadWhatChangedSinceTheBuildBegan) {
  files.add("/w/value.h", "2");
  ASSERT_TRUE(run());
  EXPECT_FALSE(is_stale()) << "it changed before the step";
  auto reads = reads_of_all(work);
  ASSERT_TRUE(reads);
  EXPECT_FALSE(*reads) << "the plan was made before it changed";
  EXPECT_TRUE(is_stale());
}

// A header appears, the step runs and is killed when its output is there; the header goes. All
// that the old record holds is true again, and the output is not of it.
TEST_F(StaleSteps, AreThoseThatWereKilledBetweenOutputAndRecord) {
  ASSERT_TRUE(run());
  files.add("/w/first/value.h", "2");
  files.fail_next_write("/b/obj/a.cu.log", EIO);
  EXPECT_FALSE(run());
  EXPECT_EQ(output(), "made of 2");
  ASSERT_TRUE(files.remove("/w/first/value.h"));
  EXPECT_TRUE(is_stale());
}

TEST_F(StaleSteps, AreNotThoseThatFailedBeforeTheyMadeAnything) {
  ASSERT_TRUE(run());
  files.add("/w/first/value.h", "2");
  files.fail_next_write("/b/staging/1/a.cu.begun", EIO);
  EXPECT_FALSE(run());
  ASSERT_TRUE(files.remove("/w/first/value.h"));
  EXPECT_EQ(output(), "made of 1");
  EXPECT_FALSE(is_stale());
}

TEST_F(StaleSteps, AreThoseWithADamagedRecord) {
  ASSERT_TRUE(run());
  files.add("/b/obj/a.cu.reads", "kiln-reads 1 2\n");
  EXPECT_TRUE(is_stale());
  auto reads = reads_of_all(work);
  ASSERT_TRUE(reads);
  EXPECT_FALSE(*reads);
}

TEST_F(StaleSteps, AreThoseThatAreNotCached) {
  ASSERT_TRUE(run());
  EXPECT_THAT(stale_steps(work), IsEmpty());
  work.graph.steps[0].uncached = "a reason";
  EXPECT_THAT(stale_steps(work), ElementsAre("a.cu"));
}

}  // namespace
}  // namespace kiln::build
