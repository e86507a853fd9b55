// SPDX-License-Identifier: Apache-2.0
#include "inspect/code.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "ptx/parser.h"

namespace kiln::inspect {
namespace {

using binary::ImageKind;

// What a cubin keeps of its PTX, comments and .loc lines gone.
std::string kept_ptx(const binary::Elf& elf) {
  const binary::ElfSection* section = elf.find(".nv_debug_ptx_txt");
  if (!section) return "";
  binary::Bytes bytes = elf.content(*section);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::replace(text.begin(), text.end(), '\0', '\n');
  return text;
}

// Only the functions with this text in their name; all of the module for an empty one.
std::string ptx_of_kernels(const std::string& module, const std::string& filter) {
  if (filter.empty()) return module;
  auto parsed = ptx::parse_module(module);
  if (!parsed) return module;
  std::vector<std::string_view> lines = text::lines(module);
  std::string out;
  for (const ptx::Function& function : parsed->functions) {
    std::string name(function.name);
    if (function.body_text.empty() || !name_matches(filter, name, binary::demangle(name))) continue;
    size_t end =
        static_cast<size_t>(function.body_text.data() - module.data()) + function.body_text.size();
    size_t last = static_cast<size_t>(
        std::count(module.begin(), module.begin() + static_cast<ptrdiff_t>(end), '\n'));
    for (size_t i = function.line ? function.line - 1 : 0; i <= last && i < lines.size(); ++i)
      out += std::string(lines[i]) + "\n";
  }
  return out;
}

}  // namespace

bool name_matches(const std::string& filter, const std::string& mangled,
                  const std::string& demangled) {
  return filter.empty() || mangled.find(filter) != mangled.npos ||
         demangled.find(filter) != demangled.npos;
}

Result<std::vector<results::PtxText>> read_ptx(const Analysis& analysis,
                                               const std::vector<std::string>& archs,
                                               const std::string& kernel) {
  std::vector<results::PtxText> out;
  for (const Image& image : analysis.images.images) {
    if (!image.is(ImageKind::Ptx) || !matches(image, archs)) continue;
    TRY(auto bytes, unpack(image, analysis.file.bytes));
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    out.push_back({image.label(), ptx_of_kernels(text, kernel)});
  }
  if (!out.empty()) return out;
  for (const Image& image : analysis.images.images) {
    if (!image.is(ImageKind::Elf) || !matches(image, archs)) continue;
    TRY(auto bytes, unpack(image, analysis.file.bytes));
    TRY(binary::Elf elf, binary::read_elf(bytes));
    const std::string text = kept_ptx(elf);
    if (!text.empty())
      out.push_back({image.label() + " (kept by -lineinfo)", ptx_of_kernels(text, kernel)});
  }
  return out;
}

Result<CodeList> list_code(const Analysis& analysis, const CodeOptions& options, sys::Files& files,
                           sys::Processes& processes, const sys::Environment& env) {
  CodeList out;
  ListingOptions listing;
  bool looked = false;
  Demangler demangle;
  size_t taken = 0;
  for (size_t i = 0; i < analysis.images.images.size(); ++i) {
    const Image& image = analysis.images.images[i];
    if (!image.is(ImageKind::Elf) || !matches(image, options.archs)) continue;
    listing.symbols.clear();
    for (const KernelRow& row : analysis.kernels.rows) {
      if (row.image != i || !name_matches(options.kernel, row.name, demangle(row.name))) continue;
      if (options.max_instructions && taken > 0 &&
          taken + row.instructions() > options.max_instructions) {
        ++out.left_out;
        continue;
      }
      taken += row.instructions();
      listing.symbols.push_back(row.resources.symbol);
    }
    if (listing.symbols.empty()) continue;
    if (!looked) listing.nvdisasm = find_nvdisasm(files, processes, env);
    looked = true;
    listing.arch = image.label();
    TRY(auto bytes, unpack(image, analysis.file.bytes));
    TRY(CubinListing part, list_cubin(bytes, listing, files, processes));
    if (!part.note.empty()) out.note = part.note;
    out.images.push_back({i, std::move(part)});
  }
  return out;
}

void add_sources(CodeList& code, Sources& sources, Frames frames) {
  std::set<std::string> known;
  const auto add = [&](const std::string& path) {
    if (!known.insert(path).second) return;
    const Sources::Text& text = sources.of(path);
    results::SourceText out{path, std::nullopt, text.why};
    if (text.shown) out.lines = text.lines;
    code.sources.push_back(std::move(out));
  };
  for (const CodeImage& image : code.images)
    for (const Listing& listing : image.listing.kernels)
      for (const SassLine& line : listing.lines)
        for (const SourceFrame& frame : line.source) {
          add(listing.files[frame.file]);
          if (frames == Frames::Innermost) break;
        }
  code.sources_note = sources.note();
}

}  // namespace kiln::inspect
