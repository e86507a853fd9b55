// SPDX-License-Identifier: Apache-2.0
// Which charts can a page have? SVG whose colours come from the page: s1, s2, ... of its style.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::report {

struct Point {
  double x = 0, y = 0;
  std::string label;  // what a reader sees who points at it
};
struct Line {
  std::string name;
  std::vector<Point> points;
};

// Estimates of the densities of samples, one curve each, over one axis in `unit` ("us"). Values in
// that unit.
std::string density_chart(const std::vector<Line>& samples, std::string_view unit);
// Lines with markers over equal steps (runs) or over x itself; both axes may be logarithmic.
struct Axes {
  std::string x, y;
  bool log_x = false, log_y = false;
  bool marks_only = false;
  bool whole_x = false;  // counts: no ticks between them
};
std::string line_chart(const std::vector<Line>& lines, const Axes& axes);

// Bars that begin where the one before ended.
struct Bar {
  std::string name;
  double begin = 0, length = 0;
  std::string label;
};
std::string waterfall(const std::vector<Bar>& bars, std::string_view unit);

// Bars to the right of a middle line for more, to the left for less.
struct ChangeBar {
  std::string name;
  double change = 0;
  std::string label;  // beside the name: "10 → 14"
};
std::string change_chart(const std::vector<ChangeBar>& bars, std::string_view what);

}  // namespace kiln::report
