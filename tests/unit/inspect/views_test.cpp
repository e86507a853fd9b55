// SPDX-License-Identifier: Apache-2.0
// Are the pure parts right: which GPU runs what, the wheel tag, the torch a name belongs to,
// nvdisasm's text, a diff?
#include <gmock/gmock.h>

#include "binary/cubin.h"
#include "inspect/diff.h"
#include "inspect/facts.h"
#include "inspect/gpus.h"
#include "inspect/launch_bounds.h"
#include "inspect/listing.h"
#include "inspect/loader.h"
#include "inspect/needs.h"
#include "inspect/picture.h"
#include "inspect/wheel_tag.h"

namespace kiln::inspect {
namespace {

using binary::ImageKind;
using results::Change;
using results::FileDiff;
using results::KernelDiff;
using testing::ElementsAre;
using testing::HasSubstr;

Image image(ImageKind kind, uint32_t arch, char variant = 0) {
  Image out;
  out.entry.kind = static_cast<uint16_t>(kind);
  out.entry.arch = arch;
  out.entry.variant = variant;
  return out;
}

TEST(Gpus, NativeByMajorJitByAge) {
  std::vector<Image> images = {image(ImageKind::Elf, 80), image(ImageKind::Ptx, 90)};
  EXPECT_EQ(service_for(images, 89).by, "sm_80");
  EXPECT_EQ(service_for(images, 90).service, Service::Jit);
  EXPECT_EQ(service_for(images, 120).by, "compute_90");
  EXPECT_EQ(service_for(images, 75).service, Service::None);
}

TEST(Gpus, VariantsRunWhereTheySay) {
  std::vector<Image> images = {image(ImageKind::Elf, 90, 'a'), image(ImageKind::Ptx, 90, 'a'),
                               image(ImageKind::Elf, 100, 'f')};
  EXPECT_EQ(service_for(images, 90).by, "sm_90a");
  EXPECT_EQ(service_for(images, 100).by, "sm_100f");
  EXPECT_EQ(service_for(images, 103).by, "sm_100f");
  EXPECT_EQ(service_for(images, 120).service, Service::None);
}

TEST(Gpus, EachFatBinaryIsServedByItself) {
  std::vector<Image> images = {image(ImageKind::Elf, 90), image(ImageKind::Elf, 90),
                               image(ImageKind::Elf, 90, 'a'), image(ImageKind::Elf, 80),
                               image(ImageKind::Ptx, 80)};
  images[1].container = 1;
  images[2].container = 2;
  images[3].container = images[4].container = 3;
  Served served = service_for(images, 90);
  EXPECT_EQ(served.service, Service::Native);
  EXPECT_EQ(served.by, "sm_90, sm_90a");
  EXPECT_EQ(served.jit_containers, 1u);
  EXPECT_EQ(service_for(images, 120).by, "compute_80");
}

TEST(LaunchBounds, MinBlocksOfPtx) {
  EXPECT_THAT(
      min_blocks_of(
          ".visible .entry _Z1kPf(\n.param .u64 p\n)\n.maxntid 256\n.minnctapersm 3\n{ ret; }\n"
          ".entry other\n.maxntid 1\n{ // .minnctapersm 9\n ret; }\n.entry last .minnctapersm 12 { "
          "}"),
      ElementsAre(std::pair("_Z1kPf", 3u), std::pair("last", 12u)));
  using namespace std::string_view_literals;
  EXPECT_THAT(min_blocks_of(".entry k(\0)\0.minnctapersm 2\0{"sv), ElementsAre(std::pair("k", 2u)));
  for (std::string_view odd :
       {"", ".minnctapersm", ".minnctapersm 5", ".entry.minnctapersm", ".entry k .minnctapersm x"})
    EXPECT_THAT(min_blocks_of(odd), ElementsAre()) << odd;
}

TEST(Gpus, TheOldestDriver) {
  std::vector<Image> images = {image(ImageKind::Ptx, 90)};
  images[0].entry.version_major = 8;
  images[0].entry.version_minor = 7;
  EXPECT_EQ(driver_floor(images, "12.8").ptx, 570);
  EXPECT_EQ(driver_floor(images, "12.8").sass, 525);
  EXPECT_EQ(driver_floor({}, "13.0").sass, 580);
  EXPECT_EQ(driver_floor({}, "").sass, 0);
}

TEST(WheelTag, IsTheOldestThatAllowsEveryVersion) {
  using binary::NeededVersion;
  std::vector<NeededVersion> versions = {{"libc.so.6", "GLIBC_2.17"},
                                         {"libstdc++.so.6", "GLIBCXX_3.4.19"}};
  EXPECT_EQ(system_floor(versions, {}, "x86_64").tag, "manylinux_2_17_x86_64");
  versions.push_back({"libc.so.6", "GLIBC_2.34"});
  SystemFloor floor = system_floor(versions, {"libc.so.6", "libc10.so"}, "aarch64");
  EXPECT_EQ(floor.tag, "manylinux_2_34_aarch64");
  EXPECT_EQ(floor.glibc, "2.34");
  EXPECT_THAT(floor.reasons, ElementsAre("GLIBC_2.34"));
  EXPECT_THAT(floor.outside, ElementsAre("libc10.so"));
  versions.push_back({"libc.so.6", "GLIBC_PRIVATE"});
  EXPECT_EQ(system_floor(versions, {}, "aarch64").tag, "linux_aarch64");
  EXPECT_LT(compare_versions("2.9", "2.17"), 0);
}

TEST(TorchRange, IsTheOverlapOfItsNames) {
  EXPECT_EQ(torch_range({"strlen"}), "");
  EXPECT_EQ(torch_range({"_ZN3c1021throwNullDataPtrErrorEv"}), "2.4 or newer");
  EXPECT_EQ(torch_range({"_ZN3c1013MessageLoggerC1EPKcii"}), "2.9 or older");
  EXPECT_EQ(torch_range({"_ZN3c1013MessageLoggerC1EPKcii", "_ZN3c1021throwNullDataPtrErrorEv"}),
            "2.4 to 2.9");
  EXPECT_EQ(torch_range({"_ZN3c1013MessageLoggerC1EPKciib", "_ZN3c1013MessageLoggerC1EPKcii"}),
            "of no single release");
}

TEST(TorchNames, AreComparedWithoutTheStringAbi) {
  EXPECT_EQ(without_string_abi(binary::demangle("_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__"
                                                "cxx1112basic_stringIcSt11char_traitsIcESaIcEEE")),
            without_string_abi(binary::demangle("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs")));
}

constexpr const char* kDisassembly =
    ".L_x_1:\n"
    "\t.section\t.text._Z1kPf,\"ax\",@progbits\n"
    "\t.sectioninfo\t@\"SHI_REGISTERS=19\"\n"
    "                                   // | GPR   | PRED   | UGPR   |\n"
    ".text._Z1kPf:                      // |       |        |        |\n"
    "        /*0000*/                   LDC R1, c[0x0][0x28] ;   // |   1   |        |    2   |\n"
    ".L_x_2:                            // |   8   |   1    |   4    |\n"
    "        /*0010*/              @!P0 BRA `(.L_x_2) ;          // |  12   |   1    |        |\n";

TEST(Nvdisasm, TextLabelsAndLiveRegisters) {
  auto sections = parse_nvdisasm(kDisassembly);
  ASSERT_EQ(sections.size(), 1u);
  auto& lines = sections[".text._Z1kPf"];
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, "LDC R1, c[0x0][0x28]");
  EXPECT_EQ(lines[0].label, "");
  EXPECT_EQ(lines[0].registers, 1);
  EXPECT_EQ(lines[0].uniform, 2);
  EXPECT_EQ(lines[16].label, ".L_x_2");
  EXPECT_EQ(lines[16].text, "@!P0 BRA `(.L_x_2)");
  EXPECT_EQ(lines[16].registers, 12);
  EXPECT_EQ(lines[16].predicates, 1);
}

// An nvdisasm that does not end by itself.
class Endless final : public sys::Processes {
 public:
  double limit_s = 0;
  Result<sys::ProcessResult> run(const sys::ProcessSpec& spec) override {
    limit_s = spec.limit_s;
    sys::ProcessResult out;
    out.exit_code = 137;
    out.timed_out = true;
    out.out = kDisassembly;  // what it had printed by then is not the whole
    return out;
  }
};

TEST(Nvdisasm, IsStoppedAtALimit) {
  auto content = sys::real_files().read(KILN_TEST_DATA "/fuzz/corpus/tiny_sm80.cubin");
  ASSERT_TRUE(content);
  const binary::Bytes bytes = std::as_bytes(std::span(*content));
  auto cubin = binary::read_cubin(bytes);
  ASSERT_TRUE(cubin && !cubin->kernels.empty());
  Endless endless;
  auto listed = list_cubin(bytes, {"/cuda/bin/nvdisasm", {cubin->kernels[0].symbol}, "sm_80"},
                           sys::real_files(), endless);
  ASSERT_TRUE(listed);
  EXPECT_GT(endless.limit_s, 0);
  EXPECT_THAT(listed->note, HasSubstr("it was stopped after 300 s"));
  ASSERT_EQ(listed->kernels.size(), 1u);
  EXPECT_FALSE(listed->kernels[0].disassembled);
}

KernelRow kernel(const char* name, uint32_t registers, uint32_t integers) {
  KernelRow row;
  row.name = name;
  row.arch = 90;
  row.resources.registers = registers;
  row.resources.counts[static_cast<size_t>(binary::SassClass::Integer)] = integers;
  return row;
}

TEST(Diff, SlimmerFatterAddedRemoved) {
  Analysis before, after;
  before.kernels.rows = {kernel("same", 32, 10), kernel("fat", 32, 10), kernel("gone", 8, 1)};
  after.kernels.rows = {kernel("same", 32, 10), kernel("fat", 40, 14), kernel("_Z4freshPf", 8, 1)};
  FileDiff diff = compare_files(before, after, "");
  std::map<std::string, std::string_view> seen;
  for (const KernelDiff& one : diff.kernels) seen[one.symbol] = name_of(one.change);
  EXPECT_EQ(seen["same"], "same");
  EXPECT_EQ(seen["fat"], "more_resources");
  EXPECT_EQ(seen["gone"], "removed");
  EXPECT_EQ(seen["_Z4freshPf"], "added");
  const KernelDiff* fat = nullptr;
  for (const KernelDiff& one : diff.kernels)
    if (one.symbol == "fat") fat = &one;
  ASSERT_TRUE(fat);
  EXPECT_EQ(fat->figures[0].name, "registers");
  EXPECT_EQ(fat->figures[0].delta(), 8);
  ASSERT_EQ(fat->mix.size(), 1u);
  EXPECT_EQ(fat->mix[0].name, "integer");
  EXPECT_EQ(fat->mix[0].delta(), 4);
}

TEST(Diff, AChangedSignatureIsTheSameKernel) {
  Analysis before, after;
  before.kernels.rows = {kernel("_Z1kPf", 32, 10)};
  after.kernels.rows = {kernel("_Z1kPfi", 30, 10)};
  FileDiff diff = compare_files(before, after, "");
  ASSERT_EQ(diff.kernels.size(), 1u);
  EXPECT_EQ(diff.kernels[0].change, Change::FewerResources);
}

KernelRow of_arch(uint32_t arch, KernelRow row) {
  row.arch = arch;
  return row;
}

TEST(Diff, OnlyArchitecturesThatBothHaveAreCompared) {
  Analysis before, after;
  before.kernels.rows = {of_arch(80, kernel("k", 32, 10)), of_arch(90, kernel("k", 32, 10))};
  after.kernels.rows = {of_arch(90, kernel("k", 30, 10)), of_arch(100, kernel("k", 28, 10))};
  FileDiff diff = compare_files(before, after, "");
  ASSERT_EQ(diff.kernels.size(), 1u);
  EXPECT_EQ(diff.kernels[0].arch, "sm_90");
  EXPECT_EQ(diff.kernels[0].change, Change::FewerResources);
  EXPECT_THAT(diff.only_after, ElementsAre("sm_100"));
  EXPECT_EQ(to_json(diff)["only_before"], Json({"sm_80"}));
}

TEST(Diff, WithoutACommonArchitectureTheNewestOfEachAreCompared) {
  Analysis before, after;
  before.kernels.rows = {of_arch(80, kernel("k", 32, 10)), of_arch(86, kernel("k", 31, 10))};
  after.kernels.rows = {of_arch(90, kernel("k", 30, 10))};
  FileDiff diff = compare_files(before, after, "");
  ASSERT_EQ(diff.kernels.size(), 1u);
  EXPECT_EQ(diff.kernels[0].figures[0].before, 31);
  EXPECT_EQ(diff.kernels[0].figures[0].after, 30);
  EXPECT_EQ(diff.before_arch, "sm_86");
  EXPECT_EQ(diff.after_arch, "sm_90");
}

TEST(Diff, AFileWithoutKernelsHasLostAllOfThem) {
  Analysis before, after;
  before.kernels.rows = {kernel("k", 32, 10)};
  FileDiff diff = compare_files(before, after, "");
  ASSERT_EQ(diff.kernels.size(), 1u);
  EXPECT_EQ(diff.kernels[0].change, Change::Removed);
}

CodeList code(std::initializer_list<const char*> lines) {
  Listing listing;
  listing.symbol = "k";
  listing.arch = "sm_90";
  for (const char* text : lines) {
    SassLine line;
    line.text = text;
    if (line.text.starts_with(".L")) {
      line.label = line.text;
      line.text = "NOP";
    }
    listing.lines.push_back(line);
  }
  CodeList out;
  out.images.push_back({0, {{listing}, {}, ""}});
  return out;
}

TEST(Facts, TheListingOfAKernelOnItsPage) {
  Analysis analysis;
  analysis.kernels.rows = {kernel("other", 16, 4), kernel("k", 32, 10)};
  analysis.images.images = {image(ImageKind::Elf, 90)};
  analysis.images.faults = {"container 1"};
  const results::Inspection page =
      inspection_of({analysis, code({"MOV R1, R2"}), std::nullopt, {90}, 128});
  ASSERT_EQ(page.kernels.size(), 2u);
  EXPECT_EQ(page.kernels[0].listing, -1);
  EXPECT_EQ(page.kernels[1].listing, 0);
  EXPECT_EQ(page.kernels[1].registers, 32u);
  EXPECT_THAT(page.kernels[1].mix, ElementsAre(std::pair("integer", 10u)));
  ASSERT_TRUE(page.kernels[1].fit);
  EXPECT_EQ(page.kernels[1].fit->block_threads, 128u);
  EXPECT_EQ(page.overview.here[0].by, "sm_90");
  EXPECT_THAT(page.overview.image_faults, ElementsAre("container 1"));
  EXPECT_FALSE(page.symbols);
}

// A text names the file of the innermost line alone: a note about files that it does not show would
// be noise.
TEST(Facts, SourcesOfTheInnermostLinesOrOfAll) {
  CodeList list = code({"MOV R1, R2"});
  Listing& listing = list.images[0].listing.kernels[0];
  listing.files = {"", "/nowhere/inner.h", "/nowhere/outer.cu"};
  listing.lines[0].source = {{1, 3, "f()"}, {2, 9, ""}};
  CodeList all = list;
  Sources sources(sys::real_files(), {});
  add_sources(list, sources, Frames::Innermost);
  ASSERT_EQ(list.sources.size(), 1u);
  EXPECT_EQ(list.sources[0].path, "/nowhere/inner.h");
  EXPECT_FALSE(list.sources[0].lines);
  add_sources(all, sources, Frames::All);
  ASSERT_EQ(all.sources.size(), 2u);
  EXPECT_EQ(all.sources[1].path, "/nowhere/outer.cu");
}

TEST(Diff, BlocksThatChanged) {
  Analysis before, after;
  before.kernels.rows = after.kernels.rows = {kernel("k", 32, 10)};
  FileDiff diff = compare_files(before, after, "");
  add_blocks(diff, code({"MOV R1, R2", ".L_1", "EXIT"}),
             code({"MOV R1, R2", ".L_7", "FADD R1, R1, R1", "EXIT"}));
  ASSERT_EQ(diff.kernels[0].blocks.size(), 2u);
  EXPECT_FALSE(diff.kernels[0].blocks[0].changed);
  EXPECT_TRUE(diff.kernels[0].blocks[1].changed);
  EXPECT_THAT(diff.kernels[0].blocks[1].lines,
              testing::Contains(std::pair('+', std::string("FADD R1, R1, R1"))));
}

}  // namespace
}  // namespace kiln::inspect
