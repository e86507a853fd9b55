// SPDX-License-Identifier: Apache-2.0
// Does a request become the right plan, and the plan the right commands? On a disk in memory,
// without a compiler.
#include "build/plan/plan.h"

#include <gmock/gmock.h>

#include "build/plan/graph.h"
#include "build/plan/lacks.h"
#include "build/run/diagnose.h"
#include "build/run/ninja_file.h"
#include "sys/fake_files.h"
#include "sys/fake_processes.h"

namespace kiln::build {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() {
    files.add("/cuda/bin/nvcc", "", true).add("/bin/g++", "", true).add("/bin/ninja", "", true);
    files.add("/kiln/lib/libkiln_runtime.a")
        .add("/w/add.cu", "KILN_OP(my_add)")
        .add("/w/sub/extra.cpp");
    request.directory = "/w";
    request.targets = {"add.cu"};
  }
  Result<Plan> plan() { return make_plan(request, {files, processes, env, {}, {}, {}}); }
  Error error() {
    auto result = plan();
    EXPECT_FALSE(result);
    return result ? Error{} : result.error();
  }
  std::string command(size_t edge = 0) {
    return shown_commands(make_graph(*plan(), {}).steps[edge], "obj")[0];
  }

  sys::FakeFiles files;
  sys::FakeProcesses processes;
  sys::Environment env{{"PATH", "/bin"},
                       {"CUDA_HOME", "/cuda"},
                       {"KILN_HOME", "/kiln"},
                       {"XDG_CACHE_HOME", "/cache"}};
  Request request;
};

TEST_F(PlanTest, ALoneFileIsNamedByItsStemAndBuiltInTheCache) {
  auto made = plan();
  ASSERT_TRUE(made) << format(made.error());
  EXPECT_EQ(made->name, "add");
  EXPECT_THAT(made->build_dir.string(), HasSubstr("/cache/kiln/lone/add-"));
  EXPECT_EQ(project::describe(made->arch), "sm_80 + PTX compute_80");
}

TEST_F(PlanTest, WgmmaAndTcgen05TakeTheVariantOfTheirArchitecture) {
  request.arch = "8.0;9.0;10.0+PTX";
  files.add("/w/add.cu", "#include \"mma.h\"\n")
      .add("/w/mma.h", "asm(\"wgmma.fence.sync.aligned;\");");
  EXPECT_EQ(project::describe(plan()->arch), "sm_80, sm_90a, sm_100 + PTX compute_100");
  EXPECT_THAT(plan()->why_variant, HasSubstr("wgmma"));
  files.add("/w/mma.h", "asm(\"tcgen05.alloc.cta_group::1\");");
  EXPECT_EQ(project::describe(plan()->arch), "sm_80, sm_90, sm_100a + PTX compute_100a");
  // A library's header has such code for all who include it.
  files.add("/w/mma.h", "").add("/lib/cute.h", "asm(\"wgmma.fence.sync.aligned;\");");
  files.add("/w/add.cu", "#include <cute.h>\n");
  request.includes = {"/lib"};
  EXPECT_EQ(project::describe(plan()->arch), "sm_80, sm_90, sm_100 + PTX compute_100");
  EXPECT_EQ(plan()->why_variant, "");
}

TEST_F(PlanTest, OtherFlagsAreAnotherFolderAndOtherPathsToo) {
  fs::path first = plan()->build_dir;
  EXPECT_EQ(plan()->build_dir, first);
  request.defines = {"BLOCK=64"};
  EXPECT_NE(plan()->build_dir, first);
  EXPECT_EQ(plan()->build_dir.parent_path(), first.parent_path());
  files.add("/v/add.cu");
  request.targets = {"/v/add.cu"};
  EXPECT_NE(plan()->build_dir.parent_path(), first.parent_path());
}

TEST_F(PlanTest, TheArchComesFromTheOptionThenTheManifestThenTorchsVariable) {
  env.set("TORCH_CUDA_ARCH_LIST", "8.6");
  EXPECT_EQ(plan()->arch.sass[0].text(), "8.6");
  files.add("/w/kiln.toml", "name = 'ops'\nsources = ['add.cu']\narch = '8.9'\n");
  request.targets = {};
  EXPECT_EQ(plan()->arch.sass[0].text(), "8.9");
  request.arch = "9.0a";
  EXPECT_EQ(plan()->arch.sass[0].text(), "9.0a");
  request.arch = "native";
  EXPECT_THAT(error().why, HasSubstr("no GPU"));
}

TEST_F(PlanTest, AnOptionOverridesWhatTheManifestSaysOfFindings) {
  files.add("/w/kiln.toml", "name = 'ops'\nsources = ['add.cu']\nfindings = 'error'\n");
  request.targets = {};
  EXPECT_TRUE(plan()->findings_fail);
  request.findings_fail = false;
  EXPECT_FALSE(plan()->findings_fail);
  files.add("/w/kiln.toml", "name = 'ops'\nsources = ['add.cu']\n");
  EXPECT_FALSE(plan()->findings_fail);
  request.findings_fail = true;
  EXPECT_TRUE(plan()->findings_fail);
}

TEST_F(PlanTest, AProjectGivesNameSourcesAndFolders) {
  files.add("/w/kiln.toml",
            "name = 'ops'\nsources = ['add.cu', 'sub/extra.cpp']\ninclude = ['inc']\ndefines = "
            "['A=1']\n");
  request.targets = {"/w"};
  request.directory = "/";
  request.defines = {"B=2"};
  auto made = plan();
  ASSERT_TRUE(made) << format(made.error());
  EXPECT_EQ(made->name, "ops");
  EXPECT_EQ(made->sources.size(), 2u);
  EXPECT_EQ(made->sources[0].shown, "w/add.cu");
  EXPECT_EQ(made->build_dir, "/w/build/kiln");
  EXPECT_THAT(made->includes, Contains(fs::path("/w/inc")));
  EXPECT_THAT(made->defines, ::testing::ElementsAre("A=1", "B=2"));
}

TEST_F(PlanTest, AProgramBesideAManifestTakesItsFlags) {
  files.add("/w/kiln.toml", "name = 'ops'\nsources = ['add.cu']\ndefines = ['A=1']\n")
      .add("/w/main.cu", "int main() {}");
  request.targets = {"main.cu"};
  request.program = true;
  auto made = plan();
  ASSERT_TRUE(made);
  EXPECT_THAT(made->defines, Contains("A=1"));
  EXPECT_EQ(made->sources.size(), 1u);
  EXPECT_EQ(made->build_dir, "/w/build/kiln/program-main");
}

TEST_F(PlanTest, SaysWhatIsWrongWithATarget) {
  request.targets = {"none.cu"};
  EXPECT_THAT(error().why, HasSubstr("no such file"));
  request.targets = {"sub"};
  EXPECT_THAT(error().what, HasSubstr("'sub' is not a project"));
  request.targets = {};
  EXPECT_THAT(error().what, HasSubstr("nothing to build"));
  files.add("/w/a.txt");
  request.targets = {"a.txt"};
  EXPECT_THAT(error().why, HasSubstr("ends in .cu"));
  request.targets = {"add.cu", "sub"};
  EXPECT_EQ(error().fault, Fault::Usage);
}

TEST_F(PlanTest, RefusesNamesAndDefinesThatCannotBe) {
  request.name = "my-ops";
  EXPECT_EQ(error().fix, "--name my_ops");
  request.name = "";
  request.defines = {"1x=2"};
  EXPECT_THAT(error().what, HasSubstr("invalid define"));
}

TEST_F(PlanTest, ABrokenInstallationIsToldAsOne) {
  ASSERT_TRUE(files.remove("/kiln/lib/libkiln_runtime.a"));
  EXPECT_EQ(error().fault, Fault::Environment);
}

TEST_F(PlanTest, AHostSourceAloneNeedsNoNvcc) {
  request.targets = {"sub/extra.cpp"};
  ASSERT_TRUE(files.remove("/cuda/bin/nvcc"));
  ASSERT_TRUE(plan());
  EXPECT_THAT(command(), HasSubstr("/bin/g++ -c"));
}

TEST_F(PlanTest, TheCompileLineHasWhatTheDesignSays) {
  request.arch = "9.0";
  request.defines = {"MESSAGE=\"a b\""};
  request.cuda_flags = {"-Xptxas=-v"};
  request.fast_math = true;
  std::string line = command();
  for (const char* part :
       {"/cuda/bin/nvcc -c -std=c++20 -O3 -lineinfo --expt-relaxed-constexpr",
        "'-gencode=arch=compute_90,code=[sm_90,compute_90]'", "-fvisibility=hidden,-fno-gnu-unique",
        "-DKILN_NAMESPACE=add", "'-DMESSAGE=\"a b\"'", "-Xptxas=-v", "--use_fast_math",
        "-I/kiln/include", "-MD -MT obj/add.cu.o -MF obj/add.cu.d -o obj/add.cu.o /w/add.cu"})
    EXPECT_THAT(line, HasSubstr(part));
  EXPECT_THAT(line, Not(HasSubstr("extended-lambda")));
  files.add("/w/add.cu", "auto f = [=] __device__ () {};");
  EXPECT_THAT(command(), HasSubstr("--expt-extended-lambda"));
}

TEST_F(PlanTest, FlagsThatNameArchitecturesLeaveNoOthers) {
  env.set("TORCH_CUDA_ARCH_LIST", "8.6");
  request.cuda_flags = {"-gencode", "arch=compute_90a,code=sm_90a"};
  EXPECT_EQ(project::describe(plan()->arch), "sm_90a + PTX compute_90a");
  EXPECT_THAT(command(), HasSubstr("arch=compute_90a,code=[sm_90a,compute_90a]"));
  EXPECT_THAT(command(), Not(HasSubstr("-gencode arch")));
  EXPECT_THAT(command(), Not(HasSubstr("86")));
  request.cuda_flags = {"-O2"};
  EXPECT_EQ(project::describe(plan()->arch), "sm_86 + PTX compute_86");
  // Whoever also names a list wants both.
  request.cuda_flags = {"-gencode=arch=compute_80,code=sm_80"};
  request.arch = "9.0";
  EXPECT_THAT(command(), HasSubstr("sm_80"));
  EXPECT_THAT(command(), HasSubstr("sm_90"));
}

TEST_F(PlanTest, TorchsOwnHeadersAreCompiledInTheLanguageThatTheyDemand) {
  files.add("/w/add.cu", "#include <torch/extension.h>\n").add("/bin/python3", "", true);
  request.compat = "never";
  (void)plan();  // the question to Python, which is answered from here on
  ASSERT_FALSE(processes.started.empty());
  processes.answers[processes.started.back()].out = "kiln-torch /torch\nkiln-include /py\n";
  EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++17"));
  files.add("/torch/include/ATen/ATen.h",
            "#error C++20 or later compatible compiler is required to use ATen.\n");
  EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++20"));
  for (std::vector<std::string> flags : {std::vector<std::string>{"-std=c++17"},
                                         {"--std=c++17", "-O2"},
                                         {"-O2", "-std", "c++14"},
                                         {"-std=c++17", "-std=gnu++1z"}}) {
    request.cuda_flags = flags;
    EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++20"));
    EXPECT_THAT(command(), Not(HasSubstr("++1")));
  }
  request.cuda_flags = {"-std=c++23"};
  EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++23"));
  // The compat headers take either.
  request.compat = "auto";
  request.cuda_flags = {"--std=c++17"};
  EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++17 -O3"));
  EXPECT_THAT(command(), Not(HasSubstr("--std")));
  request.cuda_flags.clear();
  EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++17"));
  files.add("/w/add.cu", "#include <torch/extension.h>\n#include <concepts>\n");
  EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++20"));
}

TEST_F(PlanTest, AProgramOfOthersIsInTheLanguageThatNvccTakesItFor) {
  files.add("/w/add.cu", "int main() {}");
  request.program = true;
  EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++17"));
  request.cuda_flags = {"-std=c++14"};
  EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++14"));
  request.cuda_flags.clear();
  files.add("/w/add.cu", "#include \"mine.h\"\nint main() {}")
      .add("/w/mine.h", "#include <kiln/op.h>\n");
  EXPECT_THAT(command(), HasSubstr("nvcc -c -std=c++20"));
}

TEST_F(PlanTest, TheLinkLineHasNoCudaAndNoTorch) {
  request.ldflags = {"-lm"};
  std::string line = command(1);
  EXPECT_THAT(
      line,
      HasSubstr("/bin/g++ -shared -o obj/libadd.so obj/add.cu.o /kiln/lib/libkiln_runtime.a"));
  EXPECT_THAT(line, HasSubstr("-lm"));
  EXPECT_THAT(line, Not(HasSubstr("cudart")));
  request.program = true;
  EXPECT_THAT(command(1), Not(HasSubstr("-shared")));
}

TEST_F(PlanTest, TwoSourcesOfOneNameHaveTwoObjects) {
  files.add("/w/sub/add.cu");
  request.targets = {"add.cu", "sub/add.cu"};
  Graph graph = make_graph(*plan(), {});
  EXPECT_NE(graph.steps[0].outputs[0], graph.steps[1].outputs[0]);
}

TEST_F(PlanTest, RelocatableDeviceCodeIsRefused) {
  request.cuda_flags = {"-rdc", "true"};
  EXPECT_EQ(error().fault, Fault::Usage);
  EXPECT_THAT(error().what, HasSubstr("-rdc true"));
  request.cuda_flags = {"-rdc=false", "--maxrregcount=64", "-DX=-dc"};
  EXPECT_TRUE(plan());
  env.set("NVCC_PREPEND_FLAGS", "-dc");
  EXPECT_THAT(error().why, HasSubstr("relocatable device code"));
}

TEST_F(PlanTest, TextThatIsNotUtf8IsRefused) {
  request.defines = {"X=\xff"};
  EXPECT_THAT(error().why, HasSubstr("UTF-8"));
  request.defines = {"X=\xc3\xa9"};
  EXPECT_TRUE(plan());
}

TEST_F(PlanTest, VariablesOfTheTableAreInTheCircumstances) {
  std::string before = plan()->circumstances;
  for (const Variable& variable : tool_variables()) {
    sys::Environment plain = env;
    if (std::string_view(variable.name) == "PATH") continue;
    env.set(variable.name, "junk");
    const bool counts = variable.rule == VariableRule::Key || variable.rule == VariableRule::Link;
    // The compiler that it names has to be there.
    if (std::string_view(variable.name) == "NVCC_CCBIN") env.set(variable.name, "/bin/g++");
    EXPECT_EQ(plan()->circumstances != before, counts) << variable.name;
    EXPECT_EQ(tool_environment(env).get(variable.name).has_value(),
              variable.rule != VariableRule::Clear);
    env = plain;
  }
}

TEST_F(PlanTest, AStaleStepRunsWhateverItsTimesAre) {
  Graph graph = make_graph(*plan(), {});
  std::string text = ninja_file(graph, "/kiln", {graph.steps[0].key});
  EXPECT_THAT(text, HasSubstr("| steps/add.cu.json always\n"));
  EXPECT_THAT(text, HasSubstr("build always: phony\n"));
}

TEST_F(PlanTest, TheNinjaFileEscapesItsText) {
  files.add("/w/a b$.cu");
  request.targets = {"a b$.cu"};
  Plan made = *plan();
  std::string text = ninja_file(make_graph(made, {}), "/my kiln/bin/kiln", {});
  EXPECT_THAT(text, HasSubstr("command = '/my kiln/bin/kiln' step $in_file\n"));
  EXPECT_THAT(text, HasSubstr("build obj/a_b_.cu.o: run | steps/a_b_.cu.json\n"));
  EXPECT_THAT(text, HasSubstr("what = compile a b$$.cu"));
}

class DiagnoseTest : public PlanTest {
 protected:
  Error diagnosis(std::string_view log, std::string_view archs = "") {
    Plan made = *plan();
    return diagnose(make_graph(made, {}).steps[0], log, archs);
  }
};

TEST_F(DiagnoseTest, TheTextIsNvccsWithTheErrorFirst) {
  Error error = diagnosis(
      "/w/add.cu(2): warning #177-D: x\n\n/w/add.cu(7): error: identifier \"foo\" is undefined\n   "
      " foo();\n");
  EXPECT_EQ(error.fault, Fault::Work);
  EXPECT_EQ(error.what, "cannot compile add.cu");
  EXPECT_EQ(error.why.find("add.cu(7): error: identifier \"foo\" is undefined\n    foo();"), 0u);
  EXPECT_THAT(error.why, HasSubstr("warning #177-D"));
}

TEST_F(DiagnoseTest, AnUnknownArchListsTheKnownOnes) {
  std::string_view log = "nvcc fatal   : Unsupported gpu architecture 'compute_55'\n";
  EXPECT_TRUE(names_unknown_arch(log));
  Error error = diagnosis(log, "7.5, 8.0");
  EXPECT_EQ(error.fault, Fault::Usage);
  EXPECT_THAT(error.fix, HasSubstr("7.5, 8.0"));
}

TEST_F(DiagnoseTest, AnAssertionOfKilnsHeadersIsToldAtTheUsersLine) {
  Error error = diagnosis(
      "/kiln/include/kiln/spec.h(235): error: static assertion failed with \"KILN_OP: a type "
      "differs\"\n"
      "      static_assert(Fits,\n      ^\n"
      "          detected during instantiation of class \"X\" at line 19 of /w/add.cu\n");
  EXPECT_EQ(error.why, "add.cu(19): error: KILN_OP: a type differs");
}

// The fix fits the fault: nobody is told to correct a source that is not wrong.
TEST_F(DiagnoseTest, EachFaultHasItsOwnFix) {
  struct Case {
    const char* log;
    Fault fault;
    const char* fix;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"/opt/nvcc: line 2: cicc: command not found\n", Fault::Environment, "kiln doctor"},
           {"sh: 1: cudafe++: not found\n", Fault::Environment, "kiln doctor"},
           {"nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)\n"
            "Segmentation fault\n",
            Fault::Environment, "kiln doctor"},
           {"something odd happened\n", Fault::Environment, "broken, not the source"},
           {"", Fault::Environment, "broken, not the source"},
           {"nvcc fatal   : Unknown option '--bogus'\n", Fault::Usage, "check the flags"},
           {"g++: error: unrecognized command-line option '-fbogus'\n", Fault::Usage,
            "check the flags"},
           {"Killed\n", Fault::Environment, "MAX_JOBS=1"},
           {"cc1plus: out of memory allocating 65536 bytes\n", Fault::Environment, "MAX_JOBS=1"},
           {"virtual memory exhausted: Cannot allocate memory\n", Fault::Environment, "MAX_JOBS=1"},
           {"/usr/bin/ld: cannot find -lcublas: No such file or directory\n", Fault::Work,
            "--ldflag=-L"},
           {"x.o: undefined reference to `f()'\n", Fault::Work, "--ldflag=-l"},
           {"/w/add.cu(1): fatal error: cannot open source file \"no.h\"\n", Fault::Work,
            "-I FOLDER"},
           {"/w/add.cu:1:10: fatal error: no/such: No such file or directory\n"
            "compilation terminated.\n",
            Fault::Work, "-I FOLDER"},
           {"ptxas /tmp/x.ptx, line 5; error : Feature 'cp.async.bulk' requires .target sm_90 or "
            "higher\n",
            Fault::Work, "9.0 in --arch"},
           {"a.s: Assembler messages:\na.s:9: Error: file not found: data.bin\n", Fault::Work,
            ".incbin looks there"},
           {"ptxas fatal   : Unresolved extern variable 'shared_table'\n", Fault::Work,
            "define it in this .cu or in a header"},
           {"/w/add.cu(3): error: kernel launch from __device__ or __global__ functions requires "
            "separate compilation mode\n",
            Fault::Work, "launch the kernel from host code"},
           {"stopped: it did not finish in 5 s (--limit)\n", Fault::Work, "raise --limit"},
           {"terminate called after throwing an instance of 'std::bad_alloc'\n"
            "  what():  std::bad_alloc\n",
            Fault::Environment, "MAX_JOBS=1"},
           {"/w/add.cu(7): error: expected a \";\"\n", Fault::Work, "fix the source"}}) {
    Error error = diagnosis(one.log);
    EXPECT_EQ(error.fault, one.fault) << one.log;
    EXPECT_THAT(error.fix, HasSubstr(one.fix)) << one.log;
  }
}

TEST_F(DiagnoseTest, WhatTheSourceSaysIsNotTheMachinesFault) {
  for (const char* line :
       {"throw std::bad_alloc() int;", "// Killed", "f(\"out of memory\") g", "// : not found"})
    for (const char* format : {"/w/add.cu(7): error: expected a \";\"\n    {}\n          ^\n",
                               "/w/add.cu:7:3: error: expected ';'\n    7 |   {}\n      |   ^~~\n"})
      EXPECT_THAT(diagnosis(text::replace_all(format, "{}", line)).fix, HasSubstr("fix the source"))
          << line;
  EXPECT_EQ(
      diagnosis("/w/add.cu(7): error: static assertion failed with \"out of memory\"\n").fault,
      Fault::Work);
}

TEST_F(DiagnoseTest, AFullDiskIsNotTheUsersFault) {
  Error error = diagnosis("/tmp/x.o: No space left on device\n");
  EXPECT_EQ(error.fault, Fault::Environment);
  EXPECT_THAT(error.fix, HasSubstr("free some space"));
  EXPECT_EQ(diagnosis("").why, "the command printed nothing");
}

// ---- what the compat headers lack

class LackTest : public PlanTest {
 protected:
  std::optional<Lack> lack(const std::string& why) {
    return what_compat_lacks(Error{Fault::Work, "cannot compile add.cu", why, ""}, *plan(), files);
  }
};

TEST_F(LackTest, ASyntaxErrorIsTheAuthorsOwn) {
  for (const char* why : {"add.cu(7): error: expected a \";\"\n    int x\n",
                          "add.cu(7): error: missing closing quote\n",
                          "add.cu:7:3: error: missing terminating \" character\n    7 |   \"x\n",
                          "add.cu:7:2: error: #else without #if\n"})
    EXPECT_FALSE(lack(why)) << why;
}

TEST_F(LackTest, AMacroOfTorchsThatNobodyDefinedLooksLikeASyntaxError) {
  auto found = lack("add.cu(7): error: expected a \";\"\n    C10_NO_SUCH(3) int x;\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->symbol, "C10_NO_SUCH");
  EXPECT_TRUE(is_in_torchs_scope(*found));
  // One that the compat headers have is not what is missing.
  files.add(plan()->home.compat() / "torch/all.h", "#define C10_NO_SUCH(x)\n");
  EXPECT_FALSE(lack("add.cu(7): error: expected a \";\"\n    C10_NO_SUCH(3) int x;\n"));
  EXPECT_TRUE(lack("add.cu:7:3: error: expected ‘;’ before ‘int’\n    7 | AT_OTHER int x;\n"));
}

TEST_F(LackTest, ASyntaxErrorInKilnsHeadersIsALack) {
  const std::string place = (plan()->home.compat() / "torch/extension.h").string();
  EXPECT_TRUE(lack(place + "(7): error: expected an identifier\n    int operator;\n"));
}

}  // namespace
}  // namespace kiln::build
