// SPDX-License-Identifier: Apache-2.0
// What does a build record of the files that its steps read, if one changes while they run?
#include "build/run/work.h"

#include <gmock/gmock.h>

#include "sys/fake_files.h"
#include "sys/fake_processes.h"

namespace kiln::build {
namespace {

// One step, which has read a header and looked for another one. Whoever is killed after any of
// these calls must not leave an output of the old header beside a record of the new one.
class RememberSeen : public testing::Test {
 protected:
  RememberSeen() {
    files.add("/w/value.h", "1").add("/w/a.cu", "source");
    files.add("/b/obj/a.seen_before");
    work.plan.build_dir = "/b";
    work.started_ns = files.state("/b/obj/a.seen_before").ctime_ns + 1;
    Step step;
    step.key = "a.cu";
    step.outputs = {"a.o", "a.stub.c"};
    step.inputs = {"/w/a.cu"};
    work.graph.steps.push_back(step);
    files.add("/b/obj/a.o", "made of 1").add("/b/obj/a.stub.c", "made of 1");
    files.add("/b/obj/a.cu.d", "a.o: /w/a.cu /w/value.h\n").add("/b/obj/a.cu.absent", "/w/new.h\n");
    files.add("/b/obj/a.cu.report", "{}");
  }

  void expect_dropped() {
    ASSERT_TRUE(remember_seen(work));
    EXPECT_FALSE(files.has("/b/obj/a.o"));
    EXPECT_FALSE(files.has("/b/obj/a.stub.c"));
    EXPECT_FALSE(files.has("/b/steps/a.cu.seen"));
  }

  sys::FakeFiles files;
  sys::FakeProcesses processes;
  sys::Environment env;
  World world{files, processes, env, {}, {}, {}};
  Work work{world, {}, "", {}, {}, "/b/staging", 0, {}, {}};
};

TEST_F(RememberSeen, KeepsWhatWasMadeOfFilesThatAreAsTheyWere) {
  ASSERT_TRUE(remember_seen(work));
  EXPECT_TRUE(files.has("/b/obj/a.o"));
  auto seen = files.read("/b/steps/a.cu.seen");
  ASSERT_TRUE(seen);
  EXPECT_THAT(*seen, testing::HasSubstr(" /w/value.h\n"));
}

TEST_F(RememberSeen, DropsWhatWasMadeOfAHeaderThatChanged) {
  files.add("/w/value.h", "2");
  expect_dropped();
}

TEST_F(RememberSeen, DropsWhatWasMadeOfASourceThatWent) {
  ASSERT_TRUE(files.remove("/w/a.cu"));
  expect_dropped();
}

TEST_F(RememberSeen, DropsWhatWasMadeBeforeAHeaderAppeared) {
  files.add("/w/new.h");
  expect_dropped();
}

}  // namespace
}  // namespace kiln::build
