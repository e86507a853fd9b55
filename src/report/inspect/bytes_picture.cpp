// SPDX-License-Identifier: Apache-2.0
// How does a file look as a picture? Bars that are as long as what they stand for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "report/inspect.h"
#include "report/page.h"

namespace kiln::report {
namespace {

using results::Group;

constexpr double kPictureWidth = 920, kPictureLeft = 20, kPictureBar = 34;

std::string_view color_of_group(Group group) {
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

// Slices below a pixel join their neighbour's edge; the title of each says its size.
std::string slices_bar(double y, const std::vector<Slice>& slices) {
  uint64_t whole = 0;
  for (const Slice& slice : slices) whole += slice.bytes;
  std::string out;
  double x = kPictureLeft;
  for (const Slice& slice : slices) {
    double width = static_cast<double>(slice.bytes) * kPictureWidth /
                   static_cast<double>(std::max<uint64_t>(whole, 1));
    out += fmt::format(
        "<g><title>{}: {}</title><rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" "
        "height=\"{:.0f}\" fill=\"{}\"/>",
        escape(slice.label), escape(slice.detail), x, y, std::max(width, 0.3), kPictureBar,
        slice.color);
    double text_width = static_cast<double>(slice.label.size()) * 7.8;
    if (width > text_width + 8)
      out += fmt::format(
          "<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\" fill=\"{}\" "
          "font-size=\"13\">{}</text>",
          x + width / 2, y + kPictureBar / 2 + 4, text_on(slice.color), escape(slice.label));
    out += "</g>\n";
    x += width;
  }
  return out;
}

std::string caption(double y, std::string_view text) {
  return fmt::format(
      "<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"14\" fill=\"currentColor\">{}</text>\n",
      kPictureLeft, y, escape(text));
}

Slice image_slice(const results::ImageBytes& image) {
  const std::string packed =
      image.compression == "none"
          ? ""
          : fmt::format(", {} from {}", image.compression, grouped(image.unpacked_bytes));
  const Group group = image.label.starts_with("sm_")        ? Group::Sass
                      : image.label.starts_with("compute_") ? Group::Ptx
                                                            : Group::Lto;
  return {image.label,
          fmt::format("{} x, {} bytes{}", image.count, grouped(image.packed_bytes), packed),
          color_of_group(group), image.packed_bytes};
}

}  // namespace

std::string bytes_picture(const results::FileBytes& file) {
  std::vector<Slice> groups;
  for (const results::GroupBytes& total : file.groups)
    groups.push_back({std::string(name_of(total.group)),
                      fmt::format("{} bytes", grouped(total.bytes)), color_of_group(total.group),
                      total.bytes});
  double y = 24;
  std::string body = caption(y, fmt::format("{}: {}{}, {}", file.name, file.kind,
                                            file.machine.empty() ? "" : " for " + file.machine,
                                            bytes_text(static_cast<double>(file.bytes))));
  body += slices_bar(y + 10, groups);
  y += 78;
  std::vector<Slice> images;
  size_t image_count = 0;
  for (const results::ImageBytes& image : file.images) {
    images.push_back(image_slice(image));
    image_count += image.count;
  }
  if (!images.empty()) {
    body += caption(y, fmt::format("GPU images: {} in {} fat binar{}", grouped(image_count),
                                   grouped(file.containers), file.containers == 1 ? "y" : "ies"));
    body += slices_bar(y + 10, images);
    y += 78;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const double x = kPictureLeft + static_cast<double>(i % 4) * 230;
    if (i && i % 4 == 0) y += 22;
    body += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" fill=\"{}\"/>"
        "<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"13\" fill=\"currentColor\">{} {}</text>\n",
        x, y - 10, groups[i].color, x + 18, y, escape(groups[i].label),
        bytes_text(static_cast<double>(groups[i].bytes)));
  }
  return fmt::format(
      "<svg class=\"document\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" style=\"max-width:100%;height:auto\" "
      "font-family=\"system-ui, sans-serif\" role=\"img\">\n{2}</svg>\n",
      kPictureWidth + 2 * kPictureLeft, y + 20, body);
}

}  // namespace kiln::report
