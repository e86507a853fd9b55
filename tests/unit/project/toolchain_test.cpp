// SPDX-License-Identifier: Apache-2.0
// Are the compilers found where the environment says, and is a change of one of them noticed?
#include "project/toolchain.h"

#include <gmock/gmock.h>

#include "project/gpu.h"
#include "project/home.h"
#include "project/setup_folder.h"
#include "sys/fake_files.h"
#include "sys/fake_processes.h"

namespace kiln::project {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

sys::FakeFiles with_tools() {
  sys::FakeFiles files;
  files.add("/cuda/bin/nvcc", "n", true)
      .add("/cuda/nvvm/bin/cicc", "c", true)
      .add("/usr/local/cuda/bin/nvcc", "d", true);
  files.add("/bin/nvcc", "p", true)
      .add("/bin/ccache", "", true)
      .add("/bin/g++", "", true)
      .add("/bin/clang++", "", true);
  return files;
}

TEST(Nvcc, IsLookedForInOrder) {
  sys::FakeFiles files = with_tools();
  auto path = [&](sys::Environment env) { return find_nvcc(files, env)->path.string(); };
  EXPECT_EQ(path({{"NVCC", "/bin/nvcc"}, {"CUDA_HOME", "/cuda"}, {"PATH", "/x"}}), "/bin/nvcc");
  EXPECT_EQ(path({{"CUDA_HOME", "/cuda"}, {"PATH", "/bin"}}), "/cuda/bin/nvcc");
  EXPECT_EQ(path({{"CUDA_HOME", "/nowhere"}, {"PATH", "/bin"}}), "/bin/nvcc");
  const auto misleading = [&](sys::Environment env) { return misleading_cuda_home(files, env); };
  EXPECT_EQ(misleading({{"CUDA_HOME", "/nowhere"}}), "CUDA_HOME=/nowhere has no bin/nvcc");
  EXPECT_EQ(misleading({{"CUDA_HOME", "/nowhere"}, {"CUDA_PATH", "/cuda"}}),
            "CUDA_HOME=/nowhere has no bin/nvcc");
  EXPECT_EQ(misleading({{"CUDA_HOME", "/cuda"}, {"CUDA_PATH", "/nowhere"}}), "");
  EXPECT_EQ(misleading({{"NVCC", "/bin/nvcc"}, {"CUDA_HOME", "/nowhere"}}), "");
  EXPECT_EQ(misleading({}), "");
  EXPECT_EQ(path({{"PATH", "/x"}}), "/usr/local/cuda/bin/nvcc");
}

TEST(Nvcc, OfSeveralToolkitsTheNewestIsTaken) {
  sys::FakeFiles files;
  for (const char* name : {"cuda-9.2", "cuda-12", "cuda-13.0", "cuda-13.4"})
    files.add(std::string("/usr/local/") + name + "/bin/nvcc", "n",
              name != std::string("cuda-13.4"));
  EXPECT_EQ(find_nvcc(files, {{"PATH", "/bin"}})->path, "/usr/local/cuda-13.0/bin/nvcc");
}

TEST(Nvcc, OfThePackagesOfThePythonOnPathIsFoundLast) {
  sys::FakeFiles files;
  files.add("/v/bin/python3", "", true)
      .add("/v/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/nvcc", "12", true);
  const sys::Environment env{{"PATH", "/v/bin:/bin"}};
  EXPECT_EQ(find_nvcc(files, env)->path,
            "/v/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/nvcc");
  files.add("/v/lib/python3.11/site-packages/nvidia/cu13/bin/nvcc", "13", true);
  EXPECT_EQ(find_nvcc(files, env)->path, "/v/lib/python3.11/site-packages/nvidia/cu13/bin/nvcc");
  EXPECT_FALSE(find_nvcc(files, {{"PATH", "/bin"}})) << "another Python's";
  EXPECT_TRUE(find_nvcc(files, {{"PATH", "/bin"}, {"KILN_PYTHON", "/v/bin/python3"}}));
  files.add("/usr/local/cuda-13.0/bin/nvcc", "n", true);
  EXPECT_EQ(find_nvcc(files, env)->path, "/usr/local/cuda-13.0/bin/nvcc");
}

TEST(Nvcc, AnotherLibdeviceIsAnotherIdentity) {
  sys::FakeFiles files = with_tools();
  sys::Environment env{{"CUDA_HOME", "/cuda"}};
  std::string before = find_nvcc(files, env)->identity;
  files.add("/cuda/nvvm/libdevice/libdevice.10.bc", "d");
  EXPECT_NE(find_nvcc(files, env)->identity, before);
}

TEST(Nvcc, MayHaveALauncher) {
  auto nvcc = find_nvcc(with_tools(), {{"NVCC", "ccache nvcc"}, {"PATH", "/bin"}});
  ASSERT_TRUE(nvcc);
  EXPECT_THAT(nvcc->command, ElementsAre("/bin/ccache", "/bin/nvcc"));
  EXPECT_EQ(nvcc->path, "/bin/nvcc");
}

TEST(Nvcc, MissingSaysWhereItWasLookedForAndHowToGetIt) {
  auto nvcc = find_nvcc(sys::FakeFiles(), {{"PATH", "/bin"}});
  ASSERT_FALSE(nvcc);
  EXPECT_EQ(nvcc.error().fault, Fault::Environment);
  EXPECT_THAT(nvcc.error().why, HasSubstr("CUDA_HOME"));
  EXPECT_THAT(nvcc.error().fix, HasSubstr("apt install"));
  EXPECT_THAT(find_nvcc(sys::FakeFiles(), {{"NVCC", "mynvcc"}}).error().why,
              HasSubstr("NVCC is set to 'mynvcc'"));
}

TEST(Nvcc, AnotherCiccIsAnotherIdentity) {
  sys::FakeFiles files = with_tools();
  sys::Environment env{{"CUDA_HOME", "/cuda"}};
  std::string before = find_nvcc(files, env)->identity;
  EXPECT_EQ(find_nvcc(files, env)->identity, before);
  files.add("/cuda/nvvm/bin/cicc", "d", true);
  EXPECT_NE(find_nvcc(files, env)->identity, before);
}

TEST(Setup, WhatItInstalledIsFoundWithoutItsEnvFile) {
  sys::FakeFiles files;
  files.add("/h/.local/share/kiln/cuda/nvidia/cu13/bin/nvcc", "n", true)
      .add("/h/.local/share/kiln/ninja/bin/ninja", "n", true)
      .add("/bin/ninja", "old", true);
  sys::Environment env{{"HOME", "/h"}, {"PATH", "/bin"}};
  EXPECT_EQ(find_nvcc(files, env)->path, "/h/.local/share/kiln/cuda/nvidia/cu13/bin/nvcc");
  // It is there because the one of PATH is too old.
  EXPECT_EQ(*find_ninja(files, env), "/h/.local/share/kiln/ninja/bin/ninja");
  files.add("/bin/nvcc", "p", true);
  EXPECT_EQ(find_nvcc(files, env)->path, "/bin/nvcc");
  EXPECT_EQ(*find_ninja(files, {{"HOME", "/other"}, {"PATH", "/bin"}}), "/bin/ninja");
  EXPECT_EQ(setup_folder({{"HOME", "/h"}, {"XDG_DATA_HOME", "/d"}}), "/d/kiln");
  EXPECT_EQ(setup_folder({{"HOME", "/h"}, {"XDG_DATA_HOME", "d"}}), "/h/.local/share/kiln");
  EXPECT_EQ(setup_folder({}), "");
}

TEST(Setup, WhatIsNoProgramIsNotTaken) {
  sys::FakeFiles files;
  files.add("/h/.local/share/kiln/ninja/bin/ninja", "n", false).add("/bin/ninja", "p", true);
  EXPECT_EQ(*find_ninja(files, {{"HOME", "/h"}, {"PATH", "/bin"}}), "/bin/ninja");
}

TEST(HostCompiler, CxxIsToldToNvcc) {
  auto host = find_host_compiler(with_tools(), {{"CXX", "clang++"}, {"PATH", "/bin"}});
  ASSERT_TRUE(host);
  EXPECT_TRUE(host->chosen);
  EXPECT_FALSE(find_host_compiler(with_tools(), {{"PATH", "/bin"}})->chosen);
  EXPECT_FALSE(find_host_compiler(sys::FakeFiles(), {{"PATH", "/bin"}}));
}

TEST(SupportedArchs, AreThoseNvccLists) {
  sys::FakeProcesses processes;
  processes.answers["/cuda/bin/nvcc --list-gpu-code"] = {.out = "sm_75\nsm_90a\nsm_120\n"};
  EXPECT_EQ(supported_archs({{}, "/cuda/bin/nvcc", "", {}}, processes), "7.5, 9.0a, 12.0");
}

TEST(Gpu, NoDeviceStartsNothing) {
  sys::FakeFiles files;
  sys::FakeProcesses processes;
  EXPECT_THAT(gpu_archs(files, processes, {}), IsEmpty());
  EXPECT_THAT(processes.started, IsEmpty());
}

TEST(Gpu, IsAskedOnceUntilTheMachineChanges) {
  sys::FakeFiles files;
  files.add("/dev/nvidiactl")
      .add("/bin/nvidia-smi", "", true)
      .add("/proc/driver/nvidia/version", "580");
  sys::FakeProcesses processes;
  processes.answers["/bin/nvidia-smi --query-gpu=compute_cap --format=csv,noheader"] = {
      .out = "9.0\n8.9\n9.0\n"};
  sys::Environment env{{"PATH", "/bin"}, {"XDG_CACHE_HOME", "/cache"}};
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(gpu_archs(files, processes, env), ElementsAre(Arch{8, 9, 0}, Arch{9, 0, 0}));
  EXPECT_EQ(processes.started.size(), 1u);
  files.add("/proc/driver/nvidia/version", "590");
  gpu_archs(files, processes, env);
  EXPECT_EQ(processes.started.size(), 2u);
  for (const char* hidden : {"", "-1", "NoDevFiles"}) {
    env.set("CUDA_VISIBLE_DEVICES", hidden);
    EXPECT_THAT(gpu_archs(files, processes, env), IsEmpty());
  }
}

TEST(CacheFolder, FollowsXdg) {
  EXPECT_EQ(*cache_folder({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}), "/x/kiln");
  EXPECT_EQ(*cache_folder({{"XDG_CACHE_HOME", "x"}, {"HOME", "/h"}}), "/h/.cache/kiln");
  EXPECT_FALSE(cache_folder({}));
}

}  // namespace
}  // namespace kiln::project
