// SPDX-License-Identifier: Apache-2.0
// How does the overview of a file read on a terminal?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "report/inspect.h"
#include "report/inspect/words.h"

namespace kiln::report {
namespace {

using results::FileBytes;
using results::GpuService;
using results::Overview;
using results::Service;

// Columns of the bars on paper, or in a file; a terminal says itself.
constexpr int kMaxBar = 40;

std::string bytes_bar(uint64_t part, uint64_t whole, int width) {
  const double filled = whole ? static_cast<double>(part) * width / static_cast<double>(whole) : 0;
  std::string out;
  for (long i = std::lround(filled); i > 0; --i) out += "█";
  if (out.empty() && part) out = "▏";
  return out;
}

std::string picture_text(const Overview& overview, const InspectStyle& style) {
  std::string out;
  int room = style.columns > 0 ? std::clamp(style.columns - 42, 10, kMaxBar) : kMaxBar;
  uint64_t whole = overview.file.bytes;
  for (const results::GroupBytes& total : overview.file.groups) {
    out += fmt::format("  {:<18}{:>10}  {:>5.1f} %  {}\n", name_of(total.group),
                       bytes_text(total.bytes),
                       100.0 * static_cast<double>(total.bytes) /
                           static_cast<double>(std::max<uint64_t>(whole, 1)),
                       bytes_bar(total.bytes, whole, room));
  }
  return out +
         fmt::format("  {:<18}{:>10}  {} bytes\n", "total", bytes_text(whole), grouped(whole));
}

std::string images_text(const Overview& overview) {
  const FileBytes& file = overview.file;
  const size_t images = overview.images.size();
  if (images == 0 && overview.image_faults.empty()) return "no GPU code\n";
  std::string out =
      file.containers == 0
          ? std::string("image\n")
          : fmt::format("fat binary: {} container{}, {} image{}\n", grouped(file.containers),
                        file.containers == 1 ? "" : "s", grouped(images), images == 1 ? "" : "s");
  for (const results::ImageBytes& group : file.images) {
    out += fmt::format("  {:<13}{:>6} x  {:>10}", group.label, group.count,
                       bytes_text(group.packed_bytes));
    if (group.compression != "none")
      out += fmt::format("  {} (unpacked {})", group.compression, bytes_text(group.unpacked_bytes));
    out += group.debug ? "  debug\n" : "\n";
  }
  for (const std::string& fault : overview.image_faults)
    out += fmt::format("  damaged: {}\n", fault);
  return out;
}

std::string here_text(const GpuService& served) {
  switch (served.service) {
    case Service::Native:
      return fmt::format("runs {} natively", served.by) +
             (served.jit_containers
                  ? fmt::format("; the driver compiles the PTX of {} fat binar{} at first load",
                                grouped(served.jit_containers),
                                served.jit_containers == 1 ? "y" : "ies")
                  : "");
    case Service::Jit:
      return fmt::format("no SASS for it: the driver compiles {} at first load", served.by);
    default:
      return "cannot run: no kernel image is available for this GPU";
  }
}

std::string service_text(const Overview& overview, const InspectStyle& style) {
  std::string out = "GPUs\n";
  auto list = [&](Service service, const char* word) {
    std::vector<std::pair<std::string, std::vector<std::string>>> by;  // image, GPUs
    for (const GpuService& served : overview.gpus) {
      if (served.service != service) continue;
      std::string image = served.by;
      if (served.jit_containers)
        image += fmt::format(" ({} by JIT)", grouped(served.jit_containers));
      auto found =
          std::find_if(by.begin(), by.end(), [&](const auto& one) { return one.first == image; });
      if (found == by.end()) found = by.insert(found, {image, {}});
      found->second.push_back(fmt::format("{} ({})", served.arch, served.names));
    }
    for (const auto& [image, names] : by) {
      out += listed_items(fmt::format("  {:<8}{}", word, image.empty() ? "" : image + ": "), names,
                          style.columns);
      word = "";
    }
  };
  list(Service::Native, "native");
  list(Service::Jit, "by JIT");
  list(Service::None, "not");
  for (const auto& [what, text] : service_notes(overview))
    out += fmt::format("  {:<8}{}\n", what, text);
  return out;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> service_notes(const Overview& overview) {
  std::vector<std::pair<std::string, std::string>> out;
  const results::DriverFloor& floor = overview.driver;
  if (floor.sass)
    out.emplace_back("driver",
                     fmt::format("{} or newer for SASS ({})", floor.sass, floor.why_sass));
  if (floor.ptx)
    out.emplace_back("driver", fmt::format("{} or newer for JIT ({})", floor.ptx, floor.why_ptx));
  if (overview.here.empty()) out.emplace_back("here", "no GPU");
  for (const GpuService& gpu : overview.here)
    out.emplace_back("here", fmt::format("{}: {}", gpu.arch, here_text(gpu)));
  return out;
}

std::string overview_text(const Overview& overview, const InspectStyle& style) {
  std::string out = style.bold(overview.file.name) + ": " + overview.file.kind;
  if (!overview.file.machine.empty()) out += ", " + overview.file.machine;
  out += fmt::format(", {} bytes\n", grouped(overview.file.bytes));
  out += picture_text(overview, style) + images_text(overview);
  if (!overview.images.empty()) out += service_text(overview, style);
  if (style.verbose) {
    out += "pieces\n";
    for (const results::Piece& piece : overview.pieces)
      out += fmt::format("  {:#012x} {:>14}  {:<17} {}\n", piece.offset, grouped(piece.bytes),
                         name_of(piece.group), piece.name);
  }
  return out;
}

}  // namespace kiln::report
