// SPDX-License-Identifier: Apache-2.0
// How are densities, lines and waterfalls drawn? As SVG, with axes whose ticks are round numbers.
#include "report/charts/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/page.h"

namespace kiln::report {
namespace {

constexpr double kWidth = 900, kHeight = 260, kLeft = 64, kRight = 16, kTop = 12, kBottom = 40;
constexpr int kCurve = 160;  // points of a density

struct Range {
  double low = std::numeric_limits<double>::infinity(),
         high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void widen(double share) {
    if (!(low <= high)) low = 0, high = 1;
    if (low == high)
      low -= std::max(1e-9, std::abs(low) * 0.05), high += std::max(1e-9, std::abs(high) * 0.05);
    const double more = (high - low) * share;
    low -= more;
    high += more;
  }
};

double round_step(double span, int wanted) {
  const double raw = span / wanted, power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return fmt::format("{:.3g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

struct Scale {
  Range range;
  bool log = false;
  double from, to;     // in the picture
  bool whole = false;  // no ticks between whole numbers
  double at(double value) const {
    const double v = log ? std::log10(std::max(value, 1e-300)) : value;
    return from + (v - range.low) / (range.high - range.low) * (to - from);
  }
  std::vector<double> ticks(int wanted) const {
    std::vector<double> out;
    if (log) {
      for (int e = static_cast<int>(std::ceil(range.low)); e <= std::floor(range.high); ++e)
        out.push_back(std::pow(10, e));
      if (out.size() >= 2) return out;
      out.clear();
      // Within two decades: 1, 2 and 5 of each.
      for (int e = static_cast<int>(std::floor(range.low)); e <= std::floor(range.high); ++e)
        for (const double digit : {1.0, 2.0, 5.0}) {
          const double at = std::log10(digit) + e;
          if (at >= range.low && at <= range.high) out.push_back(digit * std::pow(10, e));
        }
      if (out.size() >= 2) return out;
      out.clear();
      const double low = std::pow(10, range.low), high = std::pow(10, range.high);
      const double step = round_step(high - low, 3);
      for (double v = std::ceil(low / step) * step; v <= high; v += step) out.push_back(v);
      return out;
    }
    double step = round_step(range.high - range.low, wanted);
    if (whole) step = std::max(1.0, std::round(step));
    for (double v = std::ceil(range.low / step) * step; v <= range.high + 1e-9 * step; v += step)
      out.push_back(std::abs(v) < 1e-9 * step ? 0 : v);  // not "-0"
    return out;
  }
};

std::string frame(const Scale& x, const Scale& y, std::string_view x_name,
                  std::string_view y_name) {
  std::string out;
  for (double tick : x.ticks(7)) {
    const double at = x.at(tick);
    out += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/><text "
        "x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}</text>",
        at, kTop, kHeight - kBottom, kHeight - kBottom + 16, tick_text(tick));
  }
  for (double tick : y_name.empty() ? std::vector<double>() : y.ticks(5)) {
    const double at = y.at(tick);
    out += fmt::format(
        "<line class=\"axis\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/><text x=\"{}\" "
        "y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>",
        kLeft, at, kWidth - kRight, at, kLeft - 6, at + 4, tick_text(tick));
  }
  out += fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                     (kLeft + kWidth - kRight) / 2, kHeight - 6, escape(x_name));
  if (!y_name.empty())
    out += fmt::format(
        "<text x=\"14\" y=\"{0:.0f}\" text-anchor=\"middle\" transform=\"rotate(-90 14 "
        "{0:.0f})\">{1}</text>",
        (kTop + kHeight - kBottom) / 2, escape(y_name));
  return out;
}

// A limit, not a contender: drawn as a dashed line.
bool is_roof(const Line& line) { return line.name.starts_with("roof"); }

std::string key(const std::vector<Line>& lines) {
  std::string out = "<div class=\"key\">";
  for (size_t i = 0; i < lines.size(); ++i)
    out += fmt::format("<span class=\"s{}\"><i{}></i>{}</span>", i % 6 + 1,
                       is_roof(lines[i]) ? " class=\"roof\"" : "", escape(lines[i].name));
  return out + "</div>\n";
}

std::string svg(const std::string& inside, double height, std::string_view what) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>\n", kWidth,
                     height, escape(what), inside);
}

// A point that is not at a number has no place, and would take the whole path with it.
std::vector<Line> finite(const std::vector<Line>& lines) {
  std::vector<Line> out;
  for (const Line& line : lines) {
    Line& kept = out.emplace_back();
    kept.name = line.name;
    for (const Point& point : line.points)
      if (std::isfinite(point.x) && std::isfinite(point.y)) kept.points.push_back(point);
  }
  return out;
}

// The range of nearly all samples of a line: a few that took a hundred times as long would make a
// needle of the rest. Up to 5 % at either end are left out, where they lie farther from the others
// than twice the width of these.
void add_most(const Line& line, Range& to) {
  std::vector<double> values;
  for (const Point& point : line.points) values.push_back(point.x);
  if (values.empty()) return;
  std::sort(values.begin(), values.end());
  const size_t end = values.size() - 1, few = values.size() / 20;
  const double low = values[few], high = values[end - few];
  const double far = 2 * std::max(high - low, 0.01 * std::abs(high));
  for (const double value : values)
    if (value >= low - far && value <= high + far) to.add(value);
}

std::string left_out(const std::vector<Line>& samples, const Range& shown, std::string_view unit) {
  size_t count = 0, all = 0;
  Range beyond;
  for (const Line& line : samples)
    for (const Point& point : line.points) {
      ++all;
      if (point.x >= shown.low && point.x <= shown.high) continue;
      ++count;
      beyond.add(point.x);
    }
  if (count == 0) return "";
  std::string where = tick_text(beyond.low);
  if (beyond.low < beyond.high) where += " to " + tick_text(beyond.high);
  const double percent = 100 * static_cast<double>(count) / static_cast<double>(all);
  return fmt::format("<p class=\"soft\">Not in the picture: {:.2g} % of the samples, {} {}.</p>\n",
                     percent, where, escape(unit));
}

double finite_or_zero(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace

std::string density_chart(const std::vector<Line>& given, std::string_view unit) {
  const std::vector<Line> samples = finite(given);
  Range shown;
  for (const Line& line : samples) add_most(line, shown);
  const bool positive = shown.low >= 0;
  shown.widen(0.08);
  if (positive) shown.low = std::max(0.0, shown.low);
  Scale x{shown, false, kLeft, kWidth - kRight}, y{{}, false, kHeight - kBottom, kTop};
  std::vector<std::vector<double>> curves;
  for (const Line& line : samples) {
    const double width = (shown.high - shown.low) / 40;
    std::vector<double> curve(kCurve);
    for (int i = 0; i < kCurve; ++i) {
      const double at = shown.low + (shown.high - shown.low) * i / (kCurve - 1);
      for (const Point& point : line.points) {
        const double z = (point.x - at) / width;
        curve[static_cast<size_t>(i)] += std::exp(-z * z / 2);
      }
      curve[static_cast<size_t>(i)] /= std::max<double>(1, static_cast<double>(line.points.size()));
      y.range.add(curve[static_cast<size_t>(i)]);
    }
    curves.push_back(std::move(curve));
  }
  y.range.add(0);
  y.range.widen(0);
  std::string out = frame(x, y, unit, "");
  for (size_t k = 0; k < curves.size(); ++k) {
    std::string path = fmt::format("M{:.1f} {:.1f}", x.at(shown.low), y.at(0));
    for (int i = 0; i < kCurve; ++i)
      path += fmt::format(" L{:.1f} {:.1f}",
                          x.at(shown.low + (shown.high - shown.low) * i / (kCurve - 1)),
                          y.at(curves[k][static_cast<size_t>(i)]));
    out += fmt::format("<path class=\"area s{}\" d=\"{} L{:.1f} {:.1f} Z\"/>", k % 6 + 1, path,
                       x.at(shown.high), y.at(0));
  }
  return key(samples) + svg(out, kHeight, "distribution of the samples") +
         left_out(samples, shown, unit);
}

std::string line_chart(const std::vector<Line>& given, const Axes& axes) {
  const std::vector<Line> lines = finite(given);
  Scale x{{}, axes.log_x, kLeft, kWidth - kRight, axes.whole_x},
      y{{}, axes.log_y, kHeight - kBottom, kTop};
  for (const Line& line : lines)
    for (const Point& point : line.points) {
      x.range.add(axes.log_x ? std::log10(std::max(point.x, 1e-300)) : point.x);
      y.range.add(axes.log_y ? std::log10(std::max(point.y, 1e-300)) : point.y);
    }
  if (!axes.log_y) y.range.add(0);
  x.range.widen(0.03);
  y.range.widen(0.05);
  if (!axes.log_y) y.range.low = 0;
  std::string out = frame(x, y, axes.x, axes.y);
  // The first line is drawn last, and its marks are the smallest: what lies on the same point shows
  // as a ring around it.
  for (size_t k = lines.size(); k-- > 0;) {
    std::string path, marks;
    for (const Point& point : lines[k].points) {
      path +=
          fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x.at(point.x), y.at(point.y));
      marks += fmt::format(
          "<circle class=\"mark s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" "
          "r=\"{}\"><title>{}</title></circle>",
          k % 6 + 1, x.at(point.x), y.at(point.y), 5 + 1.5 * static_cast<double>(k),
          escape(point.label));
    }
    const bool roof = is_roof(lines[k]);
    if (!axes.marks_only || roof)
      out += fmt::format("<path class=\"{} s{}\" d=\"{}\"/>", roof ? "roof" : "stroke", k % 6 + 1,
                         path);
    if (!roof) out += marks;
  }
  return key(lines) + svg(out, kHeight, axes.y + " over " + axes.x);
}

std::string waterfall(const std::vector<Bar>& given, std::string_view unit) {
  std::vector<Bar> bars = given;
  for (Bar& bar : bars) {
    bar.begin = finite_or_zero(bar.begin);
    bar.length = finite_or_zero(bar.length);
  }
  constexpr double kRow = 24, kNames = 230;
  Scale x{{}, false, kNames, kWidth - 110};
  x.range.add(0);
  for (const Bar& bar : bars) x.range.add(bar.begin + bar.length);
  x.range.widen(0);
  std::string out;
  double top = 4;
  for (const Bar& bar : bars) {
    const double begin = x.at(bar.begin),
                 width = std::max(1.5, x.at(bar.begin + bar.length) - begin);
    out += fmt::format(
        "<text class=\"name\" x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>"
        "<rect class=\"bar s1\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{}\" "
        "rx=\"2\"><title>{}: "
        "{}</title></rect>"
        "<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>",
        kNames - 8, top + 15, escape(bar.name), begin, top + 3, width, kRow - 8, escape(bar.name),
        escape(bar.label), begin + width + 5, top + 15, escape(bar.label));
    top += kRow;
  }
  return svg(out, top + 6, std::string("waterfall, ") + std::string(unit));
}

std::string change_chart(const std::vector<ChangeBar>& bars, std::string_view what) {
  constexpr double kRow = 22, kNames = 300, kMiddle = 590, kReach = 230;
  double most = 1e-300;
  for (const ChangeBar& bar : bars) most = std::max(most, std::abs(finite_or_zero(bar.change)));
  std::string out;
  double top = 4;
  for (const ChangeBar& bar : bars) {
    const double change = finite_or_zero(bar.change);
    const double width = std::max(1.5, std::abs(change) / most * kReach);
    const bool more = change >= 0;
    out += fmt::format(
        "<text class=\"name\" x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{} ({})</text>"
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{}\" "
        "rx=\"2\"/><text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}{}</text>",
        kNames, top + 14, escape(bar.name), escape(bar.label), more ? "plus" : "minus",
        more ? kMiddle : kMiddle - width, top + 3, width, kRow - 8,
        more ? kMiddle + width + 5 : kMiddle - width - 5, top + 14, more ? "start" : "end",
        more ? "+" : "−", tick_text(std::abs(change)));
    top += kRow;
  }
  out += fmt::format("<line class=\"axis\" x1=\"{0}\" x2=\"{0}\" y1=\"2\" y2=\"{1:.0f}\"/>",
                     kMiddle, top);
  return svg(out, top + 6, what);
}

}  // namespace kiln::report
