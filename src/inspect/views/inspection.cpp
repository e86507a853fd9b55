// SPDX-License-Identifier: Apache-2.0
#include "inspect/views/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "inspect/views/text_views.h"

namespace kiln::inspect {
namespace {

// What a page lists of each kind at most.
constexpr size_t kMaxSymbolRows = 2000;

using FrameKey = std::vector<std::tuple<size_t, uint32_t, std::string>>;

// Files and names of inlined functions are long and come again on every line: each is kept once,
// and lines have their numbers.
class Numbered {
 public:
  Numbered(Sources& sources, results::Inspection& page) : sources_(sources), page_(page) {}

  size_t file(const std::string& path) {
    const auto [found, added] = files_.emplace(path, page_.files.size());
    if (added) {
      const Sources::Text& text = sources_.of(path);
      results::SourceText out{path, std::nullopt, text.why};
      if (text.shown) out.lines = text.lines;
      page_.files.push_back(std::move(out));
    }
    return found->second;
  }
  std::optional<size_t> function(const std::string& name) {
    if (name.empty()) return std::nullopt;
    const auto [found, added] = names_.emplace(name, page_.names.size());
    if (added) page_.names.push_back(name);
    return found->second;
  }

 private:
  Sources& sources_;
  results::Inspection& page_;
  std::map<std::string, size_t> files_, names_;
};

// The lines of the PTX that this kernel is: from its name to the brace that closes it.
std::pair<size_t, size_t> ptx_range(const std::vector<std::string>& lines,
                                    const std::string& symbol) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(".entry") == std::string::npos || lines[i].find(symbol) == std::string::npos)
      continue;
    for (size_t end = i; end < lines.size(); ++end)
      if (text::trim(lines[end]) == "}") return {i, end + 1};
  }
  return {0, lines.size()};
}

results::Code code_of(const Listing& listing, const std::vector<std::string>& ptx,
                      Numbered& numbered) {
  results::Code out;
  out.name = binary::demangle(listing.symbol);
  out.symbol = listing.symbol;
  out.arch = listing.arch;
  if (!listing.lines.empty()) out.first_address = listing.lines.front().address;
  std::map<FrameKey, size_t> known;
  for (const SassLine& line : listing.lines) {
    FrameKey key;
    for (const SourceFrame& frame : line.source)
      key.emplace_back(numbered.file(listing.files[frame.file]), frame.line, frame.function);
    const auto [found, added] = known.emplace(key, known.size());
    if (added) {
      std::vector<results::CodeFrame>& frames = out.frames.emplace_back();
      for (const auto& [file, number, function] : key)
        frames.push_back({file, number, numbered.function(function)});
    }
    if (!line.label.empty()) out.labels.emplace_back(out.lines.size(), line.label);
    std::string text = line.text;
    if (!listing.disassembled)
      text = fmt::format("{:<12} 0x{:016x} 0x{:016x}", text, line.low, line.high);
    out.lines.push_back({std::move(text), static_cast<uint32_t>(line.high >> 41 & 0x1fffff),
                         line.live_registers, found->second, line.ptx_line});
  }
  const auto [begin, end] = ptx_range(ptx, listing.symbol);
  out.ptx_first = begin;
  for (size_t i = begin; i < end; ++i) out.ptx.push_back(ptx[i]);
  return out;
}

results::KernelFacts kernel_of(const KernelRow& row, Demangler& demangle, uint32_t block,
                               int listing) {
  const binary::Kernel& kernel = row.resources;
  results::KernelFacts out;
  out.name = demangle(row.name);
  out.symbol = row.name;
  out.arch = row.arch_text();
  out.registers = kernel.registers;
  out.shared_bytes = row.user_shared_bytes();
  out.reserved_shared_bytes = kernel.shared_reserved_bytes;
  out.stack_bytes = kernel.stack_bytes;
  out.spill_store_bytes = kernel.spill_store_bytes;
  out.spill_load_bytes = kernel.spill_load_bytes;
  out.constant_bytes = kernel.constant_bytes;
  out.parameter_bytes = kernel.attributes.parameter_bytes;
  out.barriers = kernel.attributes.barriers;
  out.instructions = row.instructions();
  out.bounds = bounds_text(kernel.attributes);
  const uint32_t threads = row.block_threads(block);
  bool known = false;
  const Occupancy fits = occupancy_of(row, threads, &known);
  if (known)
    out.fit = {static_cast<uint32_t>(fits.blocks), threads, fits.fraction,
               std::string(name_of(fits.limiter))};
  out.mix = mix_text(kernel.counts);
  out.listing = listing;
  return out;
}

// Indented below the library that asked for it first; the first one is the file itself.
std::vector<results::LibraryRow> libraries_of(const std::vector<LoadedLibrary>& libraries) {
  std::vector<results::LibraryRow> out;
  std::vector<int> depth(libraries.size(), 0);
  for (size_t i = 1; i < libraries.size(); ++i) {
    const LoadedLibrary& library = libraries[i];
    if (library.parent > 0) depth[i] = depth[static_cast<size_t>(library.parent)] + 1;
    out.push_back({library.name,
                   library.path.empty()     ? "not found"
                   : library.member.empty() ? library.path.string()
                                            : "in this wheel: " + library.member,
                   library.how, depth[i]});
  }
  return out;
}

results::Symbols symbols_of(const SymbolView& view) {
  results::Symbols out;
  out.tag = view.floor.tag;
  out.glibc = view.floor.glibc;
  out.glibcxx = view.floor.glibcxx;
  out.advice = view.advice;
  out.libraries = libraries_of(view.libraries);
  out.needed_count = view.needed.size();
  out.defined_count = view.defined.size();
  const auto entry = [](const SymbolRow& symbol, std::string from) {
    return results::SymbolEntry{
        symbol.letter, symbol.demangled + (symbol.version.empty() ? "" : "@" + symbol.version),
        std::move(from)};
  };
  for (const NeededSymbol& needed : view.needed) {
    if (out.needed.size() == kMaxSymbolRows) break;
    out.needed.push_back(
        entry(needed.symbol, !needed.provider.empty()
                                 ? needed.provider
                                 : "nobody" + (needed.why.empty() ? "" : ": " + needed.why)));
  }
  for (const SymbolRow& symbol : view.defined) {
    if (out.needed.size() + out.defined.size() == kMaxSymbolRows) break;
    out.defined.push_back(entry(symbol, ""));
  }
  return out;
}

std::vector<results::GpuService> gpus_of(const Analysis& analysis) {
  std::vector<results::GpuService> out;
  for (const Served& served : served_gpus(analysis.images.images)) {
    const auto service = served.service == Service::Native ? results::Service::Native
                         : served.service == Service::Jit  ? results::Service::Jit
                                                           : results::Service::None;
    out.push_back({dotted(served.gpu->arch), std::string(served.gpu->names), service, served.by});
  }
  return out;
}

}  // namespace

results::FileBytes file_bytes_of(const Analysis& analysis) {
  results::FileBytes out;
  out.name = analysis.file.name;
  out.kind = name_of(analysis.file.kind);
  out.machine = analysis.machine;
  out.bytes = analysis.file.bytes.size();
  out.groups = totals_of(analysis.pieces);
  out.containers = analysis.images.containers;
  for (const ImageGroup& group : groups_of(analysis.images.images))
    out.images.push_back(
        {group.label, group.compression, group.count, group.packed_bytes, group.unpacked_bytes});
  return out;
}

results::Inspection inspection_of(const PageInput& input, Sources& sources) {
  const Analysis& analysis = input.analysis;
  results::Inspection out;
  out.file = file_bytes_of(analysis);
  if (!analysis.images.images.empty()) {
    out.gpus = gpus_of(analysis);
    for (const auto& [what, text] : service_notes(analysis, input.gpus))
      out.notes.push_back(what + ": " + text);
  }
  for (const std::string& fault : analysis.images.faults) out.notes.push_back("damaged: " + fault);
  Numbered numbered(sources, out);
  std::map<std::pair<size_t, std::string>, int> listing_of;
  for (const CodeImage& image : input.code.images)
    for (const Listing& listing : image.listing.kernels) {
      listing_of[{image.image, listing.symbol}] = static_cast<int>(out.code.size());
      out.code.push_back(code_of(listing, image.listing.ptx, numbered));
    }
  out.code_left_out = input.code.left_out;
  for (const std::string& note : {sources.note(), input.code.note})
    if (!note.empty()) out.code_notes.push_back(note);
  Demangler demangle;
  out.kernels.reserve(analysis.kernels.rows.size());
  for (const KernelRow& row : analysis.kernels.rows) {
    const auto found = listing_of.find({row.image, row.name});
    out.kernels.push_back(kernel_of(row, demangle, input.block_threads,
                                    found == listing_of.end() ? -1 : found->second));
  }
  if (input.symbols) out.symbols = symbols_of(*input.symbols);
  return out;
}

}  // namespace kiln::inspect
