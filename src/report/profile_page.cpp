// SPDX-License-Identifier: Apache-2.0
// What does the page of a profile show? A flame graph, a timeline that can be zoomed, and the tree.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "report/charts/timeline.h"
#include "report/look.h"
#include "report/page.h"
#include "report/profile.h"

namespace kiln::report {
namespace {

constexpr double kFlameWidth = 1060, kFlameRow = 20;

// One rectangle; its text is shown where it fits.
std::string box(double x, double y, double width, int series, const std::string& name,
                const std::string& facts) {
  std::string out = fmt::format(
      "<g class=\"box\" tabindex=\"0\" role=\"img\" aria-label=\"{}\"><rect class=\"bar s{}\" "
      "x=\"{:.2f}\" y=\"{:.0f}\" "
      "width=\"{:.2f}\" "
      "height=\"{:.0f}\" rx=\"2\"/>"
      "<title>{}\n{}</title>",
      escape(name + ", " + facts), series, x, y, std::max(0.7, width - 0.5), kFlameRow - 3,
      escape(name), escape(facts));
  const auto room = static_cast<size_t>(std::max(0.0, (width - 8) / 7));
  if (room >= 4)
    out += fmt::format("<text class=\"in\" x=\"{:.2f}\" y=\"{:.0f}\">{}</text>", x + 4, y + 13,
                       escape(shortened(name, room)));
  return out + "</g>";
}

void flame(const std::vector<results::ProfileNode>& nodes, double x, double scale, int depth,
           int& deepest, std::string& out) {
  deepest = std::max(deepest, depth);
  for (const results::ProfileNode& node : nodes) {
    const double width = node.cpu_us * scale;
    out += box(x, depth * kFlameRow, width, 1, node.name,
               fmt::format("CPU {} (self {}), GPU {}\n{}", us_text(node.cpu_us),
                           us_text(node.cpu_self_us), us_text(node.gpu_us), node.shapes));
    flame(node.children, x, scale, depth + 1, deepest, out);
    double below = x;
    for (const results::ProfileNode& child : node.children) below += child.cpu_us * scale;
    for (const results::ProfileKernel& kernel : node.kernels) {
      const double kernel_width = std::min(kernel.us * scale, x + width - below);
      if (kernel_width <= 0) continue;
      deepest = std::max(deepest, depth + 1);
      out += box(below, (depth + 1) * kFlameRow, kernel_width, 2, kernel.name,
                 "kernel, " + us_text(kernel.us));
      below += kernel_width;
    }
    x += width;
  }
}

std::string flame_graph(const results::Profile& profile) {
  double total = 0;
  for (const results::ProfileNode& node : profile.tree) total += node.cpu_us;
  if (total <= 0) return "";
  int deepest = 0;
  std::string boxes;
  flame(profile.tree, 0, kFlameWidth / total, 0, deepest, boxes);
  return fmt::format(
      "<h2>Where the host's time went</h2>\n"
      "<p class=\"soft\">Width is CPU time; each op is drawn below its caller. "
      "Orange: kernels it launched. Point at a box for figures.</p>\n"
      "<div class=\"wide\"><svg class=\"boxes flame\" viewBox=\"0 0 {} {:.0f}\" role=\"group\" "
      "aria-label=\"flame graph\">{}</svg></div>\n",
      kFlameWidth, (deepest + 1) * kFlameRow + 4, boxes);
}

std::string timeline(const results::Profile& profile) {
  if (profile.timeline.empty()) return "";
  std::map<std::string, size_t> order;
  std::vector<LaneName> lanes;
  std::vector<TimeSpan> spans;
  for (const results::ProfileSpan& span : profile.timeline) {
    const auto [found, added] = order.emplace(span.lane, lanes.size());
    const double top = static_cast<double>(found->second) * kFlameRow;
    if (added) lanes.push_back({span.lane, top});
    spans.push_back({span.begin_us, span.us, top, kFlameRow - 3,
                     span.kind == "kernel" ? "#e8923a" : "#5b9bd5", span.name,
                     fmt::format("{} at {}", us_text(span.us), us_text(span.begin_us))});
  }
  return "<h2>Timeline</h2>\n" + timeline_picture(spans, lanes, "ops and kernels over time");
}

std::string launch_text(const results::ProfileKernel& kernel) {
  const auto list = [](const std::vector<int64_t>& sizes) {
    return fmt::format("[{}]", fmt::join(sizes, ","));
  };
  std::string facts;
  if (kernel.grid && kernel.block) facts = list(*kernel.grid) + " x " + list(*kernel.block);
  if (kernel.registers.value_or(0) > 0)
    facts += fmt::format(", {:.0f} registers", *kernel.registers);
  if (kernel.occupancy.value_or(0) > 0)
    facts += fmt::format(", occupancy {:.0f} %", *kernel.occupancy);
  if (kernel.bytes.value_or(0) > 0 && kernel.us > 0)
    facts += ", " + rate_text(*kernel.bytes / kernel.us / 1e3);
  return facts;
}

// The engine is timed for each kernel; an op has no time of its own on it.
void tree_rows(const std::vector<results::ProfileNode>& nodes, int depth, bool gpu,
               std::vector<std::vector<std::string>>& rows) {
  const auto add = [&](std::vector<std::string> row, const std::string& facts) {
    if (!gpu) row.pop_back();
    row.push_back(facts);
    rows.push_back(std::move(row));
  };
  for (const results::ProfileNode& node : nodes) {
    const std::string indent = fmt::format("<span style=\"padding-left:{}px\"></span>", 18 * depth);
    add({indent + escape(node.name), us_text(node.cpu_us), us_text(node.cpu_self_us),
         gpu ? us_text(node.gpu_us) : "", us_text(node.gpu_self_us)},
        escape(node.shapes));
    for (const results::ProfileKernel& kernel : node.kernels)
      add({fmt::format("<span style=\"padding-left:{}px\"></span><code>{}</code>", 18 * (depth + 1),
                       escape(kernel.name)),
           "", "", us_text(kernel.us), us_text(kernel.us)},
          escape(launch_text(kernel)));
    tree_rows(node.children, depth + 1, gpu, rows);
  }
}

}  // namespace

std::string profile_page(const results::Profile& profile) {
  const bool gpu = profile.on_gpu();
  std::string body = fmt::format(
      "<h1>{}</h1>\n<p>{}</p>\n<p class=\"soft\">{} in total{}; kernels: {}{}.</p>\n",
      escape(profile.title), escape(profile.verdict), us_text(profile.wall_us),
      gpu ? fmt::format(", {} of it on the GPU", us_text(profile.gpu_us)) : "",
      profile.kernel_count,
      gpu ? fmt::format("; the GPU was idle {:.0f} %", 100 * profile.gpu_idle.value_or(0))
          : ", on the engine");
  body += flame_graph(profile) + timeline(profile);
  std::vector<std::vector<std::string>> rows = {{"op", "CPU", "CPU self", gpu ? "GPU" : "engine"}};
  if (gpu) rows[0].emplace_back("GPU self");
  rows[0].emplace_back("shapes; grid x block");
  tree_rows(profile.tree, 0, gpu, rows);
  body += "<h2>Ops</h2>\n<div class=\"ops\">" + table(rows) + "</div>\n";
  const std::string style = std::string(kLook_timeline_css) + std::string(kLook_profile_css);
  return page({.title = "kiln profile: " + profile.title,
               .body = body,
               .style = style,
               .script = kLook_timeline_js});
}

}  // namespace kiln::report
