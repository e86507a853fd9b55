// SPDX-License-Identifier: Apache-2.0
// Is an inspected file shown whole: bytes, kernels, code, symbols; also when it has none of them?
#include "report/inspect.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "count_of.h"
#include "report/kernels/names.h"

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

results::CodeList code_named(const std::string& name) {
  results::Listing listing{name, name, name, {"", name + "1", name + "2"}, {}, true};
  results::SassLine line;
  line.text = line.label = name;
  line.high = uint64_t{7} << 41;
  line.live_registers = 3;
  line.source = {{1, 1, name}, {2, 2, ""}};
  line.ptx_line = 1;
  listing.lines = {line};
  results::CodeList out;
  out.images = {{0, {{listing}, {name}, ""}}};
  out.note = name;
  out.sources = {{name + "1", std::vector<std::string>{name}, ""},
                 {name + "2", std::nullopt, name}};
  return out;
}

results::Symbols symbols_named(const std::string& name) {
  results::Symbols out;
  out.soname = out.runpath = name;
  out.floor.tag = out.floor.glibc = out.floor.glibcxx = name;
  out.advice = {name};
  out.libraries = {{"itself", name, "", "", true, -1, {1, 2}},
                   {name, name, name, "", true, 0, {2}},
                   {"libgone.so", "", "", "", true, 1, {}}};
  results::SymbolRow row{'<', name, name, "V1", true, 16, 8, 2, 1, 0, "12"};
  out.needed = {{row, false, name, ""}, {row, false, "", "it is gone"}, {row, true, "", ""}};
  row.letter = 'T';
  out.defined = {row};
  return out;
}

Inspection whole(const std::string& name) {
  Inspection out;
  out.overview.file = {name,
                       name,
                       name,
                       300,
                       {{Group::Sass, 200}, {Group::HostCode, 100}},
                       1,
                       {{"sm_90", "zstd", 2, 100, 400}}};
  out.overview.images = {{0, "sass", "sm_90", 64, "zstd", 100, 400, false, {}, {}}};
  out.overview.gpus = {{name, name, results::Service::Native, name},
                       {name, name, results::Service::Jit, name}};
  out.overview.image_faults = {name};
  results::KernelFacts kernel;
  kernel.name = kernel.symbol = kernel.arch = name;
  kernel.mix = {{name, 3}, {"integer", 4}};
  kernel.registers = 32;
  kernel.fit = results::Fit{4, 256, 0.5, name};
  kernel.listing = 0;
  out.kernels = {kernel};
  out.code = code_named(name);
  out.symbols = symbols_named(name);
  return out;
}

TEST(InspectPage, AFileWithoutDeviceCode) {
  Inspection file;
  file.overview.file.name = "empty.so";
  const std::string page = inspect_page(file);
  EXPECT_THAT(page, HasSubstr("id=\"overview\""));
  for (const char* section : {"id=\"table\"", "id=\"code\"", "id=\"symbols\""})
    EXPECT_THAT(page, Not(HasSubstr(section)));
  EXPECT_EQ(data_of(page)["groups"].size(), 0u);
}

TEST(InspectPage, TheScriptGetsKernelsAndCode) {
  const Json data = data_of(inspect_page(whole("k")));
  const Json& row = data["groups"][0]["rows"][0];
  EXPECT_EQ(row[4], 32);
  EXPECT_EQ(row[5], "50 % (4 x 256, k)");
  EXPECT_EQ(row[16], "4 integer, 3 k");
  EXPECT_EQ(data["files"][1]["lines"], Json());
  EXPECT_EQ(data["code"][0]["lines"][0], Json::array({"k", 7, 3, 0, 1}));
  EXPECT_EQ(data["code"][0]["frames"][0], (Json::array({{0, 1, 0}, {1, 2}})));
  EXPECT_EQ(data["code"][0]["labels"][0], Json::array({0, "k"}));
}

TEST(InspectPage, AKernelThatDoesNotFitOrIsNotKnown) {
  Inspection file = whole("k");
  file.kernels[0].fit->blocks = 0;
  const auto shown = [&] { return data_of(inspect_page(file))["groups"][0]["rows"][0][5]; };
  EXPECT_EQ(shown(), "does not fit");
  file.kernels[0].fit.reset();
  EXPECT_EQ(shown(), "?");
}

TEST(InspectPage, SaysWhatItLeavesOut) {
  Inspection file = whole("k");
  file.code.left_out = 12;
  file.symbols->needed.resize(1500);
  file.symbols->defined.resize(1500);
  const std::string page = inspect_page(file);
  EXPECT_THAT(page, HasSubstr("12 more kernels"));
  EXPECT_THAT(page, HasSubstr("1,500 more: kiln inspect --symbols"));
}

TEST(InspectPage, ManySymbols) {
  Inspection file = whole("k");
  file.symbols->defined.resize(1000);
  EXPECT_EQ(count_of(inspect_page(file), "<tr class=\"symbol\">"), 1003u);
  file.symbols->defined.resize(3000);
  EXPECT_EQ(count_of(inspect_page(file), "<tr class=\"symbol\">"), 1500u);
}

// As many as the libraries of PyTorch have: 400 templates, and names as long as theirs.
TEST(InspectPage, AHundredThousandKernels) {
  Inspection file = whole("k");
  for (int i = 0; i < 130'000; ++i) {
    results::KernelFacts& kernel = file.kernels.emplace_back(file.kernels[0]);
    kernel.name = "void at::native::elementwise_kernel_" + std::to_string(i % 400) + "<" +
                  std::to_string(i) +
                  ", at::native::functor<c10::Half, std::array<char*, 3ul> > >" +
                  "(at::TensorIteratorBase&, float const*, unsigned long)";
    kernel.arch = i % 2 ? "sm_90" : "sm_80";
    kernel.registers = static_cast<uint64_t>(i % 200);
    kernel.listing = -1;
  }
  const std::string page = inspect_page(file);
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_THAT(page, HasSubstr("Kernels (130,001 of 401 functions)"));
  const Json groups = data_of(page)["groups"];
  ASSERT_EQ(groups.size(), 401u);
  EXPECT_EQ(groups[1]["name"], "at::native::elementwise_kernel_0");
  EXPECT_EQ(groups[1]["count"], 325);
  EXPECT_EQ(groups[1]["sums"]["archs"], "sm_80");
  EXPECT_GT(groups[1]["rows"].size(), 1u);
}

TEST(InspectPage, MoreFunctionsThanAPageHolds) {
  Inspection file = whole("k");
  for (int i = 0; i < 20'000; ++i) {
    results::KernelFacts& kernel = file.kernels.emplace_back(file.kernels[0]);
    kernel.name = "function_" + std::to_string(i) + "()";
  }
  file.kernels.push_back(file.kernels.back());  // two of the last: it comes first
  const std::string page = inspect_page(file);
  EXPECT_LT(page.size(), 1'000'000u);
  const Json groups = data_of(page)["groups"];
  EXPECT_EQ(groups[0]["name"], "function_19999");
  EXPECT_THAT(page, HasSubstr("more functions: kiln inspect --kernels"));
}

TEST(InspectPage, InstancesOfATemplateAreOneGroup) {
  Inspection file = whole("void f<int>(int)");
  file.kernels.push_back(file.kernels[0]);
  file.kernels[1].name = "void f<float>(float)";
  file.kernels[1].registers = 40;
  file.kernels[1].spill_load_bytes = 8;
  file.kernels[1].listing = -1;
  const Json groups = data_of(inspect_page(file))["groups"];
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0]["name"], "f");
  EXPECT_EQ(groups[0]["count"], 2);
  EXPECT_EQ(groups[0]["sums"]["registers"], Json::array({32, 40}));
  EXPECT_EQ(groups[0]["sums"]["spills"], Json::array({0, 8}));
  EXPECT_EQ(groups[0]["rows"][1][0], "<float>");
  EXPECT_EQ(groups[0]["rows"][1][1], "(float)");
}

TEST(SplitName, FunctionArgumentsParameters) {
  const auto parts = [](std::string_view name) {
    const KernelName split = split_name(name);
    return split.function + "|" + split.arguments + "|" + split.parameters;
  };
  EXPECT_EQ(parts("add_kernel(float const*, int)"), "add_kernel||(float const*, int)");
  EXPECT_EQ(parts("void a::f<4, b<c> >(int, d<e>)"), "a::f|<4, b<c> >|(int, d<e>)");
  EXPECT_EQ(parts("void (anonymous namespace)::f<int>(int)"),
            "(anonymous namespace)::f|<int>|(int)");
  EXPECT_EQ(parts("void f<(a)1>(int)"), "f|<(a)1>|(int)");
  EXPECT_EQ(parts("g::operator()(int)"), "g::operator()||(int)");
  EXPECT_EQ(parts("bool operator< <int>(int)"), "operator<|<int>|(int)");
  EXPECT_EQ(parts("void c<t>::f<u>(t)"), "c::f|<u>|(t)");
  EXPECT_EQ(parts("plain_name"), "plain_name||");
  EXPECT_EQ(parts("broken<name("), "broken<name(||");
  EXPECT_EQ(parts(""), "||");
}

TEST(InspectPage, HostileNamesAreText) {
  const std::string page = inspect_page(whole(kHostileName));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(count_of(page, "<script"), 3u);  // its data, what all pages have, its own
  EXPECT_EQ(count_of(page, "</script>"), 3u);
  EXPECT_EQ(data_of(page)["code"][0]["name"], kHostileName);
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
  const std::string picture = bytes_picture(whole(kHostileName).overview.file);
  EXPECT_THAT(picture, Not(HasSubstr("<script")));
  EXPECT_THAT(picture, Not(HasSubstr("\x01")));
}

}  // namespace
}  // namespace kiln::report
