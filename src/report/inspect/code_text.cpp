// SPDX-License-Identifier: Apache-2.0
// How do SASS and PTX read on a terminal?
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "report/inspect.h"

namespace kiln::report {
namespace {

using results::CodeList;
using results::Listing;
using results::SassLine;
using results::SourceFrame;
using SourcesByPath = std::map<std::string_view, const results::SourceText*>;

std::string file_name_of(const std::string& file) { return file.substr(file.rfind('/') + 1); }

std::string frames_text(const Listing& listing, const std::vector<SourceFrame>& frames) {
  std::string out;
  for (const SourceFrame& frame : frames)
    out += fmt::format(
        "{}{}:{}{}", out.empty() ? "" : " < ", file_name_of(listing.files[frame.file]), frame.line,
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

// "B--2---:R-:W1:Y:S04": waits, read barrier, write barrier, yield, stall.
std::string control_text(const results::ControlCode& code) {
  std::string waits = "------";
  for (unsigned i = 0; i < 6; ++i)
    if (code.wait_mask >> i & 1) waits[i] = static_cast<char>('0' + i);
  const auto barrier = [](uint8_t number) {
    return number == 7 ? '-' : static_cast<char>('0' + number);
  };
  return fmt::format("B{}:R{}:W{}:{}:S{:02}", waits, barrier(code.read_barrier),
                     barrier(code.write_barrier), code.yield ? 'Y' : '-', code.stall);
}

std::string sass_line(const SassLine& line, bool disassembled) {
  std::string live = line.live_registers < 0 ? "" : std::to_string(line.live_registers);
  if (line.live_predicates > 0) live += fmt::format("+{}p", line.live_predicates);
  if (line.live_uniform > 0) live += fmt::format("+{}u", line.live_uniform);
  std::string out = fmt::format("  {:>9}  {}  {:04x}  {}", live, control_text(line.control),
                                line.address, line.text);
  if (!disassembled)
    out += fmt::format("{:>{}}0x{:016x} 0x{:016x}", "", 16 - std::min<size_t>(line.text.size(), 15),
                       line.low, line.high);
  return out + "\n";
}

// The source's text as far as the file may be shown.
std::string source_line(const SourcesByPath& sources, const std::string& file, uint32_t number) {
  const auto found = sources.find(file);
  if (found == sources.end() || !found->second->lines) return "";
  const std::vector<std::string>& lines = *found->second->lines;
  return number >= 1 && number <= lines.size() ? "   " + lines[number - 1] : "";
}

std::string kernel_code(const Listing& listing, const SourcesByPath& sources,
                        const InspectStyle& style) {
  std::string out = style.bold(fmt::format("{}  {}", listing.arch, listing.name)) + "\n";
  out += style.dim(fmt::format("  {:>9}  {:<19}  {}  instruction\n", "live", "control", "at"));
  const std::vector<SourceFrame>* last = nullptr;
  for (const SassLine& line : listing.lines) {
    if (!line.label.empty()) out += line.label + ":\n";
    if (!line.source.empty() && (!last || !same_frames(*last, line.source))) {
      const SourceFrame& inner = line.source.front();
      out += style.dim(fmt::format("  // {}{}", frames_text(listing, line.source),
                                   source_line(sources, listing.files[inner.file], inner.line))) +
             "\n";
    }
    last = &line.source;
    out += sass_line(line, listing.disassembled);
  }
  return out;
}

}  // namespace

std::string ptx_text(const std::vector<results::PtxText>& images, const std::string& filter,
                     const InspectStyle& style) {
  std::string out;
  for (const results::PtxText& image : images) {
    if (images.size() > 1) out += style.bold(fmt::format("// {}", image.arch)) + "\n";
    out += image.text;
    if (!out.ends_with('\n')) out += '\n';
  }
  if (images.empty()) return "it contains no PTX\n";
  return text::trim(out).empty()
             ? fmt::format("it contains no PTX of a kernel with '{}' in its name\n", filter)
             : out;
}

std::string sass_text(const CodeList& code, const InspectStyle& style) {
  // First: below a long listing, or behind a pipe, nobody would read it.
  std::string out = code.note.empty() ? "" : "note: " + code.note + "\n";
  SourcesByPath sources;
  for (const results::SourceText& source : code.sources) sources.emplace(source.path, &source);
  for (const results::CodeImage& image : code.images)
    for (const Listing& listing : image.listing.kernels)
      out += kernel_code(listing, sources, style);
  if (code.left_out)
    out += fmt::format("{} more kernels: name one with --kernel\n", grouped(code.left_out));
  if (!code.sources_note.empty()) out += "note: " + code.sources_note + "\n";
  return out;
}

}  // namespace kiln::report
