// SPDX-License-Identifier: Apache-2.0
// Do the views of an inspected file read as they should, wide, narrow and without anything in them?
#include <gmock/gmock.h>

#include "report/inspect.h"

namespace kiln::report {
namespace {

using results::Group;
using results::KernelFacts;
using results::Service;
using testing::HasSubstr;
using testing::Not;

results::Overview library_facts() {
  results::Overview out;
  out.file = {"libadd.so",
              "shared library",
              "aarch64",
              4000,
              {{Group::Sass, 3000}},
              1,
              {{"sm_90a", "zstd", 2, 100, 400, true}}};
  out.pieces = {{Group::Sass, "sm_90a", 64, 3000}};
  out.images = {{0, "sass", "sm_90a", 64, "zstd", 100, 400, false, {}, {}}};
  out.gpus = {{"8.0", "A100", Service::None, ""},
              {"9.0", "H100", Service::Native, "sm_90a", 2},
              {"12.0", "RTX 5090", Service::Jit, "compute_90"}};
  out.driver = {580, 0, "CUDA 13.0", ""};
  return out;
}

TEST(OverviewText, BytesImagesAndGpus) {
  const std::string text = overview_text(library_facts(), {});
  EXPECT_THAT(text, HasSubstr("libadd.so: shared library, aarch64, 4,000 bytes\n"));
  EXPECT_THAT(text, HasSubstr("75.0 %"));
  EXPECT_THAT(text, HasSubstr("fat binary: 1 container, 1 image\n"));
  EXPECT_THAT(text, HasSubstr("zstd (unpacked 400 B)  debug\n"));
  EXPECT_THAT(text, HasSubstr("  native  sm_90a (2 by JIT): 9.0 (H100)\n"));
  EXPECT_THAT(text, HasSubstr("  by JIT  compute_90: 12.0 (RTX 5090)\n"));
  EXPECT_THAT(text, HasSubstr("  not     8.0 (A100)\n"));
  EXPECT_THAT(text, HasSubstr("  driver  580 or newer for SASS (CUDA 13.0)\n"));
  EXPECT_THAT(text, HasSubstr("  here    no GPU\n"));
  EXPECT_THAT(text, Not(HasSubstr("pieces")));
}

TEST(OverviewText, WithoutDeviceCodeAndWithDamagedOne) {
  results::Overview file = library_facts();
  file.images.clear();
  EXPECT_THAT(overview_text(file, {}), HasSubstr("no GPU code\n"));
  EXPECT_THAT(overview_text(file, {}), Not(HasSubstr("GPUs")));
  file.image_faults = {"container 0 at 0x40: too short"};
  EXPECT_THAT(overview_text(file, {}), HasSubstr("  damaged: container 0 at 0x40: too short\n"));
}

TEST(OverviewText, VerboseHasEveryPiece) {
  InspectStyle style;
  style.verbose = true;
  EXPECT_THAT(overview_text(library_facts(), style),
              HasSubstr("0x0000000040          3,000  SASS              sm_90a\n"));
}

KernelFacts kernel_for(const std::string& symbol, const std::string& arch) {
  KernelFacts out;
  out.name = symbol + "(float*)";
  out.symbol = symbol;
  out.arch = arch;
  out.registers = 24;
  out.mix = {{"move", 2}, {"integer", 9}};
  return out;
}

// sm_100 comes after sm_90, and a kernel's architectures stand together.
TEST(KernelsText, ByKernelThenByArchitecture) {
  const std::string text = kernels_text(
      {kernel_for("f", "sm_100"), kernel_for("g", "sm_90"), kernel_for("f", "sm_90a")}, {}, {});
  EXPECT_THAT(text, HasSubstr("kernels: 2 (3 with all architectures)\n"));
  EXPECT_LT(text.find("f(float*)"), text.find("sm_90a"));
  EXPECT_LT(text.find("sm_90a"), text.find("sm_100"));
  EXPECT_LT(text.find("sm_100"), text.find("g(float*)"));
}

TEST(KernelsText, BoundsSharedMemoryAndOccupancy) {
  KernelFacts kernel = kernel_for("f", "sm_90");
  kernel.shared_bytes = 512;
  kernel.reserved_shared_bytes = 1024;
  kernel.max_threads = {256, 1, 1};
  kernel.min_blocks = 2;
  EXPECT_THAT(kernels_text({kernel}, {}, {}), HasSubstr("512 + 1024"));
  EXPECT_THAT(kernels_text({kernel}, {}, {}), HasSubstr("<= 256, 2"));
  EXPECT_THAT(kernels_text({kernel}, {}, {}), HasSubstr("  ?\n"));
  kernel.required_threads = {16, 16, 1};
  kernel.fit = results::Fit{8, 256, 0.75, "registers", 48};
  EXPECT_THAT(kernels_text({kernel}, {}, {}), HasSubstr("= 16x16, 2"));
  EXPECT_THAT(kernels_text({kernel}, {}, {}), HasSubstr("   75 %  8 x 256, registers\n"));
  kernel.fit->blocks = 0;
  EXPECT_THAT(kernels_text({kernel}, {}, {}), HasSubstr("  does not fit\n"));
}

TEST(KernelsText, ANarrowTerminalCutsNamesAndPutsTheOccupancyBelow) {
  InspectStyle style;
  style.columns = 80;
  KernelFacts kernel = kernel_for(std::string(100, 'f'), "sm_90");
  const std::string text = kernels_text({kernel}, {}, style);
  EXPECT_THAT(text, HasSubstr(std::string(79, 'f') + "…\n"));
  EXPECT_THAT(text, HasSubstr("\n         occupancy ?\n"));
  style.verbose = true;
  EXPECT_THAT(kernels_text({kernel}, {}, style), HasSubstr("9 integer, 2 move\n"));
}

TEST(KernelsText, NothingButDamage) {
  EXPECT_EQ(kernels_text({}, {"image 3"}, {}), "kernels: 0\n  damaged: image 3\n");
}

results::CodeList code_facts() {
  results::SassLine line;
  line.address = 0x10;
  line.text = "IADD3 R0";
  line.control = {4, true, 1, 7, 4, 0};
  line.live_registers = 12;
  line.live_predicates = 1;
  line.source = {{1, 7, "twice(float)"}, {1, 2, ""}};
  results::CodeList out;
  results::Listing listing{"_Z1fv", "f()", "sm_90", {"", "src/a.cu"}, {line, line}, true};
  out.images = {{0, {{listing}, {}, ""}}};
  return out;
}

TEST(SassText, ControlCodesAndWhereALineComesFrom) {
  results::CodeList code = code_facts();
  const std::string text = sass_text(code, {});
  EXPECT_THAT(text, HasSubstr("sm_90  f()\n"));
  EXPECT_THAT(text, HasSubstr("      12+1p  B--2---:R-:W1:Y:S04  0010  IADD3 R0\n"));
  const std::string source = "  // a.cu:7 (twice) < a.cu:2\n";
  EXPECT_THAT(text, HasSubstr(source));
  EXPECT_EQ(text.find(source), text.rfind(source));  // lines of the same place have it once
  code.sources = {{"src/a.cu", std::vector<std::string>(7, "return a + a;"), ""}};
  EXPECT_THAT(sass_text(code, {}), HasSubstr("a.cu:2   return a + a;\n"));
  code.sources[0].lines->resize(6);
  EXPECT_THAT(sass_text(code, {}), HasSubstr(source));
}

TEST(SassText, WordsWithoutADisassemblerAndNotes) {
  results::CodeList code = code_facts();
  code.images[0].listing.kernels[0].disassembled = false;
  code.note = "no nvdisasm";
  code.left_out = 3;
  code.sources_note = "2 files were left out";
  const std::string text = sass_text(code, {});
  EXPECT_THAT(text, HasSubstr("IADD3 R0        0x0000000000000000 0x0000000000000000\n"));
  EXPECT_EQ(text.find("note: no nvdisasm\n"), 0u);
  EXPECT_THAT(text, HasSubstr("3 more kernels: name one with --kernel\n"));
  EXPECT_THAT(text, HasSubstr("note: 2 files were left out\n"));
}

TEST(PtxText, OneImageSeveralAndNone) {
  EXPECT_EQ(ptx_text({{"compute_90", "ret;"}}, "", {}), "ret;\n");
  EXPECT_EQ(ptx_text({{"compute_80", "a\n"}, {"compute_90", "b\n"}}, "", {}),
            "// compute_80\na\n// compute_90\nb\n");
  EXPECT_EQ(ptx_text({}, "", {}), "it contains no PTX\n");
  EXPECT_THAT(ptx_text({{"compute_90", ""}}, "gemm", {}), HasSubstr("with 'gemm' in its name"));
}

TEST(SymbolsText, LibrariesFloorsAndWhoProvidesWhat) {
  results::Symbols symbols;
  symbols.soname = "libadd.so";
  symbols.floor = {"2.34", "", "", "manylinux_2_34_aarch64", {"GLIBC_2.34"}, {"libc10.so"}};
  symbols.libraries = {{"libadd.so", "/a/libadd.so", "", "", true, -1, {1, 2}},
                       {"liba.so", "/a/liba.so", "RUNPATH /a", "", true, 0, {2}},
                       {"libgone.so", "", "", "", true, 1, {}}};
  const results::SymbolRow row{'U', "f", "f()", "V1", false, 16, 8, 2, 1, 0, "12"};
  symbols.needed = {
      {row, false, "liba.so", ""}, {row, false, "", "it left in 2.9"}, {row, true, "", ""}};
  const std::string text = symbols_text(symbols, {});
  EXPECT_THAT(text, HasSubstr("libraries\n  liba.so  /a/liba.so (RUNPATH /a)\n"
                              "    libgone.so  not found\n  libgone.so  (above)\n"));
  EXPECT_THAT(text, HasSubstr("  manylinux_2_34_aarch64: not older because of GLIBC_2.34\n"));
  EXPECT_THAT(text, HasSubstr("  libc10.so: no manylinux guarantees it\n"));
  EXPECT_THAT(text, HasSubstr("needed: 3, 1 of them not provided\n"));
  EXPECT_THAT(text, HasSubstr("  U f()@V1  <- nobody\n      it left in 2.9\n"));
  EXPECT_THAT(text, HasSubstr("<- nobody (weak: it may be missing)\n"));
  symbols.dynamic = {row};
  EXPECT_THAT(tables_text(symbols), HasSubstr("FUNC    GLOBAL DEFAULT      12 f()@V1\n"));
}

}  // namespace
}  // namespace kiln::report
