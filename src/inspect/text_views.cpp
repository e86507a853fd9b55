// SPDX-License-Identifier: Apache-2.0
// How do overview and kernels read on a terminal?
#include "inspect/text_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kiln::inspect {
namespace {

std::string bar(uint64_t part, uint64_t whole, int width) {
  double filled = whole ? static_cast<double>(part) * width / static_cast<double>(whole) : 0;
  std::string out;
  for (int i = 0; i < static_cast<int>(filled + 0.5); ++i) out += "█";
  if (out.empty() && part) out = "▏";
  return out;
}

std::string picture_text(const Analysis& analysis) {
  std::string out;
  uint64_t whole = analysis.file.bytes.size();
  for (const GroupTotal& total : totals_of(analysis.pieces)) {
    out += fmt::format("  {:<18}{:>10}  {:>5.1f} %  {}\n", name_of(total.group), human_bytes(total.bytes),
                       100.0 * static_cast<double>(total.bytes) / static_cast<double>(std::max<uint64_t>(whole, 1)),
                       bar(total.bytes, whole, 40));
  }
  return out + fmt::format("  {:<18}{:>10}  {} bytes\n", "total", human_bytes(whole), grouped(whole));
}

std::string images_text(const Analysis& analysis) {
  const ImageList& list = analysis.images;
  if (list.images.empty() && list.faults.empty()) return "no GPU code\n";
  std::string out = list.containers == 0 ? std::string("image\n")
                                         : fmt::format("fat binary: {} container{}, {} image{}\n",
                                                       grouped(list.containers), list.containers == 1 ? "" : "s",
                                                       grouped(list.images.size()), list.images.size() == 1 ? "" : "s");
  for (const ImageGroup& group : groups_of(list.images)) {
    out += fmt::format("  {:<13}{:>6} x  {:>10}", group.label, group.count, human_bytes(group.packed_bytes));
    if (group.compression != "none")
      out += fmt::format("  {} (unpacked {})", group.compression, human_bytes(group.unpacked_bytes));
    out += group.debug ? "  debug\n" : "\n";
  }
  for (const std::string& fault : list.faults) out += fmt::format("  damaged: {}\n", fault);
  return out;
}

std::string gpu_line(const Served& served) {
  return fmt::format("{} ({})", dotted(served.gpu->arch), served.gpu->names);
}

std::string service_text(const Analysis& analysis, const std::vector<uint32_t>& gpus) {
  std::vector<Served> all = served_gpus(analysis.images.images);
  std::string out = "GPUs\n";
  auto list = [&](Service service, const char* word, auto&& describe) {
    std::map<std::string, std::string> by;  // image -> GPUs
    std::vector<std::string> order;
    for (const Served& served : all) {
      if (served.service != service) continue;
      if (!by.contains(served.by)) order.push_back(served.by);
      std::string& names = by[served.by];
      names += (names.empty() ? "" : ", ") + gpu_line(served);
    }
    for (const std::string& image : order) {
      out += fmt::format("  {:<8}{}\n", word, describe(image, by[image]));
      word = "";
    }
  };
  list(Service::Native, "native",
       [](const std::string& image, const std::string& names) { return fmt::format("{}: {}", image, names); });
  list(Service::Jit, "by JIT",
       [](const std::string& image, const std::string& names) { return fmt::format("{}: {}", image, names); });
  list(Service::None, "not", [](const std::string&, const std::string& names) { return names; });
  const DriverFloor& floor = analysis.floor;
  if (floor.sass) out += fmt::format("  driver  {} or newer for SASS ({})\n", floor.sass, floor.why_sass);
  if (floor.ptx) out += fmt::format("  driver  {} or newer for JIT ({})\n", floor.ptx, floor.why_ptx);
  if (gpus.empty()) out += "  here    no GPU\n";
  for (uint32_t arch : gpus) {
    Served served = service_for(analysis.images.images, arch);
    out += fmt::format("  here    {}: {}\n", dotted(arch),
                       served.service == Service::Native ? fmt::format("runs {} as it is", served.by)
                       : served.service == Service::Jit
                           ? fmt::format("the driver compiles {} when it is first loaded", served.by)
                           : std::string("cannot run: no kernel image is available for this GPU"));
  }
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

}  // namespace

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
  std::vector<std::pair<uint32_t, std::string_view>> parts;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i]) parts.emplace_back(counts[i], name_of(static_cast<binary::SassClass>(i)));
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (const auto& [count, name] : parts) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, name);
  return out;
}

std::string bounds_text(const binary::KernelAttributes& attributes) {
  auto shape = [](const uint32_t(&d)[3]) {
    if (d[2] > 1) return fmt::format("{}x{}x{}", d[0], d[1], d[2]);
    return d[1] > 1 ? fmt::format("{}x{}", d[0], d[1]) : fmt::format("{}", d[0]);
  };
  if (attributes.required_threads[0]) return "= " + shape(attributes.required_threads);
  return attributes.max_threads[0] ? "<= " + shape(attributes.max_threads) : "";
}

bool name_matches(const std::string& filter, const std::string& mangled, const std::string& demangled) {
  return filter.empty() || mangled.find(filter) != mangled.npos || demangled.find(filter) != demangled.npos;
}

std::string overview_text(const Analysis& analysis, const std::vector<uint32_t>& gpus, const TextStyle& style) {
  std::string out = style.bold(analysis.file.name) + ": " + std::string(name_of(analysis.file.kind));
  if (!analysis.machine.empty()) out += ", " + analysis.machine;
  out += fmt::format(", {} bytes\n", grouped(analysis.file.bytes.size()));
  out += picture_text(analysis) + images_text(analysis);
  if (!analysis.images.images.empty()) out += service_text(analysis, gpus);
  if (style.verbose) {
    out += "pieces\n";
    for (const Piece& piece : analysis.pieces)
      out += fmt::format("  {:#012x} {:>14}  {:<17} {}\n", piece.offset, grouped(piece.bytes), name_of(piece.group),
                         piece.name);
  }
  return out;
}

std::string kernels_text(const Analysis& analysis, const std::string& filter, const TextStyle& style) {
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
  std::string out = fmt::format(
      "kernels: {}{}\n", grouped(first_seen.size()),
      rows.size() == first_seen.size() ? "" : fmt::format(" ({} with all architectures)", grouped(rows.size())));
  if (rows.empty()) return out;
  out += style.dim(fmt::format("  {:<8}{:>5}{:>15}{:>7}{:>14}{:>7}{:>8}{:>5}{:>9}{:>8}  occupancy\n", "arch", "regs",
                               "shared", "stack", "spill st/ld", "const", "params", "bar", "bounds", "instr"));
  const std::string* last = nullptr;
  for (const KernelRow* row : rows) {
    const binary::Kernel& kernel = row->resources;
    if (!last || *last != row->name) out += style.bold(fitted(demangle(row->name), style.columns)) + "\n";
    last = &row->name;
    std::string shared = kernel.shared_reserved_bytes
                             ? fmt::format("{} + {}", row->user_shared_bytes(), kernel.shared_reserved_bytes)
                             : fmt::format("{}", kernel.shared_bytes);
    out +=
        fmt::format("  {:<8}{:>5}{:>15}{:>7}{:>14}{:>7}{:>8}{:>5}{:>9}{:>8}  {}\n", row->arch_text(), kernel.registers,
                    shared, kernel.stack_bytes, fmt::format("{}/{}", kernel.spill_store_bytes, kernel.spill_load_bytes),
                    kernel.constant_bytes, kernel.attributes.parameter_bytes, kernel.attributes.barriers,
                    bounds_text(kernel.attributes), row->instructions(), occupancy_text(*row, style));
    if (style.verbose) out += style.dim("          " + mix_text(kernel.counts)) + "\n";
  }
  for (const std::string& fault : analysis.kernels.faults) out += fmt::format("  damaged: {}\n", fault);
  return out;
}

}  // namespace kiln::inspect
