// SPDX-License-Identifier: Apache-2.0
// What is common to every page that kiln writes? One file, no network, light and dark by the
// reader's system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::report {

// For text and attribute values alike.
std::string escape(std::string_view text);

// `body` is HTML; `script` may be empty.
std::string page(std::string_view title, std::string_view body, std::string_view script = "");

// <table>; the first row is the head. Cells are HTML.
std::string table(const std::vector<std::vector<std::string>>& rows);

// Charts are SVG whose colours come from the page: series-1, series-2, ... of the style sheet.
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
};
std::string line_chart(const std::vector<Line>& lines, const Axes& axes);

// Bars that begin where the one before ended.
struct Bar {
  std::string name;
  double begin = 0, length = 0;
  std::string label;
};
std::string waterfall(const std::vector<Bar>& bars, std::string_view unit);

}  // namespace kiln::report
