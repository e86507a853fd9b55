// SPDX-License-Identifier: Apache-2.0
// Is an inspected file shown whole: bytes, kernels, code, symbols; also when it has none of them?
#include "report/inspect.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "count_of.h"

namespace kiln::report {
namespace {

using results::Group;
using results::Inspection;
using testing::HasSubstr;
using testing::Not;

const std::string kHostileName = "</script><script>alert(1)</script>\"'&\x01";

// What the script of a page reads.
Json data_of(const std::string& page) {
  const std::string mark = "id=\"data\">";
  const size_t begin = page.find(mark) + mark.size();
  auto json = parse_json(page.substr(begin, page.find("</script>", begin) - begin), "the page");
  return json ? *json : Json();
}

Inspection whole(const std::string& name) {
  Inspection out;
  out.file = {name,
              name,
              name,
              300,
              {{Group::Sass, 200}, {Group::HostCode, 100}},
              1,
              {{"sm_90", "zstd", 2, 100, 400}}};
  out.images_text = name;
  results::KernelFacts kernel;
  kernel.name = kernel.symbol = kernel.arch = kernel.bounds = kernel.mix = name;
  kernel.registers = 32;
  kernel.fit = results::Fit{4, 256, 0.5, name};
  kernel.listing = 0;
  out.kernels = {kernel};
  out.kernel_count = 1;
  out.files = {{name, std::vector<std::string>{name}, ""}, {name, std::nullopt, name}};
  out.names = {name};
  results::Code code;
  code.name = code.symbol = code.arch = name;
  code.lines = {{name, 7, 3, 0, 1}};
  code.frames = {{{0, 1, 0}, {1, 2, std::nullopt}}};
  code.labels = {{0, name}};
  code.ptx = {name};
  out.code = {code};
  out.code_notes = {name};
  results::Symbols symbols;
  symbols.tag = symbols.glibc = symbols.glibcxx = name;
  symbols.advice = {name};
  symbols.libraries = {{name, name, name, 1}};
  symbols.needed = {{'<', name, name}};
  symbols.defined = {{'T', name, ""}};
  symbols.needed_count = symbols.defined_count = 1;
  out.symbols = symbols;
  return out;
}

TEST(InspectPage, AFileWithoutDeviceCode) {
  Inspection file;
  file.file.name = "empty.so";
  const std::string page = inspect_page(file);
  EXPECT_THAT(page, HasSubstr("id=\"overview\""));
  for (const char* section : {"id=\"table\"", "id=\"code\"", "id=\"symbols\""})
    EXPECT_THAT(page, Not(HasSubstr(section)));
  EXPECT_EQ(data_of(page)["kernels"].size(), 0u);
}

TEST(InspectPage, TheScriptGetsKernelsAndCode) {
  const Json data = data_of(inspect_page(whole("k")));
  EXPECT_EQ(data["kernels"][0]["registers"], 32);
  EXPECT_EQ(data["kernels"][0]["occupancy"], "50 % (4 x 256, k)");
  EXPECT_EQ(data["files"][1]["lines"], Json());
  EXPECT_EQ(data["code"][0]["lines"][0], Json::array({"k", 7, 3, 0, 1}));
  EXPECT_EQ(data["code"][0]["frames"][0], (Json::array({{0, 1, 0}, {1, 2}})));
  EXPECT_EQ(data["code"][0]["labels"][0], Json::array({0, "k"}));
}

TEST(InspectPage, AKernelThatDoesNotFitOrIsNotKnown) {
  Inspection file = whole("k");
  file.kernels[0].fit->blocks = 0;
  EXPECT_EQ(data_of(inspect_page(file))["kernels"][0]["occupancy"], "does not fit");
  file.kernels[0].fit.reset();
  EXPECT_EQ(data_of(inspect_page(file))["kernels"][0]["occupancy"], "?");
}

TEST(InspectPage, SaysWhatItLeavesOut) {
  Inspection file = whole("k");
  file.kernel_count = 109'126;
  file.code_left_out = 12;
  file.symbols->needed_count = 1001;
  const std::string page = inspect_page(file);
  EXPECT_THAT(page, HasSubstr("Kernels (109,126)"));
  EXPECT_THAT(page, HasSubstr("109,125 more: kiln inspect --kernels"));
  EXPECT_THAT(page, HasSubstr("12 more kernels"));
  EXPECT_THAT(page, HasSubstr("1,000 more: kiln inspect --symbols"));
}

TEST(InspectPage, ManyRows) {
  Inspection file = whole("k");
  file.kernels.resize(3000, file.kernels[0]);
  file.symbols->defined.resize(2000, {'T', "f", ""});
  const std::string page = inspect_page(file);
  EXPECT_EQ(data_of(page)["kernels"].size(), 3000u);
  EXPECT_EQ(count_of(page, "<tr class=\"symbol\">"), 2001u);
}

TEST(InspectPage, HostileNamesAreText) {
  const std::string page = inspect_page(whole(kHostileName));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(count_of(page, "<script"), 2u);  // its data and its own
  EXPECT_EQ(count_of(page, "</script>"), 2u);
  EXPECT_EQ(data_of(page)["kernels"][0]["name"], kHostileName);
}

TEST(BytesPicture, NothingOneAndEveryGroup) {
  EXPECT_THAT(bytes_picture({}), HasSubstr("</svg>"));
  results::FileBytes file;
  file.groups = {{Group::Ptx, 0}};
  EXPECT_THAT(bytes_picture(file), Not(HasSubstr("nan")));
  file.groups.clear();
  for (size_t i = 0; i < results::kGroups; ++i) file.groups.push_back({Group(i), 1000});
  const std::string picture = bytes_picture(file);
  for (size_t i = 0; i < results::kGroups; ++i)
    EXPECT_THAT(picture, HasSubstr(std::string(name_of(Group(i))) + " 1.00 KB"));
}

// A browser reads it as XML, which forbids control characters.
TEST(BytesPicture, HostileNamesAreText) {
  const std::string picture = bytes_picture(whole(kHostileName).file);
  EXPECT_THAT(picture, Not(HasSubstr("<script")));
  EXPECT_THAT(picture, Not(HasSubstr("\x01")));
}

}  // namespace
}  // namespace kiln::report
