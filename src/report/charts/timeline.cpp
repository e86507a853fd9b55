// SPDX-License-Identifier: Apache-2.0
// The picture is complete without its script. The script redraws it for another zoom from the times
// in it, since a picture that is only stretched would stretch its text.
#include "report/charts/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "report/page.h"

namespace kiln::report {
namespace {

constexpr double kTimeWidth = 1160, kTimeTop = 22, kLetterWidth = 6.8;

// The least of 1, 2 and 5 times a power of ten that leaves at most `most` ticks.
double tick_step_us(double span_us, double most) {
  const double power = std::pow(10, std::floor(std::log10(span_us / most)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (span_us / most <= factor * power) return factor * power;
  return 10 * power;
}

// As look/timeline.js writes it: no digits that the step does not need.
std::string tick_name(double us) {
  if (us == 0) return "0";
  if (us >= 1e6) return fmt::format("{:.4g} s", us / 1e6);
  if (us >= 1e3) return fmt::format("{:.4g} ms", us / 1e3);
  return us >= 1 ? fmt::format("{:.4g} us", us) : fmt::format("{:.4g} ns", us * 1e3);
}

std::string span_group(const TimeSpan& span, double left, double scale) {
  const double x = left + span.begin_us * scale, width = std::max(1.0, span.us * scale);
  const double top = kTimeTop + span.top;
  std::string out = fmt::format(
      "<g class=\"span\" data-begin=\"{:.3f}\" data-us=\"{:.3f}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" "
      "width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" style=\"fill:{}\"><title>{}: {}</title></rect>",
      span.begin_us, span.us, x, top, width, span.height, span.fill, escape(span.name),
      escape(span.facts));
  if (span.labelled) {
    const auto room = static_cast<size_t>(std::max(0.0, (width - 8) / kLetterWidth));
    out += fmt::format("<text class=\"in\" data-name=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
                       escape(span.name), x + 4, top + span.height - 4,
                       room < 4 ? "" : escape(shortened(span.name, room)));
  }
  return out + "</g>\n";
}

}  // namespace

std::string timeline_picture(const std::vector<TimeSpan>& spans, const std::vector<LaneName>& lanes,
                             std::string_view what) {
  double end_us = 1e-3, height = 20;
  for (const TimeSpan& span : spans) {
    end_us = std::max(end_us, span.begin_us + span.us);
    height = std::max(height, span.top + span.height);
  }
  size_t longest = 0;
  for (const LaneName& lane : lanes) longest = std::max(longest, lane.name.size());
  const double left = lanes.empty() ? 10 : 18 + static_cast<double>(longest) * kLetterWidth;
  const double scale = (kTimeWidth - left - 10) / end_us;
  const double whole = kTimeTop + height + 8;
  std::string ticks, names, groups;
  const double step = tick_step_us(end_us, 10);
  for (double at = 0; at <= end_us * (1 + 1e-9); at += step) {
    const double x = left + at * scale;
    ticks += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"16\" y2=\"{1:.0f}\"/>"
        "<text x=\"{0:.1f}\" y=\"11\" text-anchor=\"{2}\">{3}</text>",
        x, whole,
        at == 0               ? "start"
        : x > kTimeWidth - 40 ? "end"
                              : "middle",
        tick_name(at));
  }
  for (const LaneName& lane : lanes)
    names += fmt::format("<text class=\"lane\" x=\"4\" y=\"{:.0f}\">{}</text>",
                         kTimeTop + lane.top + 13, escape(lane.name));
  for (const TimeSpan& span : spans) groups += span_group(span, left, scale);
  return fmt::format(
      "<p class=\"zoom\"><button type=\"button\" data-zoom=\"2\">zoom in</button> "
      "<button type=\"button\" data-zoom=\"0.5\">zoom out</button> "
      "<button type=\"button\" data-zoom=\"0\">fit</button> <span class=\"soft\">or Ctrl and "
      "the mouse wheel; keys: + − 0 and arrows</span></p>\n"
      "<div class=\"wide timeline\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">"
      "<svg viewBox=\"0 0 {1} {2:.0f}\" role=\"img\" aria-label=\"{0}\" data-end=\"{3:.3f}\" "
      "data-left=\"{4:.0f}\"><g class=\"ticks\">{5}</g>\n{6}\n{7}</svg></div>\n",
      escape(what), kTimeWidth, whole, end_us, left, ticks, groups, names);
}

}  // namespace kiln::report
