// SPDX-License-Identifier: Apache-2.0
// How does a file look as a picture?
#include "inspect/page/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"

namespace kiln::inspect {
namespace {

constexpr double kWidth = 920, kLeft = 20, kBar = 34;

std::string_view color_of(Group group) {
  switch (group) {
    case Group::HostCode:
      return "#4f7cac";
    case Group::HostData:
      return "#8fb0cf";
    case Group::Sass:
      return "#76b043";
    case Group::Ptx:
      return "#e0a030";
    case Group::Lto:
      return "#b8a13a";
    case Group::Fatbin:
      return "#4c7a2b";
    case Group::Symbols:
      return "#9a6fb0";
    case Group::Relocations:
      return "#c48bd0";
    case Group::Unwind:
      return "#b07a6f";
    case Group::Debug:
      return "#8a8f98";
    case Group::Header:
      return "#5c6470";
    case Group::Other:
      return "#a4a9b3";
    default:
      return "#aab0ba";
  }
}

struct Slice {
  std::string label, detail;
  std::string_view color;
  uint64_t bytes = 0;
};

// Slices below a pixel join their neighbour's edge; the title of each says its size.
// Black or white, whichever stands out more from `color` ("#rrggbb"): both have the same contrast
// at a luminance of 0.179 (WCAG 2.1).
std::string_view text_on(std::string_view color) {
  constexpr double kWeights[3] = {0.2126, 0.7152, 0.0722};
  double luminance = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double part = std::stoi(std::string(color.substr(1 + 2 * i, 2)), nullptr, 16) / 255.0;
    const double linear = part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
    luminance += kWeights[i] * linear;
  }
  return luminance > 0.179 ? "#000" : "#fff";
}

std::string bar(double y, const std::vector<Slice>& slices) {
  uint64_t whole = 0;
  for (const Slice& slice : slices) whole += slice.bytes;
  std::string out;
  double x = kLeft;
  for (const Slice& slice : slices) {
    double width = static_cast<double>(slice.bytes) * kWidth /
                   static_cast<double>(std::max<uint64_t>(whole, 1));
    out += fmt::format(
        "<g><title>{}: {}</title><rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" "
        "height=\"{:.0f}\" fill=\"{}\"/>",
        escaped(slice.label), escaped(slice.detail), x, y, std::max(width, 0.3), kBar, slice.color);
    double text_width = static_cast<double>(slice.label.size()) * 7.8;
    if (width > text_width + 8)
      out += fmt::format(
          "<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\" fill=\"{}\" "
          "font-size=\"13\">{}</text>",
          x + width / 2, y + kBar / 2 + 4, text_on(slice.color), escaped(slice.label));
    out += "</g>\n";
    x += width;
  }
  return out;
}

std::string caption(double y, std::string_view text) {
  return fmt::format(
      "<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"14\" fill=\"currentColor\">{}</text>\n", kLeft,
      y, escaped(text));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters are not allowed in XML, whatever a section is called.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string overview_svg(const Analysis& analysis) {
  std::string body;
  std::vector<GroupTotal> totals = totals_of(analysis.pieces);
  std::vector<Slice> file;
  for (const GroupTotal& total : totals)
    file.push_back({std::string(name_of(total.group)),
                    fmt::format("{} bytes", grouped(total.bytes)), color_of(total.group),
                    total.bytes});
  double y = 24;
  body += caption(y, fmt::format("{}: {}{}, {}", analysis.file.name, name_of(analysis.file.kind),
                                 analysis.machine.empty() ? "" : " for " + analysis.machine,
                                 human_bytes(analysis.file.bytes.size())));
  body += bar(y + 10, file);
  y += 78;
  std::vector<Slice> images;
  for (const ImageGroup& group : groups_of(analysis.images.images))
    images.push_back(
        {group.label,
         fmt::format("{} x, {} bytes{}", group.count, grouped(group.packed_bytes),
                     group.compression == "none" ? ""
                                                 : fmt::format(", {} from {}", group.compression,
                                                               grouped(group.unpacked_bytes))),
         group.label.starts_with("sm_")        ? color_of(Group::Sass)
         : group.label.starts_with("compute_") ? color_of(Group::Ptx)
                                               : color_of(Group::Lto),
         group.packed_bytes});
  if (!images.empty()) {
    body += caption(y, fmt::format("GPU images: {} in {} fat binaries",
                                   analysis.images.images.size(), analysis.images.containers));
    body += bar(y + 10, images);
    y += 78;
  }
  for (size_t i = 0; i < file.size(); ++i) {
    double x = kLeft + static_cast<double>(i % 4) * 230;
    if (i && i % 4 == 0) y += 22;
    body += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" fill=\"{}\"/>"
        "<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"13\" fill=\"currentColor\">{} {}</text>\n",
        x, y - 10, file[i].color, x + 18, y, escaped(file[i].label), human_bytes(file[i].bytes));
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" style=\"max-width:100%;height:auto\" "
      "font-family=\"system-ui, sans-serif\" role=\"img\">\n{2}</svg>\n",
      kWidth + 2 * kLeft, y + 20, body);
}

}  // namespace kiln::inspect
