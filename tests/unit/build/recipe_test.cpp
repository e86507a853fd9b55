// SPDX-License-Identifier: Apache-2.0
// Is nvcc's dry run understood, and does it become steps that run side by side?
#include "build/plan/recipe.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "build/plan/flags.h"
#include "build/plan/graph.h"
#include "build/run/fat_object.h"
#include "build/run/findings.h"
#include "build/run/preprocessed.h"
#include "sys/fake_files.h"

namespace kiln::build {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Of nvcc 13.0 for compute_80 (PTX alone) and compute_90a, shortened.
constexpr const char* kDryRun =
    R"(#$ _SPACE_=
#$ CICC_PATH=/cuda/nvvm/bin
#$ NVVMIR_LIBRARY_DIR=/cuda/nvvm/libdevice
#$ PATH=/cuda/bin:/bin
#$ INCLUDES="-I/cuda/include"
#$ gcc -D__CUDA_ARCH_LIST__=800,900 -E -x c++ "-I/cuda/include" -D "NAME=a b" "/kiln/source.cu" )"
    R"(-o "/tmp/tmpxft_1-5_source.cpp4.ii"
#$ cudafe++ --orig_src_path_name "/kiln/source.cu" --gen_c_file_name )"
    R"("/tmp/tmpxft_1-6_source.compute_90a.cudafe1.cpp" --stub_file_name )"
    R"("tmpxft_1-6_source.compute_90a.cudafe1.stub.c" --gen_module_id_file )"
    R"(--module_id_file_name "/tmp/tmpxft_1-4_source.module_id" "/tmp/tmpxft_1-5_source.cpp4.ii"
#$ gcc -D__CUDA_ARCH__=800 -E "/kiln/source.cu" -o "/tmp/tmpxft_1-8_source.compute_80.cpp1.ii"
#$ "$CICC_PATH/cicc" -arch compute_80 --include_file_name "tmpxft_1-3_source.fatbin.c" )"
    R"(--module_id_file_name "/tmp/tmpxft_1-4_source.module_id" --gen_c_file_name )"
    R"("/tmp/tmpxft_1-7_source.compute_80.cudafe1.c" --stub_file_name )"
    R"("/tmp/tmpxft_1-7_source.compute_80.cudafe1.stub.c" --gen_device_file_name )"
    R"("/tmp/tmpxft_1-7_source.compute_80.cudafe1.gpu"  )"
    R"("/tmp/tmpxft_1-8_source.compute_80.cpp1.ii" -o "/tmp/tmpxft_1-7_source.compute_80.ptx"
#$ gcc -D__CUDA_ARCH__=900 -E "/kiln/source.cu" -o "/tmp/tmpxft_1-9_source.compute_90a.cpp1.ii"
#$ "$CICC_PATH/cicc" -arch compute_90a --include_file_name "tmpxft_1-3_source.fatbin.c" )"
    R"(--module_id_file_name "/tmp/tmpxft_1-4_source.module_id" --gen_c_file_name )"
    R"("/tmp/tmpxft_1-6_source.compute_90a.cudafe1.c" --stub_file_name )"
    R"("/tmp/tmpxft_1-6_source.compute_90a.cudafe1.stub.c" --gen_device_file_name )"
    R"("/tmp/tmpxft_1-6_source.compute_90a.cudafe1.gpu"  )"
    R"("/tmp/tmpxft_1-9_source.compute_90a.cpp1.ii" -o "/tmp/tmpxft_1-6_source.compute_90a.ptx"
#$ ptxas -arch=sm_90a -m64 "/tmp/tmpxft_1-6_source.compute_90a.ptx"  -o )"
    R"("/tmp/tmpxft_1-10_source.compute_90a.sm_90a.cubin"
#$ fatbinary -64 --ident="/kiln/source.cu" )"
    R"("--image3=kind=ptx,sm=80,file=/tmp/tmpxft_1-7_source.compute_80.ptx" )"
    R"("--image3=kind=elf,sm=90a,file=/tmp/tmpxft_1-10_source.compute_90a.sm_90a.cubin" )"
    R"(--embedded-fatbin="/tmp/tmpxft_1-3_source.fatbin.c"
#$ rm /tmp/tmpxft_1-3_source.fatbin
#$ gcc -c -x c++ -O3 "/tmp/tmpxft_1-6_source.compute_90a.cudafe1.cpp" -o "/kiln/source.o"
)";

std::string with(std::string_view from, std::string_view to) {
  return text::replace_all(kDryRun, from, to);
}

TEST(Recipe, NamesProgramsAndTheRolesOfTheirFiles) {
  auto recipe = parse_dryrun(kDryRun);
  ASSERT_TRUE(recipe);
  EXPECT_EQ(recipe->devices.size(), 2u);
  EXPECT_EQ(recipe->devices[0].compute, "80");
  EXPECT_TRUE(recipe->devices[0].assemblies.empty()) << "PTX alone";
  EXPECT_EQ(recipe->devices[1].assemblies[0].sm, "90a");
  EXPECT_EQ(recipe->stub_compute, "90a");
  EXPECT_EQ(recipe->devices[1].cicc[0], "/cuda/nvvm/bin/cicc");
  EXPECT_THAT(recipe->devices[1].cicc, Contains(std::string(kFile) + "90a.ii"));
  EXPECT_THAT(recipe->fatbinary,
              Contains("--image3=kind=elf,sm=90a,file=" + std::string(kFile) + "90a.sm_90a.cubin"));
  EXPECT_THAT(recipe->preprocess, Contains("NAME=a b"));
  EXPECT_THAT(recipe->cudafe, Not(Contains("--gen_module_id_file")))
      << "else devices wait for the host's front end";
  EXPECT_THAT(recipe->env, Contains(std::pair<std::string, std::string>("NVVMIR_LIBRARY_DIR",
                                                                        "/cuda/nvvm/libdevice")));
}

TEST(Recipe, IsReadAsItWasWritten) {
  std::string text = write_recipe(*parse_dryrun(kDryRun));
  auto again = read_recipe(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(write_recipe(*again), text);
  EXPECT_FALSE(read_recipe(text.substr(0, text.size() / 2)));
  EXPECT_FALSE(read_recipe("{}"));
}

TEST(Recipe, WhatIsNotKnownIsLeftToNvcc) {
  EXPECT_FALSE(parse_dryrun(""));
  EXPECT_FALSE(parse_dryrun("nvcc fatal   : Unsupported gpu architecture 'compute_55'\n"));
  EXPECT_FALSE(parse_dryrun(with("#$ rm ", "#$ nvlink --arch=sm_90 \n#$ rm ")))
      << "another program";
  EXPECT_FALSE(parse_dryrun(with("-64 --ident", "-64 --device-c --ident")))
      << "relocatable device code";
  EXPECT_FALSE(parse_dryrun(with("-O3 ", "-O3 -include /tmp/tmpxft_1-77_new ")))
      << "a file of an unknown kind";
  EXPECT_FALSE(parse_dryrun("warning : something\n" + std::string(kDryRun)));
}

class GraphTest : public ::testing::Test {
 protected:
  GraphTest() {
    plan.name = "add";
    plan.build_dir = "/w/build/kiln";
    plan.sources.push_back({"/w/my add.cu", "my add.cu", "my_add.cu", true, {}});
    plan.arch = *project::parse_arch_list("8.0+PTX;9.0a");
    plan.nvcc.emplace();
    plan.nvcc->command = {"/cuda/bin/nvcc"};
    plan.host.command = {"/bin/g++"};
    plan.home.root = "/kiln-home";
    plan.roots = {{"/w", "/proc/self/cwd"}};
    plan.is_program = [](const fs::path& path) { return path.parent_path() == "/cuda/bin"; };
    facts.recipes.emplace(false, *parse_dryrun(kDryRun));
    graph = make_graph(plan, facts);
  }
  const Step& step(StepKind kind, size_t nth = 0) {
    for (const Step& one : graph.steps)
      if (one.kind == kind && nth-- == 0) return one;
    ADD_FAILURE() << "no such step";
    return graph.steps[0];
  }
  Plan plan;
  Facts facts;
  Graph graph;
};

TEST_F(GraphTest, HostAndEachArchitectureAreStepsOfTheirOwn) {
  std::vector<std::string> kinds;
  for (const Step& one : graph.steps) kinds.emplace_back(name_of(one.kind));
  EXPECT_THAT(kinds, ElementsAre("front", "device", "device", "object", "fat", "link"));
  EXPECT_THAT(step(StepKind::Device, 1).outputs,
              ElementsAre("my_add.cu.90a.ptx", "my_add.cu.90a.sm_90a.cubin", "my_add.cu.stub.c"));
  EXPECT_THAT(step(StepKind::Object).inputs,
              ElementsAre("obj/my_add.cu.cpp", "obj/my_add.cu.stub.c", "obj/my_add.cu.fatbin.c"))
      << "it waits for no machine code";
}

TEST_F(GraphTest, CompilersAreToldCanonicalPathsAndFixedNames) {
  std::string cicc = shown_commands(step(StepKind::Device, 1), "S")[1];
  EXPECT_THAT(cicc, HasSubstr("--stub_file_name S/my_add.cu.stub.c"));
  EXPECT_THAT(cicc, HasSubstr("--module_id_file_name obj/my_add.cu.module_id"));
  std::string cudafe = shown_commands(step(StepKind::Front), "S")[1];
  EXPECT_THAT(cudafe, HasSubstr("--orig_src_path_name '/proc/self/cwd/my add.cu'"));
  EXPECT_THAT(cudafe, HasSubstr("--stub_file_name my_add.cu.stub.c"));
  EXPECT_THAT(shown_commands(step(StepKind::Front), "S")[0], HasSubstr("-fmacro-prefix-map=/w/="));
  EXPECT_THAT(shown_commands(step(StepKind::Device, 1), "S")[2],
              HasSubstr("/cuda/bin/ptxas --warn-on-spills"));
}

TEST_F(GraphTest, ASourceWithAnExtendedLambdaNeedsItsOwnRecipe) {
  plan.sources[0].facts.extended_lambda = true;
  EXPECT_EQ(make_graph(plan, facts).steps[0].kind, StepKind::Whole);
}

TEST_F(GraphTest, AStepIsReadAsItWasWritten) {
  for (const Step& one : graph.steps) {
    auto again = read_step(dump(to_json(one)));
    ASSERT_TRUE(again) << format(again.error());
    EXPECT_EQ(dump(to_json(*again)), dump(to_json(one)));
  }
  EXPECT_FALSE(read_step("{}"));
}

TEST_F(GraphTest, OnlyPathsAreCanonicalInAKey) {
  Step one;
  one.roots = {{"/srv/p", "/proc/self/cwd"}};
  auto key = [&](Command command) {
    one.commands = {std::move(command)};
    return dump(key_of_commands(one, "/srv/p/build"));
  };
  EXPECT_EQ(key({path_word("-I/srv/p/inc")}), key({path_word("-I/proc/self/cwd/inc")}));
  EXPECT_NE(key({users("-DDATA=\"/srv/p/data\"")}), key({users("-DDATA=\"/proc/self/cwd/data\"")}));
  EXPECT_NE(key({users("-DA=1"), users("-DB=2")}), key({users("-DA=1 -DB=2")}));
  EXPECT_NE(key({users("/proc/self/cwd/x")}), key({path_word("/srv/p/x")}));
  EXPECT_EQ(key({path_word("-o"), path_word("/srv/p/build/x")}),
            key({path_word("-o"), path_word("/x")}));
}

TEST(Words, OfADryRunAreTypedByTheirOptions) {
  auto kinds = [](const Words& words) {
    std::string out;
    for (const Word& word : compiler_command(words)) out += "opu"[static_cast<size_t>(word.kind)];
    return out;
  };
  EXPECT_EQ(kinds({"gcc", "-D", "A=/srv", "-DB=/srv", "-I/srv", "-isystem", "/srv", "-O3",
                   "-include", "/srv/x.h"}),
            "puuupopoop");
}

TEST(Flags, FilesThatTheyNameAreFound) {
  sys::FakeFiles files;
  files.add("/p/opts", "-Wl,-T,/p/link.ld @more")
      .add("/p/more", "-fplugin=/p/x.so")
      .add("/p/link.ld")
      .add("/p/x.so");
  files.add("/p/data");
  FlagFacts facts =
      look_at_flags(files, {"-Xcompiler=-O2,@opts", "-D", "/p/data", "-DX=/p/data"}, {"/p"});
  EXPECT_THAT(facts.option_files, ElementsAre("/p/opts", "/p/more"));
  EXPECT_THAT(facts.files, ElementsAre("/p/opts", "/p/link.ld", "/p/more", "/p/x.so"))
      << "a define is not opened";
  EXPECT_THAT(facts.opaque, HasSubstr("-fplugin"));
  EXPECT_EQ(look_at_flags(files, {"-Wl,-Bsymbolic", "-Bstatic", "-O3"}, {"/p"}).opaque, "");
  EXPECT_NE(look_at_flags(files, {"-B/p"}, {"/p"}).opaque, "");
}

TEST(Flags, AnOptionFileThatNamesItselfEnds) {
  sys::FakeFiles files;
  files.add("/p/a", "--options-file=b").add("/p/b", "-optf a");
  EXPECT_THAT(look_at_flags(files, {"@a"}, {"/p"}).option_files, ElementsAre("/p/a", "/p/b"));
}

TEST(Paths, AreSwappedAtTheirBeginningAlone) {
  std::vector<Root> roots = {{"/srv/p", "/proc/self/cwd"}};
  EXPECT_EQ(canonical_path(roots, "/srv/p/a.cu"), "/proc/self/cwd/a.cu");
  EXPECT_EQ(canonical_path(roots, "/srv/p2/a.cu"), "/srv/p2/a.cu");
  EXPECT_EQ(real_path(roots, "/proc/self/cwd/a.cu"), "/srv/p/a.cu");
  EXPECT_EQ(with_canonical_paths(roots, "-I/srv/p/inc x/srv/p \"/srv/p\" /srv/pp"),
            "-I/proc/self/cwd/inc x/srv/p \"/proc/self/cwd\" /srv/pp");
}

TEST(Preprocessed, MarkersChangeAndLiteralsStay) {
  std::vector<Root> roots = {{"/w", "/proc/self/cwd"}};
  EXPECT_EQ(with_canonical_markers(
                roots, "# 1 \"/w/a.cu\" 2\nconst char* s = \"/w/a.cu\";\n# 2 \"/usr/x.h\"\n"),
            "# 1 \"/proc/self/cwd/a.cu\" 2\nconst char* s = \"/w/a.cu\";\n# 2 \"/usr/x.h\"\n");
  EXPECT_EQ(with_real_files(roots, "\t.file\t1 \"/proc/self/cwd/a.cu\"\n.loc 1 2 3\n"),
            "\t.file\t1 \"/w/a.cu\"\n.loc 1 2 3\n");
}

TEST(Preprocessed, BodiesOfKernelsAreLeftOut) {
  EXPECT_EQ(
      without_device_bodies(
          "void k();\n#if 0\n{ int i; }\n#if 1\n#endif\n}\n#endif\nint x;\n#if 1\ny\n#endif\n"),
      "void k();\nint x;\n#if 1\ny\n#endif\n");
}

TEST(Preprocessed, TheLinesOfBodiesAreKnown) {
  const std::string host = without_device_bodies(
      "# 3 \"/w/a.h\"\nvoid h() ;\n#if 0\n# 3\n{ }\n#endif\n# 7 \"/proc/self/cwd/a.cu\"\nvoid k() "
      ";\n"
      "#if 0\n# 8\n{\n# 9\n}\n#endif\nint both() { return 1; }\n");
  EXPECT_THAT(lines_of_device_bodies({{"/w", "/proc/self/cwd"}}, host, "/w/a.cu"), ElementsAre(8u));
  // As cudafe++ escapes them.
  const std::string other = text::replace_all(host, "cwd/a.cu", "cwd/k\\303\\251 \\\"#1.cu");
  EXPECT_THAT(lines_of_device_bodies({{"/w", "/proc/self/cwd"}}, other, "/w/ké \"#1.cu"),
              ElementsAre(8u));
}

TEST(Findings, AreToldWithTheKernelsName) {
  const char* log =
      "ptxas warning : Registers are spilled to local memory in function '_Z4workPf', 8 bytes "
      "spill stores, 16 bytes "
      "spill loads\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to the "
      "presence of Extern calls in the function '_Z4workPf'\nadd.cu(3): warning #177-D: unused\n";
  EXPECT_THAT(ptxas_findings(log), ElementsAre("work(float*): registers spill to local memory: 8 "
                                               "bytes spill stores, 16 bytes spill loads",
                                               "work(float*): wgmma.mma_async instructions are "
                                               "serialized due to the presence of Extern calls"));
  EXPECT_EQ(without_findings(log), "add.cu(3): warning #177-D: unused\n");
}

TEST(FatObject, IsAnElfWithTheBytes) {
  std::string object = fat_object("FATBINARY", "kiln_fatbin_x");
  EXPECT_EQ(object.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_THAT(object, HasSubstr("FATBINARY"));
  EXPECT_THAT(object, HasSubstr("kiln_fatbin_x"));
}

}  // namespace
}  // namespace kiln::build
