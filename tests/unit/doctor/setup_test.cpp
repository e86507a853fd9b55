// SPDX-License-Identifier: Apache-2.0
// Does setup plan only what is missing, is it the same the second time, and does it undo all it did
// and nothing else?
#include "doctor/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine.h"
#include "sys/fake_files.h"
#include "sys/fake_processes.h"

namespace kiln::doctor {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

struct SetupTest : testing::Test {
  sys::FakeFiles files;
  sys::FakeProcesses processes;
  sys::Environment env{{"HOME", "/h/u"}};
  Outside outside{files, processes, env};
  Facts facts = good_machine();
  SetupOptions options;

  SetupTest() {
    options.folder = "/h/u/.local/share/kiln";
    facts.python.has_pip = true;
    facts.variables.arch_list = "";
  }
  std::vector<std::string> planned() {
    std::vector<std::string> out;
    auto plan = plan_setup(facts, options, outside);
    if (!plan) return {"error: " + plan.error().what + ": " + plan.error().why};
    for (const Action& action : plan->actions) out.push_back(action.what);
    return out;
  }
  Status apply() {
    auto plan = plan_setup(facts, options, outside);
    if (!plan) return plan.error();
    return apply_setup(*plan, options, outside, {});
  }
};

TEST_F(SetupTest, WritesOnlyTheEnvFileWhereAllIsThere) {
  auto plan = plan_setup(facts, options, outside);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->actions.size(), 1u);
  EXPECT_THAT(plan->found, Contains(HasSubstr("ninja 1.11.1 at /usr/bin/ninja")));
  EXPECT_THAT(plan->actions[0].content,
              HasSubstr("export TORCH_CUDA_ARCH_LIST=\"${TORCH_CUDA_ARCH_LIST:-9.0}\""));
  EXPECT_THAT(plan->actions[0].content, HasSubstr("export MAX_JOBS=\"${MAX_JOBS:-8}\""));
  EXPECT_THAT(plan->actions[0].content, HasSubstr("export CUDA_HOME=/usr/local/cuda\n"));
}

TEST_F(SetupTest, DoesNothingTheSecondTimeAlsoOnceTheFileWasSourced) {
  facts.ninja = {"/opt/x/bin/ninja", "1.13.0", false, "", false};
  ASSERT_TRUE(apply());
  EXPECT_THAT(planned(), IsEmpty());
  facts.ninja.on_path = true;
  facts.variables.arch_list = "9.0";
  facts.toolkit.cuda_home = "/usr/local/cuda";
  facts.toolkit.cuda_home_has_nvcc = true;
  facts.machine.memory_bytes = 12'000'000'000;  // another moment
  EXPECT_THAT(planned(), IsEmpty());
}

TEST_F(SetupTest, InstallsWhatIsMissing) {
  facts.ninja = {};
  facts.toolkit = {};
  facts.nvdisasm = {};
  auto lines = planned();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0],
              HasSubstr("install ninja with pip into /h/u/.local/share/kiln/ninja: ninja>=1.11"));
  EXPECT_THAT(lines[1], HasSubstr("nvidia-cuda-nvcc==13.0.*"));
  EXPECT_THAT(lines[2], HasSubstr("nvidia-cuda-nvdisasm"));
  EXPECT_THAT(lines[3], HasSubstr("env.sh"));
}

TEST_F(SetupTest, ReplacesAnOldNinja) {
  facts.ninja.version = "1.8.2";
  EXPECT_THAT(planned(), Contains(HasSubstr("install ninja")));
}

TEST_F(SetupTest, SaysSoWithoutPip) {
  facts.ninja = {};
  facts.python.has_pip = false;
  EXPECT_THAT(planned(), Contains(HasSubstr("has no pip")));
}

TEST_F(SetupTest, FixesNoMoreThanItWasAsked) {
  facts.ninja = facts.toolkit.nvcc = {};
  facts.locks = {{"/c/lock", false, 1}, {"/d/lock", true, 1}};
  options.only = {Cure::RemoveLocks};
  EXPECT_THAT(planned(), testing::ElementsAre("remove /c/lock, which no process holds"));
  options.only = {Cure::Ninja};
  EXPECT_THAT(planned(), testing::ElementsAre(HasSubstr("install ninja"), HasSubstr("env.sh")));
}

TEST_F(SetupTest, ChoosesTorchsPlace) {
  facts.torch = {};
  options.torch = "cpu";
  EXPECT_THAT(planned(), Contains(HasSubstr("a new environment /h/u/.local/share/kiln/venv")));
  facts.python.is_environment = true;
  facts.python.prefix = "/venv";
  EXPECT_THAT(planned(), Contains(HasSubstr("with pip into /venv")));
  facts.torch = {"/venv/torch", "2.11.0", "13.0"};
  EXPECT_THAT(planned(), testing::Not(Contains(HasSubstr("torch ("))));
  options.torch = "2.7.1";
  EXPECT_THAT(planned(), Contains(HasSubstr("has torch 2.11.0 already")));
  options.torch = "fast";
  EXPECT_THAT(planned(), Contains(HasSubstr("unknown kind of torch 'fast'")));
}

TEST_F(SetupTest, FindsTheTorchOfItsOwnEnvironmentAgain) {
  facts.torch = {};
  options.torch = "2.7.1";
  std::string packages = "/h/u/.local/share/kiln/venv/lib/python3.11/site-packages/";
  files.add(packages + "torch/version.py",
            "__version__ = '2.7.1+cpu'\ncuda: Optional[str] = None\n");
  // An installation that was interrupted has no RECORD.
  files.add_directory(packages + "torch-2.7.1+cpu.dist-info");
  EXPECT_THAT(planned(), Contains(HasSubstr("install torch (2.7.1)")));
  files.add(packages + "torch-2.7.1+cpu.dist-info/RECORD", "");
  EXPECT_THAT(planned(), testing::ElementsAre(HasSubstr("env.sh")));
  ASSERT_TRUE(apply());
  EXPECT_THAT(*files.read("/h/u/.local/share/kiln/env.sh"), HasSubstr("/kiln/venv/bin"));
  EXPECT_THAT(planned(), IsEmpty());
  // Once the env file was sourced that environment is the one in use; later runs need not name
  // torch.
  facts.torch = {packages + "torch", "2.7.1+cpu", ""};
  facts.python.is_environment = true;
  facts.python.prefix = "/h/u/.local/share/kiln/venv";
  EXPECT_THAT(planned(), IsEmpty());
  options.torch = "";
  EXPECT_THAT(planned(), IsEmpty());
  options.torch = "2.11.0";
  facts.torch = {};
  EXPECT_THAT(planned(), Contains(HasSubstr("kiln/venv has torch 2.7.1+cpu already")));
}

TEST_F(SetupTest, UndoesWhatItDid) {
  files.add("/h/u/.bashrc", "alias l=ls\n");
  files.add_directory("/conda");
  env.set("CONDA_PREFIX", "/conda");
  options.conda = options.shells = true;
  ASSERT_TRUE(apply());
  EXPECT_TRUE(files.has("/conda/etc/conda/activate.d/kiln.sh"));
  EXPECT_THAT(*files.read("/h/u/.bashrc"), HasSubstr("env.sh"));
  EXPECT_THAT(planned(), IsEmpty());
  auto said = remove_setup(options.folder, outside, true);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->size(), 4u);
  EXPECT_TRUE(files.has("/h/u/.local/share/kiln/env.sh"));
  ASSERT_TRUE(remove_setup(options.folder, outside, false));
  EXPECT_FALSE(files.has("/h/u/.local/share/kiln/env.sh"));
  EXPECT_FALSE(files.has("/conda/etc/conda/activate.d/kiln.sh"));
  EXPECT_EQ(*files.read("/h/u/.bashrc"), "alias l=ls\n");
  auto again = remove_setup(options.folder, outside, false);
  ASSERT_TRUE(again);
  EXPECT_THAT(*again, IsEmpty());
}

TEST_F(SetupTest, GoesOnWithoutWhatOnlySomeNeed) {
  facts.nvdisasm = {};
  std::vector<std::string> told;
  auto plan = plan_setup(facts, options, outside);
  ASSERT_TRUE(plan);
  // pip is not among the programs of this machine.
  EXPECT_TRUE(
      apply_setup(*plan, options, outside, [&](const std::string& line) { told.push_back(line); }));
  EXPECT_THAT(told, Contains(HasSubstr("continued without it")));
  EXPECT_TRUE(files.has("/h/u/.local/share/kiln/env.sh"));
  facts.ninja = {};
  EXPECT_FALSE(apply());
}

TEST_F(SetupTest, LeavesWhatTheUserChanged) {
  ASSERT_TRUE(apply());
  files.add("/h/u/.local/share/kiln/env.sh", "mine\n");
  auto said = remove_setup(options.folder, outside, false);
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, Contains(HasSubstr("changed since")));
  EXPECT_TRUE(files.has("/h/u/.local/share/kiln/env.sh"));
}

TEST_F(SetupTest, DoesNotFollowAManifestThatWasTamperedWith) {
  files.add("/h/u/.local/share/kiln/setup.json",
            R"({"kiln_setup": 1, "did": [{"kind": "folder", "path": "/h/u"}, {"kind": "folder", )"
            R"("path": "/h/u/.local/share/kiln/.."}]})");
  files.add("/h/u/dear.txt", "x");
  auto said = remove_setup(options.folder, outside, false);
  ASSERT_TRUE(said);
  EXPECT_TRUE(files.has("/h/u/dear.txt"));
  files.add("/h/u/.local/share/kiln/setup.json", "{");
  EXPECT_FALSE(remove_setup(options.folder, outside, false));
}

TEST_F(SetupTest, TellsOfAReadOnlyHome) {
  files.fail_next_write("/h/u/.local/share/kiln", 30);
  Status status = apply();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().fix, HasSubstr("--prefix"));
}

}  // namespace
}  // namespace kiln::doctor
