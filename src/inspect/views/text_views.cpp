// SPDX-License-Identifier: Apache-2.0
// How do overview and kernels read on a terminal?
#include "inspect/views/text_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "base/units.h"

namespace kiln::inspect {
namespace {

std::string bar(uint64_t part, uint64_t whole, int width) {
  const double filled = whole ? static_cast<double>(part) * width / static_cast<double>(whole) : 0;
  std::string out;
  for (long i = std::lround(filled); i > 0; --i) out += "█";
  if (out.empty() && part) out = "▏";
  return out;
}

// What a line holds on paper, or in a file; a terminal says itself.
constexpr int kPicture = 40, kWideTable = 114;

// Items with commas between, broken between them where a line is full; further lines begin below
// the first item.
std::string listed(const std::string& head, const std::vector<std::string>& items, int columns) {
  std::string out = head, blank(head.size(), ' ');
  size_t width = head.size();
  for (size_t i = 0; i < items.size(); ++i) {
    std::string word = items[i] + (i + 1 < items.size() ? "," : "");
    bool first = width == head.size();
    if (!first && columns > 0 && width + 1 + word.size() > static_cast<size_t>(columns)) {
      out += "\n" + blank;
      width = head.size();
      first = true;
    }
    out += (first ? "" : " ") + word;
    width += word.size() + !first;
  }
  return out + "\n";
}

std::string picture_text(const Analysis& analysis, const TextStyle& style) {
  std::string out;
  int room = style.columns > 0 ? std::clamp(style.columns - 42, 10, kPicture) : kPicture;
  uint64_t whole = analysis.file.bytes.size();
  for (const GroupTotal& total : totals_of(analysis.pieces)) {
    out += fmt::format("  {:<18}{:>10}  {:>5.1f} %  {}\n", name_of(total.group),
                       bytes_text(total.bytes),
                       100.0 * static_cast<double>(total.bytes) /
                           static_cast<double>(std::max<uint64_t>(whole, 1)),
                       bar(total.bytes, whole, room));
  }
  return out +
         fmt::format("  {:<18}{:>10}  {} bytes\n", "total", bytes_text(whole), grouped(whole));
}

std::string images_text(const Analysis& analysis) {
  const ImageList& list = analysis.images;
  if (list.images.empty() && list.faults.empty()) return "no GPU code\n";
  std::string out =
      list.containers == 0
          ? std::string("image\n")
          : fmt::format("fat binary: {} container{}, {} image{}\n", grouped(list.containers),
                        list.containers == 1 ? "" : "s", grouped(list.images.size()),
                        list.images.size() == 1 ? "" : "s");
  for (const ImageGroup& group : groups_of(list.images)) {
    out += fmt::format("  {:<13}{:>6} x  {:>10}", group.label, group.count,
                       bytes_text(group.packed_bytes));
    if (group.compression != "none")
      out += fmt::format("  {} (unpacked {})", group.compression, bytes_text(group.unpacked_bytes));
    out += group.debug ? "  debug\n" : "\n";
  }
  for (const std::string& fault : list.faults) out += fmt::format("  damaged: {}\n", fault);
  return out;
}

std::string gpu_line(const Served& served) {
  return fmt::format("{} ({})", dotted(served.gpu->arch), served.gpu->names);
}

std::string here_text(const Served& served) {
  switch (served.service) {
    case Service::Native:
      return fmt::format("runs {} natively", served.by) +
             (served.jit_containers
                  ? fmt::format(
                        "; the driver compiles the PTX of {} fat binar{} when it is first loaded",
                        grouped(served.jit_containers), served.jit_containers == 1 ? "y" : "ies")
                  : "");
    case Service::Jit:
      return fmt::format("no SASS for it: the driver compiles {} when it is first loaded",
                         served.by);
    default:
      return "cannot run: no kernel image is available for this GPU";
  }
}

std::string service_text(const Analysis& analysis, const std::vector<uint32_t>& gpus,
                         const TextStyle& style) {
  std::vector<Served> all = served_gpus(analysis.images.images);
  std::string out = "GPUs\n";
  auto list = [&](Service service, const char* word) {
    std::vector<std::pair<std::string, std::vector<std::string>>> by;  // image, GPUs
    for (const Served& served : all) {
      if (served.service != service) continue;
      std::string image = served.by;
      if (served.jit_containers)
        image += fmt::format(" ({} by JIT)", grouped(served.jit_containers));
      auto found =
          std::find_if(by.begin(), by.end(), [&](const auto& one) { return one.first == image; });
      if (found == by.end()) found = by.insert(found, {image, {}});
      found->second.push_back(gpu_line(served));
    }
    for (const auto& [image, names] : by) {
      out += listed(fmt::format("  {:<8}{}", word, image.empty() ? "" : image + ": "), names,
                    style.columns);
      word = "";
    }
  };
  list(Service::Native, "native");
  list(Service::Jit, "by JIT");
  list(Service::None, "not");
  for (const auto& [what, text] : service_notes(analysis, gpus))
    out += fmt::format("  {:<8}{}\n", what, text);
  return out;
}

std::string occupancy_text(const KernelRow& row, const TextStyle& style) {
  bool known = false;
  Occupancy fits = occupancy_of(row, row.block_threads(style.block_threads), &known);
  if (!known) return "?";
  if (fits.blocks == 0) return "does not fit";
  return fmt::format("{:>3.0f} %  {} x {}, {}", fits.fraction * 100, fits.blocks,
                     row.block_threads(style.block_threads), name_of(fits.limiter));
}

std::vector<std::string> mix_items(const binary::SassCounts& counts) {
  std::vector<std::pair<uint32_t, std::string_view>> parts;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i]) parts.emplace_back(counts[i], name_of(static_cast<binary::SassClass>(i)));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> out;
  for (const auto& [count, name] : parts) out.push_back(fmt::format("{} {}", count, name));
  return out;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> service_notes(const Analysis& analysis,
                                                               const std::vector<uint32_t>& gpus) {
  std::vector<std::pair<std::string, std::string>> out;
  const DriverFloor& floor = analysis.floor;
  if (floor.sass)
    out.emplace_back("driver",
                     fmt::format("{} or newer for SASS ({})", floor.sass, floor.why_sass));
  if (floor.ptx)
    out.emplace_back("driver", fmt::format("{} or newer for JIT ({})", floor.ptx, floor.why_ptx));
  if (gpus.empty()) out.emplace_back("here", "no GPU");
  for (uint32_t arch : gpus)
    out.emplace_back("here", fmt::format("{}: {}", dotted(arch),
                                         here_text(service_for(analysis.images.images, arch))));
  return out;
}

std::string TextStyle::bold(std::string_view text) const {
  return color ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}
std::string TextStyle::dim(std::string_view text) const {
  return color ? fmt::format("\x1b[2m{}\x1b[0m", text) : std::string(text);
}

std::string fitted(std::string_view text, int columns) {
  if (columns <= 1 || text.size() <= static_cast<size_t>(columns)) return std::string(text);
  return std::string(text.substr(0, static_cast<size_t>(columns) - 1)) + "…";
}

std::string mix_text(const binary::SassCounts& counts) {
  return text::join(mix_items(counts), ", ");
}

std::string bounds_text(const binary::KernelAttributes& attributes) {
  auto shape = [](const uint32_t(&d)[3]) {
    if (d[2] > 1) return fmt::format("{}x{}x{}", d[0], d[1], d[2]);
    return d[1] > 1 ? fmt::format("{}x{}", d[0], d[1]) : fmt::format("{}", d[0]);
  };
  std::string least = attributes.min_blocks ? fmt::format(", {}", attributes.min_blocks) : "";
  if (attributes.required_threads[0]) return "= " + shape(attributes.required_threads) + least;
  return attributes.max_threads[0] ? "<= " + shape(attributes.max_threads) + least : "";
}

bool name_matches(const std::string& filter, const std::string& mangled,
                  const std::string& demangled) {
  return filter.empty() || mangled.find(filter) != mangled.npos ||
         demangled.find(filter) != demangled.npos;
}

std::string overview_text(const Analysis& analysis, const std::vector<uint32_t>& gpus,
                          const TextStyle& style) {
  std::string out =
      style.bold(analysis.file.name) + ": " + std::string(name_of(analysis.file.kind));
  if (!analysis.machine.empty()) out += ", " + analysis.machine;
  out += fmt::format(", {} bytes\n", grouped(analysis.file.bytes.size()));
  out += picture_text(analysis, style) + images_text(analysis);
  if (!analysis.images.images.empty()) out += service_text(analysis, gpus, style);
  if (style.verbose) {
    out += "pieces\n";
    for (const Piece& piece : analysis.pieces)
      out += fmt::format("  {:#012x} {:>14}  {:<17} {}\n", piece.offset, grouped(piece.bytes),
                         name_of(piece.group), piece.name);
  }
  return out;
}

std::string kernels_text(const Analysis& analysis, const std::string& filter,
                         const TextStyle& style) {
  Demangler demangle;
  std::vector<const KernelRow*> rows;
  std::map<std::string_view, size_t> first_seen;
  for (const KernelRow& row : analysis.kernels.rows) {
    if (!name_matches(filter, row.name, demangle(row.name))) continue;
    first_seen.emplace(row.name, first_seen.size());
    rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const KernelRow* a, const KernelRow* b) {
    return std::pair(first_seen[a->name], a->arch) < std::pair(first_seen[b->name], b->arch);
  });
  std::string out =
      fmt::format("kernels: {}{}\n", grouped(first_seen.size()),
                  rows.size() == first_seen.size()
                      ? ""
                      : fmt::format(" ({} with all architectures)", grouped(rows.size())));
  std::string faults;
  for (const std::string& fault : analysis.kernels.faults)
    faults += fmt::format("  damaged: {}\n", fault);
  if (rows.empty()) return out + faults;
  // A line of a narrow terminal has no room for the occupancy, which takes the next one.
  bool narrow = style.columns > 0 && style.columns < kWideTable;
  auto line = [&](std::string_view arch, std::string_view registers, std::string_view shared,
                  std::string_view stack, std::string_view spills, std::string_view constant,
                  std::string_view parameters, std::string_view barriers, std::string_view bounds,
                  std::string_view instructions) {
    return narrow ? fmt::format("  {:<7}{:>5}{:>13}{:>6}{:>12}{:>6}{:>7}{:>4}{:>11}{:>7}", arch,
                                registers, shared, stack, spills, constant, parameters, barriers,
                                bounds, instructions)
                  : fmt::format("  {:<8}{:>5}{:>15}{:>7}{:>14}{:>7}{:>8}{:>5}{:>12}{:>8}", arch,
                                registers, shared, stack, spills, constant, parameters, barriers,
                                bounds, instructions);
  };
  out += style.dim(line("arch", "regs", "shared", "stack", "spill st/ld", "const", "params", "bar",
                        "bounds", "instr") +
                   (narrow ? "" : "  occupancy")) +
         "\n";
  const std::string* last = nullptr;
  for (const KernelRow* row : rows) {
    const binary::Kernel& kernel = row->resources;
    if (!last || *last != row->name)
      out += style.bold(style.verbose ? demangle(row->name)
                                      : fitted(demangle(row->name), style.columns)) +
             "\n";
    last = &row->name;
    std::string shared =
        kernel.shared_reserved_bytes
            ? fmt::format("{} + {}", row->user_shared_bytes(), kernel.shared_reserved_bytes)
            : fmt::format("{}", kernel.shared_bytes);
    auto number = [](uint64_t value) { return std::to_string(value); };
    out += line(row->arch_text(), number(kernel.registers), shared, number(kernel.stack_bytes),
                fmt::format("{}/{}", kernel.spill_store_bytes, kernel.spill_load_bytes),
                number(kernel.constant_bytes), number(kernel.attributes.parameter_bytes),
                number(kernel.attributes.barriers), bounds_text(kernel.attributes),
                number(row->instructions()));
    out +=
        fmt::format("{}{}\n", narrow ? "\n         occupancy " : "  ", occupancy_text(*row, style));
    if (style.verbose)
      out += style.dim(
          listed(narrow ? "         " : "          ", mix_items(kernel.counts), style.columns));
  }
  return out + faults;
}

}  // namespace kiln::inspect
