// SPDX-License-Identifier: Apache-2.0
// Does each check find its fault, say why and name a fix, and is a good machine left in peace?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "doctor/check.h"
#include "machine.h"

namespace kiln::doctor {
namespace {

using testing::HasSubstr;

struct Fault {
  const char* check;
  const char* what;
  Verdict verdict;
  std::function<void(Facts&)> inject;
  const char* reason;
  const char* fix;
};

Facts with_library(const std::function<void(Library&)>& change) {
  Facts facts = good_machine();
  facts.libraries = {good_library()};
  change(facts.libraries[0]);
  return facts;
}

std::function<void(Facts&)> in_library(std::function<void(Library&)> change) {
  return [change](Facts& facts) { facts = with_library(change); };
}

std::function<void(Facts&)> in_project(Project base, std::function<void(Facts&, Project&)> change) {
  return [base, change](Facts& facts) {
    facts.project = base;
    change(facts, *facts.project);
  };
}

constexpr Verdict kWarn = Verdict::Warn, kFail = Verdict::Fail, kOk = Verdict::Ok;

const Fault kFaults[] = {
    {"arch-pinned", "no GPU, no list", kWarn,
     [](Facts& f) {
       f.variables.arch_list = "";
       f.gpu = {};
     },
     "IndexError", "export TORCH_CUDA_ARCH_LIST='8.0'"},
    {"ninja", "missing", kFail, [](Facts& f) { f.ninja = {}; }, "ninja is not on PATH",
     "kiln setup"},
    {"ninja", "old", kFail, [](Facts& f) { f.ninja.version = "1.10.2"; }, "1.10.2", "kiln setup"},
    {"ninja", "broken", kFail, [](Facts& f) { f.ninja.trouble = "it ended with 127"; },
     "ended with 127", "kiln setup"},
    {"ninja", "elsewhere", kWarn,
     [](Facts& f) {
       f.ninja = {"/opt/py/bin/ninja", "1.13.0", false, "", false};
     },
     "/opt/py/bin/ninja", "export PATH=/opt/py/bin:$PATH"},
    {"cuda-home", "no nvcc", kFail, [](Facts& f) { f.toolkit = {}; }, "no nvcc", "kiln setup"},
    {"cuda-home", "CUDA_HOME leads nowhere", kFail,
     [](Facts& f) {
       f.toolkit.cuda_home = "/opt/cuda-9";
       f.toolkit.cuda_home_variable = "CUDA_HOME";
     },
     "/opt/cuda-9, which has no bin/nvcc", "export CUDA_HOME=/usr/local/cuda"},
    {"cuda-home", "nvcc off PATH", kWarn,
     [](Facts& f) {
       f.toolkit.nvcc.path = "/opt/cuda/bin/nvcc";
       f.toolkit.home = "/opt/cuda";
       f.toolkit.nvcc.on_path = false;
     },
     "/opt/cuda/bin/nvcc", "export CUDA_HOME=/opt/cuda"},
    {"cuda-home", "no headers", kWarn, [](Facts& f) { f.toolkit.home = ""; }, "cuda_runtime.h",
     "kiln setup"},
    {"cuda-major", "12 and 13", kWarn, [](Facts& f) { f.toolkit.nvcc.version = "12.4"; },
     "CUDA 12.4", "nvcc 13.0"},
    {"cuda-major", "12 and 13 in a setup.py project", kFail,
     in_project(classic_project(), [](Facts& f, Project&) { f.toolkit.nvcc.version = "12.4"; }),
     "refuses", "kiln"},
    {"arch-supported", "dropped by nvcc 13", kFail,
     [](Facts& f) { f.variables.arch_list = "7.0;9.0"; }, "requests 7.0",
     "remove 7.0 from TORCH_CUDA_ARCH_LIST"},
    {"arch-supported", "no architecture at all", kFail,
     [](Facts& f) { f.variables.arch_list = "fast"; }, "'fast'",
     "export TORCH_CUDA_ARCH_LIST='9.0'"},
    {"host-compiler", "too new", kFail, [](Facts& f) { f.host.program.version = "16.1.0"; },
     "newer than nvcc 13.0", "export NVCC_CCBIN=g++-15"},
    {"host-compiler", "none", kFail, [](Facts& f) { f.host.program = {}; }, "no C++ compiler",
     "apt install g++"},
    {"cxx-standard", "CXXFLAGS", kFail, [](Facts& f) { f.variables.cxx_flags = "-O2 -std=c++14"; },
     "-std=c++14 in CXXFLAGS", "remove -std=c++14 from CXXFLAGS"},
    {"cxx-standard", "setup.py", kFail,
     in_project(classic_project(), [](Facts&, Project& p) { p.flags = "-O3 -std=c++11"; }),
     "the project's flags", "-std=c++11"},
    {"python-headers", "none", kWarn, [](Facts& f) { f.python.has_header = false; }, "no Python.h",
     "apt install python3.11-dev"},
    {"arch-variant", "wgmma for 9.0", kFail,
     in_project(classic_project(),
                [](Facts&, Project& p) { p.sources[1].variant_instruction = "wgmma.mma_async"; }),
     "add.cu uses wgmma.mma_async", "export TORCH_CUDA_ARCH_LIST=9.0a"},
    {"libc10", "no RPATH", kWarn, in_library([](Library& l) {
       l.missing = {{"libc10.so", "libadd.so", "/venv/torch/lib"}};
     }),
     "needs libc10.so, which only /venv/torch/lib has", "import torch before it"},
    {"libc10", "no torch", kFail, in_library([](Library& l) {
       l.missing = {{"libc10.so", "libadd.so", ""}};
     }),
     "no torch is installed", "pip install torch"},
    {"libc10", "another library", kFail, in_library([](Library& l) {
       l.missing = {{"libfoo.so.1", "libadd.so", ""}};
     }),
     "libfoo.so.1", "libfoo.so.1"},
    {"cudart-major", "12 beside torch's 13", kFail, in_library([](Library& l) {
       l.cudarts = {"libcudart.so.12"};
       l.missing = {{"libcudart.so.12", "libadd.so", ""}};
     }),
     "needs libcudart.so.12; torch 2.11.0+cu130 brings CUDA 13.0", "nvcc 13.0"},
    {"torch-symbols", "of an older torch", kFail, in_library([](Library& l) {
       l.symbols = {
           {"_ZN3c10x", "c10::x()", "built for torch 2.3 to 2.5; torch 2.11 has no c10::x", false}};
       l.built_for_torch = "2.3 to 2.5";
     }),
     "undefined symbol c10::x(): built for torch 2.3 to 2.5", "install torch 2.3 to 2.5"},
    {"string-abi", "old", kFail, in_library([](Library& l) {
       l.symbols = {{"_ZN3c105ErrorSs", "c10::Error(std::string)",
                     "built with the old std::string (_GLIBCXX_USE_CXX11_ABI=0)", true}};
     }),
     "old std::string", "_GLIBCXX_USE_CXX11_ABI"},
    {"module-init", "another name", kFail, in_library([](Library& l) {
       l.module = "add";
       l.has_init = false;
     }),
     "no PyInit_add", "TORCH_EXTENSION_NAME"},
    {"wheel-tag", "another Python", kFail,
     [](Facts& f) {
       f.wheel = {"a-1-cp312-cp312-linux_x86_64.whl", {"cp312-cp312-linux_x86_64"}, ""};
     },
     "for cp312; this Python is 3.11.7", "wheel"},
    {"wheel-tag", "another CPU", kFail,
     [](Facts& f) {
       f.wheel = {"a-1-py3-none-linux_aarch64.whl", {"py3-none-linux_aarch64"}, ""};
     },
     "for linux_aarch64; this machine is x86_64", "wheel"},
    {"wheel-tag", "another glibc", kFail,
     [](Facts& f) {
       f.wheel = {"a-1-py3-none-manylinux_2_39_x86_64.whl", {"py3-none-manylinux_2_39_x86_64"}, ""};
     },
     "for glibc 2.39 and newer; this machine has 2.36", "wheel"},
    {"wheel-tag", "musl", kFail,
     [](Facts& f) {
       f.wheel = {"a-1-py3-none-musllinux_1_2_x86_64.whl", {"py3-none-musllinux_1_2_x86_64"}, ""};
     },
     "for systems with musl", "wheel"},
    {"glibc", "newer than here", kFail, in_library([](Library& l) { l.glibc_here = "2.12"; }),
     "needs GLIBC_2.17; this machine has glibc 2.12", "older system"},
    {"glibcxx", "an old libstdc++ in LD_LIBRARY_PATH", kFail,
     [](Facts& f) {
       f = with_library([](Library& l) { l.glibcxx_here = "3.4.11"; });
       f.variables.library_path = "/opt/old";
     },
     "needs GLIBCXX_3.4.19", "LD_LIBRARY_PATH is /opt/old"},
    {"two-cudarts", "LD_LIBRARY_PATH", kWarn,
     [](Facts& f) {
       f.cudarts = {{"/opt/cuda-12/lib64/libcudart.so.12", "LD_LIBRARY_PATH", 12}};
     },
     "libcudart.so.12", "remove /opt/cuda-12/lib64 from LD_LIBRARY_PATH"},
    {"two-cudarts", "in a process", kFail,
     [](Facts& f) {
       f.cudarts = {{"/a/libcudart.so.13", "process 7", 13},
                    {"/b/libcudart.so.13", "process 7", 13}};
     },
     "process 7 has two CUDA runtimes", "kiln"},
    {"isolated-build", "torch is not required", kWarn,
     in_project(classic_project(), [](Facts&, Project& p) { p.requires_torch = false; }),
     "No module named 'torch'", "pip install --no-build-isolation ."},
    {"stale-lock", "without owner", kFail,
     [](Facts& f) {
       f.locks = {{"/c/torch_extensions/add/lock", false, 9000}};
     },
     "no process holds", "rm /c/torch_extensions/add/lock"},
    {"memory", "too little", kWarn, [](Facts& f) { f.machine.memory_bytes = 2'000'000'000; },
     "2.0 GB of memory", "export MAX_JOBS=1"},
    {"memory", "more jobs than memory", kWarn,
     [](Facts& f) { f.machine.memory_bytes = 13'000'000'000; },
     "MAX_JOBS=8 with 3 GB each is 24.0 GB", "export MAX_JOBS=4"},
    {"memory", "ulimit -v", kWarn, [](Facts& f) { f.machine.address_space_bytes = 1'000'000'000; },
     "(ulimit -v)", "ulimit -v unlimited"},
    {"memory", "MAX_JOBS is no number", kFail, [](Facts& f) { f.variables.max_jobs = "many"; },
     "'many'", "export MAX_JOBS=8"},
    {"job-threads", "8 jobs of 8 threads", kWarn,
     [](Facts& f) { f.variables.nvcc_flags = " --threads 8"; },
     "8 jobs x 8 threads are 64 compilers on 8 cores", "MAX_JOBS=1"},
    {"torch-headers", "in a .cu", kWarn,
     in_project(classic_project(),
                [](Facts&, Project& p) { p.sources[1].heavy = {"torch/extension.h"}; }),
     "add.cu includes torch/extension.h", "kiln/op.h"},
    {"ccache-depend", "without depend mode", kWarn, [](Facts& f) { f.ccache.for_nvcc = true; },
     "old object", "export CCACHE_DEPEND=1"},
    {"cache-hits", "none of kiln's", kWarn, [](Facts& f) { f.cache.misses = 60; }, "0 hits in 60",
     "kiln build --explain"},
    {"cache-hits", "none of ccache's", kWarn,
     [](Facts& f) {
       f.ccache.for_nvcc = f.ccache.depend_mode = true;
       f.ccache.misses = 100;
     },
     "ccache had 0 hits", "--show-stats"},
    {"kernel-image", "sm_80 alone on sm_90", kFail, in_library([](Library& l) {
       l.images = {"sm_80"};
       l.serves[0].native = false;
     }),
     "contains sm_80; this GPU is sm_90", "kiln build --arch 9.0"},
    {"kernel-image", "PTX alone", kWarn, in_library([](Library& l) {
       l.images = {"compute_80"};
       l.serves = {{{9, 0, 0}, false, true}};
     }),
     "compiles its PTX at the first call", "kiln build --arch 9.0"},
    {"ptx-driver", "PTX too new", kFail,
     [](Facts& f) {
       f = with_library([](Library& l) {
         l.serves = {{{9, 0, 0}, false, true}};
         l.driver_sass = 0;
       });
       f.gpu.driver = "550.54";
     },
     "driver 550.54 cannot compile", "update the driver to 580"},
    {"driver", "no libcuda", kFail, [](Facts& f) { f.gpu.libcuda = ""; }, "libcuda.so.1",
     "--gpus all"},
    {"driver", "too old for torch", kFail, [](Facts& f) { f.gpu.driver = "535.104"; },
     "torch 2.11.0+cu130 needs 580", "update the driver to 580"},
    {"cpu", "another one", kFail, in_library([](Library& l) { l.machine = "aarch64"; }),
     "is for aarch64; this machine is x86_64", "x86_64"},
    {"cpu", "damaged", kFail, in_library([](Library& l) { l.trouble = "it ends at byte 64"; }),
     "ends at byte 64", "again"},
    {"cache-folder", "read-only", kFail,
     [](Facts& f) {
       f.cache.writable = false;
       f.cache.why_not_writable = "Permission denied";
     },
     "Permission denied", "KILN_CACHE_DIR"},
    {"cache-folder", "network disk", kWarn, [](Facts& f) { f.cache.file_system = "nfs4"; },
     "network disk (nfs4)", "KILN_CACHE_DIR"},
    {"cache-folder", "full", kWarn, [](Facts& f) { f.cache.free_bytes = 1000; },
     "0.0 GB of space left", "kiln cache prune"},
    {"slow-archs", "six architectures", kWarn,
     in_project(classic_project(),
                [](Facts& f, Project&) { f.variables.arch_list = "7.5;8.0;8.6;8.9;9.0;12.0"; }),
     "6 architectures", "export TORCH_CUDA_ARCH_LIST='9.0'"},
    {"slow-archs", "none set, no GPU", kWarn,
     in_project(classic_project(),
                [](Facts& f, Project&) {
                  f.variables.arch_list = "";
                  f.gpu = {};
                }),
     "no architecture is set", "export TORCH_CUDA_ARCH_LIST='8.0'"},
    {"slow-serial", "use_ninja=False", kWarn,
     in_project(classic_project(), [](Facts&, Project& p) { p.no_ninja = true; }),
     "use_ninja=False", "setup.py"},
    {"slow-serial", "MAX_JOBS=1", kWarn,
     in_project(classic_project(), [](Facts& f, Project&) { f.variables.max_jobs = "1"; }),
     "MAX_JOBS=1 for 2 sources", "export MAX_JOBS=8"},
    {"slow-uncached", "no ccache", kWarn, in_project(classic_project(), [](Facts&, Project&) {}),
     "no compiler cache", "kiln.CUDAExtension"},
    {"slow-steps", "one file", kWarn,
     in_project(classic_project(),
                [](Facts&, Project& p) {
                  p.steps = {{"big.o", 90}, {"small.o", 10}};
                  p.wall_s = 95;
                  p.work_s = 100;
                }),
     "slowest: big.o", "split the source of big.o"},
    {"timed-compile", "slow", kWarn, [](Facts& f) { f.timed = {true, "", "", 40, 0.05}; },
     "cold 40", "--html"},
    {"timed-compile", "cache does not serve", kWarn,
     [](Facts& f) { f.timed = {true, "", "", 2, 1.9}; }, "from the cache", "--explain"},
    {"timed-compile", "fails", kFail,
     [](Facts& f) { f.timed = {true, "it does not compile", "kiln setup", 0, 0}; },
     "does not compile", "kiln setup"},
};

TEST(Checks, FindTheirFault) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(std::string(fault.check) + ": " + fault.what);
    Facts facts = good_machine();
    fault.inject(facts);
    const Check* check = find_check(fault.check);
    ASSERT_NE(check, nullptr);
    Finding finding = check->run(facts);
    EXPECT_EQ(finding.verdict, fault.verdict);
    EXPECT_THAT(finding.reason, HasSubstr(fault.reason));
    EXPECT_THAT(finding.fix, HasSubstr(fault.fix));
  }
}

TEST(Checks, EachHasAFaultThatItFinds) {
  std::set<std::string_view> tested;
  for (const Fault& fault : kFaults) tested.insert(fault.check);
  for (const Check& check : checks()) EXPECT_TRUE(tested.contains(check.name)) << check.name;
  EXPECT_GE(checks().size(), 30u);
}

TEST(Checks, AreNumberedInOrderAndNamedOnce) {
  std::set<std::string_view> names;
  int number = 0;
  for (const Check& check : checks()) {
    EXPECT_EQ(check.number, ++number);
    EXPECT_TRUE(names.insert(check.name).second) << check.name;
  }
}

// A fault of one kind must not set off the alarm of another.
void expect_peace(const Facts& facts) {
  for (const CheckResult& result : run_checks(facts))
    EXPECT_LE(result.finding.verdict, kOk) << result.check->name << ": " << result.finding.reason;
}

TEST(Checks, LeaveAGoodMachineInPeace) {
  Facts facts = good_machine();
  expect_peace(facts);
  facts.libraries = {good_library()};
  facts.project = good_project();
  facts.timed = TimedCompile{true, "", "", 1.4, 0.05};
  for (const char* tag :
       {"py3-none-manylinux_2_17_x86_64", "cp311-cp311-manylinux2014_x86_64", "py3-none-any"}) {
    facts.wheel = {"a.whl", {tag}, ""};
    expect_peace(facts);
  }
}

TEST(Checks, LeaveAMachineWithoutGpuAndTorchInPeace) {
  Facts facts = good_machine();
  facts.gpu = {};
  facts.torch = {};
  facts.variables.arch_list = "";
  facts.python = {};
  facts.libraries = {good_library()};
  facts.libraries[0].serves = {};
  expect_peace(facts);
}

TEST(Checks, SayNothingOfNvccOffPathWhereKilnAloneLooksForIt) {
  Facts facts = good_machine();
  facts.toolkit.nvcc.on_path = facts.ninja.on_path = false;
  EXPECT_EQ(check_cuda_home(facts).verdict, kWarn);
  EXPECT_EQ(check_ninja(facts).verdict, kWarn);
  facts.torch = {};
  EXPECT_EQ(check_cuda_home(facts).verdict, kOk);
  EXPECT_EQ(check_ninja(facts).verdict, kOk);
  facts.ninja.kiln_finds = false;
  EXPECT_EQ(check_ninja(facts).verdict, kWarn);
}

TEST(Checks, AreSilentAboutABusyMachinesTimes) {
  Facts facts = good_machine();
  facts.machine.load = 40;
  facts.timed = TimedCompile{true, "", "", 40, 3};
  EXPECT_EQ(check_timed_compile(facts).verdict, kOk);
}

TEST(Checks, SayNothingOfALockWhoseOwnerLives) {
  Facts facts = good_machine();
  facts.locks = {{"/c/torch_extensions/add/lock", true, 9000}};
  EXPECT_EQ(check_stale_locks(facts).verdict, kOk);
}

}  // namespace
}  // namespace kiln::doctor
