// SPDX-License-Identifier: Apache-2.0
// What does the page of a profile show? A flame graph, a timeline that can be zoomed, and the tree.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/json_parts.h"
#include "report/look.h"
#include "report/page.h"
#include "report/pages.h"

namespace kiln::report {
namespace {

constexpr double kFlameWidth = 1060, kFlameRow = 20;

std::string us_text(double us) { return us > 0 ? time_text(us * 1e3) : "-"; }

double extent(const Json& profile) {
  double end = 1;
  for (const Json& row : part(profile, "timeline"))
    end = std::max(end, number(row, "begin_us") + number(row, "us"));
  return end;
}

// One rectangle; its text is shown where it fits.
std::string box(double x, double y, double width, int series, const std::string& name,
                const std::string& facts) {
  std::string out = fmt::format(
      "<g class=\"box\" tabindex=\"0\"><rect class=\"bar s{}\" x=\"{:.2f}\" y=\"{:.0f}\" "
      "width=\"{:.2f}\" "
      "height=\"{:.0f}\" rx=\"2\"/>"
      "<title>{}\n{}</title>",
      series, x, y, std::max(0.7, width - 0.5), kFlameRow - 3, escape(name), escape(facts));
  const auto room = static_cast<size_t>(std::max(0.0, (width - 8) / 7));
  if (room >= 4)
    out += fmt::format("<text class=\"in\" x=\"{:.2f}\" y=\"{:.0f}\">{}</text>", x + 4, y + 13,
                       escape(shortened(name, room)));
  return out + "</g>";
}

void flame(const Json& nodes, double x, double scale, int depth, int& deepest, std::string& out) {
  deepest = std::max(deepest, depth);
  for (const Json& node : nodes) {
    const double width = number(node, "cpu_us") * scale;
    out += box(x, depth * kFlameRow, width, 1, words(node, "name"),
               fmt::format("CPU {} (self {}), GPU {}\n{}", us_text(number(node, "cpu_us")),
                           us_text(number(node, "cpu_self_us")), us_text(number(node, "gpu_us")),
                           words(node, "shapes")));
    flame(part(node, "children"), x, scale, depth + 1, deepest, out);
    double below = x;
    for (const Json& child : part(node, "children")) below += number(child, "cpu_us") * scale;
    for (const Json& kernel : part(node, "kernels")) {
      const double kernel_width = std::min(number(kernel, "us") * scale, x + width - below);
      if (kernel_width <= 0) continue;
      deepest = std::max(deepest, depth + 1);
      out += box(below, (depth + 1) * kFlameRow, kernel_width, 2, words(kernel, "name"),
                 "kernel, " + us_text(number(kernel, "us")));
      below += kernel_width;
    }
    x += width;
  }
}

std::string flame_graph(const Json& profile) {
  double total = 0;
  for (const Json& node : part(profile, "tree")) total += number(node, "cpu_us");
  if (total <= 0) return "";
  int deepest = 0;
  std::string boxes;
  flame(part(profile, "tree"), 0, kFlameWidth / total, 0, deepest, boxes);
  return fmt::format(
      "<h2>Where the host's time went</h2>\n"
      "<p class=\"soft\">Width is time of the CPU; each op stands on its caller. "
      "Orange: kernels it launched. Point at a box for figures.</p>\n"
      "<div class=\"wide\"><svg class=\"boxes flame\" viewBox=\"0 0 {} {:.0f}\" role=\"img\" "
      "aria-label=\"flame graph\">{}</svg></div>\n",
      kFlameWidth, (deepest + 1) * kFlameRow + 4, boxes);
}

std::string timeline(const Json& profile) {
  std::map<std::string, int> lanes;
  std::vector<std::string> order;
  for (const Json& row : part(profile, "timeline")) {
    const std::string lane = words(row, "lane");
    if (lanes.emplace(lane, static_cast<int>(order.size())).second) order.push_back(lane);
  }
  const double end = extent(profile), left = 90, scale = (kFlameWidth - left - 4) / end;
  std::string boxes;
  for (const Json& row : part(profile, "timeline")) {
    const bool kernel = words(row, "kind") == "kernel";
    boxes +=
        box(left + number(row, "begin_us") * scale, lanes[words(row, "lane")] * kFlameRow,
            number(row, "us") * scale, kernel ? 2 : 1, words(row, "name"),
            fmt::format("{} at {}", us_text(number(row, "us")), us_text(number(row, "begin_us"))));
  }
  std::string names;
  for (size_t i = 0; i < order.size(); ++i)
    names += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>", left - 8,
                         static_cast<double>(i) * kFlameRow + 13, escape(order[i]));
  return fmt::format(
      "<h2>Timeline</h2>\n<p class=\"soft\">{} in all. The buttons, or the wheel over it, zoom; "
      "drag moves.</p>\n"
      "<p><button data-zoom=\"2\">closer</button> <button data-zoom=\"0.5\">farther</button> "
      "<button data-zoom=\"0\">all</button></p>\n"
      "<div class=\"wide\" id=\"timeline\"><svg class=\"boxes\" viewBox=\"0 0 {} {:.0f}\" "
      "role=\"img\" aria-label=\"timeline\">{}{}</svg></div>\n",
      us_text(end), kFlameWidth, static_cast<double>(order.size()) * kFlameRow + 6, names, boxes);
}

void tree_rows(const Json& nodes, int depth, std::vector<std::vector<std::string>>& rows) {
  for (const Json& node : nodes) {
    const std::string indent = fmt::format("<span style=\"padding-left:{}px\"></span>", 18 * depth);
    rows.push_back({indent + escape(words(node, "name")), us_text(number(node, "cpu_us")),
                    us_text(number(node, "cpu_self_us")), us_text(number(node, "gpu_us")),
                    us_text(number(node, "gpu_self_us")), escape(words(node, "shapes"))});
    for (const Json& kernel : part(node, "kernels")) {
      std::string facts;
      if (part(kernel, "grid").is_array())
        facts = dump(part(kernel, "grid")) + " x " + dump(part(kernel, "block"));
      if (number(kernel, "registers") > 0)
        facts += fmt::format(", {:.0f} registers", number(kernel, "registers"));
      if (number(kernel, "occupancy") > 0)
        facts += fmt::format(", occupancy {:.0f} %", number(kernel, "occupancy"));
      if (number(kernel, "bytes") > 0 && number(kernel, "us") > 0)
        facts += fmt::format(", {:.0f} GB/s", number(kernel, "bytes") / number(kernel, "us") / 1e3);
      rows.push_back({fmt::format("<span style=\"padding-left:{}px\"></span><code>{}</code>",
                                  18 * (depth + 1), escape(words(kernel, "name"))),
                      "", "", "", us_text(number(kernel, "us")), escape(facts)});
    }
    tree_rows(part(node, "children"), depth + 1, rows);
  }
}

}  // namespace

std::string profile_page(const Json& profile) {
  const bool gpu = words(profile, "time") == "GPU time";
  std::string body = fmt::format(
      "<h1>{}</h1>\n<p>{}</p>\n<p class=\"soft\">{} in all{}; kernels: {:.0f}{}.</p>\n",
      escape(words(profile, "title")), escape(words(profile, "verdict")),
      us_text(number(profile, "wall_us")),
      gpu ? fmt::format(", {} of it on the GPU", us_text(number(profile, "gpu_us"))) : "",
      number(profile, "kernel_count"),
      gpu ? fmt::format("; the GPU was idle {:.0f} %", 100 * number(profile, "gpu_idle"))
          : ", on the engine");
  body += flame_graph(profile) + timeline(profile);
  std::vector<std::vector<std::string>> rows = {{"op", "CPU", "CPU self", gpu ? "GPU" : "engine",
                                                 gpu ? "GPU self" : "", "shapes; grid x block"}};
  tree_rows(part(profile, "tree"), 0, rows);
  body += "<h2>Ops</h2>\n<div class=\"ops\">" + table(rows) + "</div>\n";
  return page({.title = "kiln profile: " + words(profile, "title"),
               .body = body,
               .style = kLook_profile_css,
               .script = kLook_profile_js});
}

}  // namespace kiln::report
