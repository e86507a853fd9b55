// SPDX-License-Identifier: Apache-2.0
// How do SASS and PTX read, as text and as JSON?
#include "inspect/views/code_views.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "ptx/parser.h"

namespace kiln::inspect {
namespace {

using binary::ImageKind;

std::string base_name(const std::string& file) { return file.substr(file.rfind('/') + 1); }

std::string frames_text(const Listing& listing, const std::vector<SourceFrame>& frames) {
  std::string out;
  for (const SourceFrame& frame : frames)
    out += fmt::format(
        "{}{}:{}{}", out.empty() ? "" : " < ", base_name(listing.files[frame.file]), frame.line,
        frame.function.empty()
            ? ""
            : fmt::format(" ({})", frame.function.substr(0, frame.function.find('('))));
  return out;
}

bool same_frames(const std::vector<SourceFrame>& a, const std::vector<SourceFrame>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SourceFrame& x, const SourceFrame& y) {
                      return x.file == y.file && x.line == y.line && x.function == y.function;
                    });
}

std::string line_text(const SassLine& line, bool disassembled) {
  std::string live = line.live_registers < 0 ? "" : std::to_string(line.live_registers);
  if (line.live_predicates > 0) live += fmt::format("+{}p", line.live_predicates);
  if (line.live_uniform > 0) live += fmt::format("+{}u", line.live_uniform);
  std::string out =
      fmt::format("  {:>9}  {}  {:04x}  {}", live, text_of(line.control), line.address, line.text);
  if (!disassembled)
    out += fmt::format("{:>{}}0x{:016x} 0x{:016x}", "", 16 - std::min<size_t>(line.text.size(), 15),
                       line.low, line.high);
  return out + "\n";
}

std::string listing_text(const CodeList& code, const TextStyle& style, Sources* sources) {
  // First: below a long listing, or behind a pipe, nobody would read it.
  std::string out = code.note.empty() ? "" : "note: " + code.note + "\n";
  auto source_line = [&](const std::string& file, uint32_t number) -> std::string {
    if (!sources) return "";
    const auto& lines = sources->of(file).lines;
    return number >= 1 && number <= lines.size() ? "   " + lines[number - 1] : "";
  };
  for (const CodeImage& image : code.images)
    for (const Listing& listing : image.listing.kernels) {
      out +=
          style.bold(fmt::format("{}  {}", listing.arch, binary::demangle(listing.symbol))) + "\n";
      out += style.dim(fmt::format("  {:>9}  {:<19}  {}  instruction\n", "live", "control", "at"));
      const std::vector<SourceFrame>* last = nullptr;
      for (const SassLine& line : listing.lines) {
        if (!line.label.empty()) out += line.label + ":\n";
        if (!line.source.empty() && (!last || !same_frames(*last, line.source))) {
          const SourceFrame& inner = line.source.front();
          out += style.dim(fmt::format("  // {}{}", frames_text(listing, line.source),
                                       source_line(listing.files[inner.file], inner.line))) +
                 "\n";
        }
        last = &line.source;
        out += line_text(line, listing.disassembled);
      }
    }
  if (code.left_out)
    out += fmt::format("{} more kernels: name one with --kernel\n", grouped(code.left_out));
  if (std::string left_out = sources ? sources->note() : ""; !left_out.empty())
    out += "note: " + left_out + "\n";
  return out;
}

// What a cubin keeps of its PTX, comments and .loc lines gone.
std::string kept_ptx(const binary::Elf& elf) {
  const binary::ElfSection* section = elf.find(".nv_debug_ptx_txt");
  if (!section) return "";
  binary::Bytes bytes = elf.content(*section);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::replace(text.begin(), text.end(), '\0', '\n');
  return text;
}

}  // namespace

Result<std::vector<PtxImage>> read_ptx_images(const Analysis& analysis,
                                              const std::vector<std::string>& archs) {
  std::vector<PtxImage> out;
  for (const Image& image : analysis.images.images) {
    if (!image.is(ImageKind::Ptx) || !matches(image, archs)) continue;
    TRY(auto bytes, unpack(image, analysis.file.bytes));
    out.push_back(
        {image.label(), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
  }
  if (!out.empty()) return out;
  for (const Image& image : analysis.images.images) {
    if (!image.is(ImageKind::Elf) || !matches(image, archs)) continue;
    TRY(auto bytes, unpack(image, analysis.file.bytes));
    TRY(binary::Elf elf, binary::read_elf(bytes));
    std::string text = kept_ptx(elf);
    if (!text.empty()) out.push_back({image.label() + " (kept by -lineinfo)", std::move(text)});
  }
  return out;
}

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

std::string ptx_text(const std::vector<PtxImage>& images, const std::string& filter,
                     const TextStyle& style) {
  std::string out;
  for (const PtxImage& image : images) {
    if (images.size() > 1) out += style.bold(fmt::format("// {}", image.arch)) + "\n";
    out += ptx_of_kernels(image.text, filter);
    if (!out.ends_with('\n')) out += '\n';
  }
  if (images.empty()) return "it contains no PTX\n";
  return text::trim(out).empty()
             ? fmt::format("it contains no PTX of a kernel with '{}' in its name\n", filter)
             : out;
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

std::string sass_text(const CodeList& code, const TextStyle& style) {
  return listing_text(code, style, nullptr);
}

std::string sass_with_source_text(const CodeList& code, Sources& sources, const TextStyle& style) {
  return listing_text(code, style, &sources);
}

Json listing_json(const Listing& listing) {
  Json lines = Json::array();
  for (const SassLine& line : listing.lines) {
    const binary::ControlCode& control = line.control;
    auto barrier = [](uint8_t number) { return number == 7 ? Json(nullptr) : Json(number); };
    Json waits = Json::array(), source = Json::array();
    for (unsigned i = 0; i < 6; ++i)
      if (control.wait_mask >> i & 1) waits.push_back(i);
    for (const SourceFrame& frame : line.source)
      source.push_back(
          {{"file", listing.files[frame.file]},
           {"line", frame.line},
           {"function", frame.function.empty() ? Json(nullptr) : Json(frame.function)}});
    Json one{{"address", line.address},
             {"text", line.text},
             {"words", {fmt::format("0x{:016x}", line.low), fmt::format("0x{:016x}", line.high)}},
             {"control",
              {{"stall", control.stall},
               {"yield", control.yield},
               {"write_barrier", barrier(control.write_barrier)},
               {"read_barrier", barrier(control.read_barrier)},
               {"waits", std::move(waits)},
               {"reuse", control.reuse}}}};
    if (!line.label.empty()) one["label"] = line.label;
    if (!line.target.empty()) one["target"] = line.target;
    if (line.live_registers >= 0)
      one["live"] = {{"registers", line.live_registers},
                     {"predicates", std::max(line.live_predicates, 0)},
                     {"uniform", std::max(line.live_uniform, 0)}};
    if (!line.source.empty()) one["source"] = std::move(source);
    if (line.ptx_line) one["ptx_line"] = line.ptx_line;
    lines.push_back(std::move(one));
  }
  return {{"symbol", listing.symbol},
          {"name", binary::demangle(listing.symbol)},
          {"arch", listing.arch},
          {"disassembled", listing.disassembled},
          {"lines", std::move(lines)}};
}

}  // namespace kiln::inspect
