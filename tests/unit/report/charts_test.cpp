// SPDX-License-Identifier: Apache-2.0
// Are charts drawn from nothing, one point, many, and numbers that are none?
#include "report/charts/charts.h"

#include <gmock/gmock.h>

#include <limits>

namespace kiln::report {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// A coordinate that is not a number makes a browser drop the whole element.
void expect_drawable(const std::string& chart) {
  EXPECT_THAT(chart, HasSubstr("<svg "));
  EXPECT_THAT(chart, HasSubstr("</svg>"));
  EXPECT_THAT(chart, Not(HasSubstr("nan")));
  EXPECT_THAT(chart, Not(HasSubstr("inf")));
}

Line line(std::string name, const std::vector<double>& values) {
  Line out{std::move(name), {}};
  for (double value : values) out.points.push_back({value, value, "label"});
  return out;
}

TEST(Charts, Nothing) {
  expect_drawable(density_chart({}, "us"));
  expect_drawable(density_chart({line("a", {})}, "us"));
  expect_drawable(line_chart({}, {"x", "y"}));
  expect_drawable(waterfall({}, "time"));
}

TEST(Charts, OnePointAndTheSameTwice) {
  expect_drawable(density_chart({line("a", {5})}, "us"));
  expect_drawable(density_chart({line("a", {0, 0})}, "us"));
  expect_drawable(line_chart({line("a", {5})}, {"x", "y"}));
  expect_drawable(line_chart({line("a", {1e-9})}, {"x", "y", true, true}));
  expect_drawable(waterfall({{"one", 0, 0, "0 ns"}}, "time"));
}

TEST(Charts, TicksAreRoundNumbers) {
  const std::string chart = line_chart({line("a", {3000, 70000})}, {"x", "y", true});
  EXPECT_THAT(chart, HasSubstr(">5000</text>"));
  EXPECT_THAT(chart, HasSubstr(">20k</text>"));
}

TEST(Charts, NumbersAtTheEdges) {
  expect_drawable(density_chart({line("a", {kNothing, 1, 2})}, "us"));
  expect_drawable(density_chart({line("a", {-1e12, 1e-9, 1e12})}, "us"));
  expect_drawable(line_chart({line("a", {kNothing, 1, 2})}, {"x", "y"}));
  expect_drawable(line_chart({line("a", {0, -1, 1e12})}, {"x", "y", true, true}));
  expect_drawable(waterfall({{"a", kNothing, 1, ""}, {"b", 1, kNothing, ""}}, "time"));
}

// A few samples that took a hundred times as long are counted, not drawn.
TEST(Charts, MostSamplesFillThePicture) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back(32 + 0.001 * i);
  EXPECT_THAT(density_chart({line("a", values)}, "us"), Not(HasSubstr("Not in the picture")));
  for (int i = 0; i < 8; ++i) values.push_back(2600 + i);
  const std::string chart = density_chart({line("a", values)}, "us");
  expect_drawable(chart);
  EXPECT_THAT(chart, HasSubstr("Not in the picture: 3.8 % of the samples, 2600 to 2607 us."));
  EXPECT_THAT(chart, HasSubstr(">32.1<"));
  // A tenth is a second heap.
  for (int i = 0; i < 20; ++i) values.push_back(64);
  EXPECT_THAT(density_chart({line("a", values)}, "us"), HasSubstr(">60<"));
}

TEST(Charts, NamesAreText) {
  const std::string hostile = "<script>x</script>";
  for (const std::string& chart : {density_chart({line(hostile, {1, 2})}, hostile),
                                   line_chart({{hostile, {{1, 1, hostile}}}}, {hostile, hostile}),
                                   waterfall({{hostile, 0, 1, hostile}}, hostile)}) {
    EXPECT_THAT(chart, Not(HasSubstr("<script")));
    EXPECT_THAT(chart, HasSubstr("&lt;script&gt;"));
  }
}

TEST(Charts, EveryLineIsInTheKeyAndHasItsMarks) {
  std::vector<Line> lines;
  for (int i = 0; i < 9; ++i) lines.push_back(line("line " + std::to_string(i), {1, 2, 3}));
  const std::string chart = line_chart(lines, {"x", "y"});
  for (int i = 0; i < 9; ++i) EXPECT_THAT(chart, HasSubstr("line " + std::to_string(i)));
  size_t marks = 0;
  for (size_t at = 0; (at = chart.find("<circle", at)) != std::string::npos; ++at) ++marks;
  EXPECT_EQ(marks, 27u);
}

}  // namespace
}  // namespace kiln::report
