// SPDX-License-Identifier: Apache-2.0
// Are the facts read right from what compilers, ninja, torch and setup.py write?
#include "doctor/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/advice.h"
#include "doctor/report.h"
#include "machine.h"

namespace kiln::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Gather, FindsVersionsInText) {
  EXPECT_EQ(version_in("ccache version 4.8+1"), "4.8");
  EXPECT_EQ(version_in("1.11.1\n"), "1.11.1");
  EXPECT_EQ(version_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun"),
            "580.65.06");
  EXPECT_EQ(version_in("no number, sm_90"), "");
}

TEST(Gather, ReadsTheLimitsOfHostConfig) {
  const char* text =
      "#if __GNUC__ > 15\n#error -- unsupported GNU version! gcc versions later than 15 are not "
      "supported! The nvcc\n"
      "#error -- unsupported clang version! clang version must be less than 21 and greater than "
      "3.2\n";
  EXPECT_EQ(newest_compiler(text, "gcc"), 15);
  EXPECT_EQ(newest_compiler(text, "clang"), 20);
  EXPECT_EQ(newest_compiler("", "gcc"), 0);
}

TEST(Gather, ReadsTorchsVersion) {
  Torch torch;
  read_torch_version(
      "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n",
      torch);
  EXPECT_EQ(torch.version, "2.11.0+cu130");
  EXPECT_EQ(torch.cuda, "13.0");
  Torch cpu;
  read_torch_version("__version__ = '2.7.1+cpu'\ncuda: Optional[str] = None\n", cpu);
  EXPECT_EQ(cpu.cuda, "");
}

TEST(Gather, FindsTheFileSystemOfAPath) {
  const char* mounts =
      "/dev/a / ext4 rw 0 0\nserver:/x /data nfs4 rw 0 0\n/dev/b /data/u/.cache xfs rw 0 0\nnone "
      "/da tmpfs rw 0 0\n";
  EXPECT_EQ(file_system_of(mounts, "/data/u/x"), "nfs4");
  EXPECT_EQ(file_system_of(mounts, "/data/u/.cache/kiln"), "xfs");
  EXPECT_EQ(file_system_of(mounts, "/var"), "ext4");
}

TEST(Gather, ReadsTheLastBuildOfANinjaLog) {
  Project project;
  read_ninja_log(
      "# ninja log v5\n0\t50000\t1\told.o\tx\n"
      "0\t8000\t1\tobj/b.o\tx\n0\t30000\t1\tobj/a.o\tx\nnonsense\n30000\t31000\t1\tlib.so\tx\n",
      project);
  ASSERT_EQ(project.steps.size(), 3u);
  EXPECT_EQ(project.steps[0].output, "a.o");
  EXPECT_DOUBLE_EQ(project.steps[0].seconds, 30);
  EXPECT_DOUBLE_EQ(project.wall_s, 31);
  EXPECT_DOUBLE_EQ(project.work_s, 39);
}

TEST(Gather, ReadsSetupPyWithoutRunningIt) {
  Project project;
  scan_setup_py(
      "import torch  # needed\n# use_ninja=False\nflags = ['-O3', "
      "'-gencode=arch=compute_90,code=sm_90',\n"
      "  '-gencode', 'arch=compute_80,code=sm_80', '--threads', '4', '-std=c++17']\n",
      project);
  EXPECT_TRUE(project.imports_torch);
  EXPECT_FALSE(project.no_ninja);
  EXPECT_THAT(project.gencodes, ElementsAre("sm_90", "sm_80"));
  EXPECT_EQ(project.nvcc_threads, 4);
  EXPECT_THAT(project.flags, HasSubstr("-std=c++17"));
}

TEST(Gather, SeesWhetherKilnBuildsASetupPy) {
  const auto by_kiln = [](const char* text) {
    Project project;
    scan_setup_py(text, project);
    return project.kiln;
  };
  EXPECT_TRUE(by_kiln("from kiln import BuildExtension, CUDAExtension\n"));
  EXPECT_TRUE(
      by_kiln("import kiln\nkiln.patch_torch()\nfrom torch.utils.cpp_extension import "
              "CUDAExtension\n"));
  EXPECT_FALSE(by_kiln("import kiln\nfrom torch.utils.cpp_extension import CUDAExtension\n"));
  EXPECT_FALSE(by_kiln("from torch.utils.cpp_extension import CUDAExtension\n"));
  EXPECT_FALSE(by_kiln("# from kiln import CUDAExtension\nimport kilnwork\n"));
}

TEST(Gather, ScansSources) {
  SourceFile source =
      scan_project_source("a.cu", "#include <torch/extension.h>\nasm(\"wgmma.mma_async.x\");\n");
  EXPECT_TRUE(source.cuda);
  EXPECT_THAT(source.heavy, ElementsAre("torch/extension.h"));
  EXPECT_THAT(source.variant_instruction, HasSubstr("wgmma"));
  EXPECT_THAT(
      scan_project_source("b.cu", "// #include <torch/extension.h>\n#include <kiln/op.h>\n").heavy,
      IsEmpty());
}

TEST(Gather, ReadsWheelNames) {
  EXPECT_THAT(read_wheel_name("d/a-1-py2.py3-none-any.whl").tags,
              ElementsAre("py2-none-any", "py3-none-any"));
  EXPECT_NE(read_wheel_name("a.whl").trouble, "");
}

TEST(Advice, BoundsJobsByMemoryAndCores) {
  Machine machine{"x86_64", 8, 10'000'000'000, std::nullopt, 0, ""};
  EXPECT_EQ(fitting_jobs(machine), 3);
  machine.memory_bytes = 100'000'000'000;
  EXPECT_EQ(fitting_jobs(machine), 8);
  machine.address_space_bytes = 1;
  EXPECT_EQ(fitting_jobs(machine), 1);
  EXPECT_EQ(threads_in("-O3 --threads=4 -x"), 4);
  EXPECT_EQ(threads_in("-O3 -t0"), 0);
  EXPECT_EQ(major_of("libcudart.so.12"), 12);
  EXPECT_EQ(major_of("580.65.06"), 580);
  EXPECT_EQ(major_of(""), 0);
}

TEST(Report, NamesEveryCheckAndItsFix) {
  Facts facts = good_machine();
  results::DoctorReport report = report_of(facts, run_checks(facts));
  EXPECT_EQ(report.verdict, "ok");
  EXPECT_EQ(report.areas.front().name, "Build tools");
  EXPECT_EQ(report.areas.front().summary, "ninja 1.11.1, g++ 12.2.0");
  facts.ninja = {};
  report = report_of(facts, run_checks(facts));
  EXPECT_EQ(report.verdict, "fault");
  EXPECT_EQ(report.areas.front().verdict, "fault");
  EXPECT_EQ(report.checks.size(), checks().size());
  const auto ninja = std::find_if(report.checks.begin(), report.checks.end(),
                                  [](const auto& check) { return check.name == "ninja"; });
  ASSERT_NE(ninja, report.checks.end());
  EXPECT_EQ(ninja->verdict, "fault");
  EXPECT_EQ(ninja->fix, "kiln setup");
  EXPECT_TRUE(ninja->fixes_itself);
}

TEST(Report, PageNamesEverySymptom) {
  std::string page = troubleshooting_page();
  for (const Check& check : checks()) EXPECT_THAT(page, HasSubstr(std::string(check.symptom)));
}

}  // namespace
}  // namespace kiln::doctor
