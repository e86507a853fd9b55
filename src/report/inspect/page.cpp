// SPDX-License-Identifier: Apache-2.0
// How do all views of a file fit into one page that needs nothing else? Sections that fold; kernels
// and code are data, which the page's script turns into tables and linked panes.
#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/inspect.h"
#include "report/inspect/page_code.h"
#include "report/inspect/words.h"
#include "report/kernels/groups.h"
#include "report/look.h"

namespace kiln::report {
namespace {

// Of JSON: with 6,000 instructions of code and 2,000 symbols, a page stays below a megabyte.
constexpr size_t kMaxKernelBytes = 300'000;

Json page_data(const results::CodeList& code, Json kernels) {
  PageCode parts = page_code(code);
  return {{"groups", std::move(kernels)},
          {"files", std::move(parts.files)},
          {"names", std::move(parts.names)},
          {"code", std::move(parts.code)}};
}

std::string soft(std::string_view text) {
  return fmt::format("<p class=\"soft\">{}</p>\n", escape(text));
}

std::string folded(std::string_view id, std::string_view title, std::string_view content,
                   bool open) {
  return fmt::format("<details id=\"{}\"{}><summary>{}</summary><div>\n{}</div></details>\n", id,
                     open ? " open" : "", escape(title), content);
}

// Indented below the library that asked for it first; the first one is the file itself.
std::string libraries_table(const std::vector<results::LibraryFacts>& libraries) {
  if (libraries.size() <= 1) return "";
  std::string out =
      "<h3>Libraries</h3>\n<div class=\"scroll\"><table><tr><th class=\"text\">library</th>"
      "<th class=\"text\">where</th><th class=\"text\">by</th></tr>\n";
  std::vector<int> depth(libraries.size(), 0);
  for (size_t i = 1; i < libraries.size(); ++i) {
    const results::LibraryFacts& library = libraries[i];
    if (library.parent > 0) depth[i] = depth[static_cast<size_t>(library.parent)] + 1;
    const std::string where = library.path.empty()     ? "not found"
                              : library.member.empty() ? library.path
                                                       : "in this wheel: " + library.member;
    out += fmt::format(
        "<tr><td class=\"text\" style=\"padding-left: {}px\">{}</td><td class=\"text\">{}</td>"
        "<td class=\"text soft\">{}</td></tr>\n",
        10 + 16 * std::min(depth[i], 12), escape(library.name), escape(where), escape(library.how));
  }
  return out + "</table></div>\n";
}

std::string symbol_cells(const results::SymbolRow& symbol) {
  return fmt::format(
      "<tr class=\"symbol\"><td class=\"text\">{}</td><td class=\"name\">{}</td>",
      escape({&symbol.letter, 1}),
      escape(symbol.demangled + (symbol.version.empty() ? "" : "@" + symbol.version)));
}

std::string symbols_head(std::string_view title, size_t count, std::string_view last_column) {
  return fmt::format(
      "<h3>{} ({})</h3>\n<div class=\"scroll\"><table><tr><th class=\"text\">nm</th>"
      "<th class=\"name\">symbol</th>{}</tr>\n",
      title, grouped(count), last_column);
}

// What a page lists of both tables together at most.
constexpr size_t kMaxSymbolRows = 1500;

std::string symbol_tables(const results::Symbols& symbols) {
  const size_t needed = std::min(symbols.needed.size(), kMaxSymbolRows);
  const size_t defined = std::min(symbols.defined.size(), kMaxSymbolRows - needed);
  std::string out = symbols_head("Needed", symbols.needed.size(), "<th class=\"text\">from</th>");
  for (size_t i = 0; i < needed; ++i) {
    const results::NeededSymbol& one = symbols.needed[i];
    const std::string from = !one.provider.empty() ? one.provider
                             : one.why.empty()     ? "nobody"
                                                   : "nobody: " + one.why;
    out +=
        symbol_cells(one.symbol) + fmt::format("<td class=\"text\">{}</td></tr>\n", escape(from));
  }
  out += "</table></div>\n" + symbols_head("Defined", symbols.defined.size(), "");
  for (size_t i = 0; i < defined; ++i) out += symbol_cells(symbols.defined[i]) + "</tr>\n";
  out += "</table></div>\n";
  if (const size_t more = symbols.needed.size() + symbols.defined.size() - needed - defined)
    out += soft(fmt::format("{} more: kiln inspect --symbols", grouped(more)));
  return out;
}

std::string symbols_section(const results::Symbols& symbols) {
  const results::SystemFloor& floor = symbols.floor;
  std::string out = fmt::format("<p>{}", escape(floor.tag));
  if (!floor.glibc.empty()) out += fmt::format(", GLIBC_{} or newer", escape(floor.glibc));
  if (!floor.glibcxx.empty()) out += fmt::format(", GLIBCXX_{} or newer", escape(floor.glibcxx));
  out += "</p>\n";
  for (const std::string& line : symbols.advice) out += fmt::format("<p>{}</p>\n", escape(line));
  return out + libraries_table(symbols.libraries) + symbol_tables(symbols);
}

std::string kernels_section(const KernelGroups& kernels) {
  std::string out =
      "<p class=\"choose\"><label>filter <input id=\"filter\" type=\"search\" "
      "placeholder=\"name or part of it\"></label>"
      "<label>architecture <select id=\"arch\"><option value=\"\">all</option></select></label>"
      "<label><input id=\"spilling\" type=\"checkbox\"> with spills</label>"
      "<span id=\"matches\" class=\"soft\" role=\"status\"></span></p>\n"
      "<div class=\"scroll\"><table id=\"kernels\"></table></div>\n";
  if (const size_t left_out = kernels.functions - kernels.groups.size())
    out += soft(fmt::format("{} more functions: kiln inspect --kernels", grouped(left_out)));
  return out;
}

std::string images_table(const results::FileBytes& file) {
  uint64_t most = 1;
  for (const results::ImageBytes& image : file.images) most = std::max(most, image.packed_bytes);
  std::vector<std::vector<std::string>> rows = {{"image", "count", "size", "unpacked", ""}};
  for (const results::ImageBytes& image : file.images)
    rows.push_back(
        {escape(image.label), grouped(image.count),
         bytes_text(static_cast<double>(image.packed_bytes)),
         image.compression == "none"
             ? ""
             : fmt::format("{} ({})", bytes_text(static_cast<double>(image.unpacked_bytes)),
                           escape(image.compression)),
         fmt::format("<div class=\"meter\" style=\"width:{:.1f}%\"></div>",
                     100.0 * static_cast<double>(image.packed_bytes) / static_cast<double>(most))});
  return rows.size() > 1 ? "<div class=\"images\">" + table(rows, "tnnnt") + "</div>" : "";
}

// A tile for each GPU: whether the file runs on it, by colour and by words.
std::string gpu_tiles(const std::vector<results::GpuService>& gpus) {
  std::string out = "<h3>GPUs</h3>\n<ul class=\"gpus\">\n";
  for (const results::GpuService& gpu : gpus) {
    const auto [kind, text] = gpu.service == results::Service::Native
                                  ? std::pair("native", "runs " + gpu.by)
                              : gpu.service == results::Service::Jit
                                  ? std::pair("jit", "compiles " + gpu.by + " when loaded")
                                  : std::pair("none", std::string("cannot run it"));
    out += fmt::format("<li class=\"{}\"><b>{}</b> <span>{}</span><small>{}</small></li>\n", kind,
                       escape(gpu.arch), escape(gpu.names), escape(text));
  }
  return out + "</ul>\n";
}

// Drivers, GPUs of this machine, damaged images.
std::vector<std::string> notes_of(const results::Overview& overview) {
  std::vector<std::string> out;
  if (!overview.images.empty())
    for (const auto& [what, text] : service_notes(overview)) out.push_back(what + ": " + text);
  for (const std::string& fault : overview.image_faults) out.push_back("damaged: " + fault);
  return out;
}

std::string overview_section(const results::Overview& overview) {
  std::string out = bytes_picture(overview.file) + images_table(overview.file) +
                    (overview.images.empty() ? soft("No GPU code.") : gpu_tiles(overview.gpus));
  const std::vector<std::string> notes = notes_of(overview);
  if (notes.empty()) return out;
  out += "<ul class=\"soft\">\n";
  for (const std::string& note : notes) out += fmt::format("<li>{}</li>\n", escape(note));
  return out + "</ul>\n";
}

std::string code_section(const results::CodeList& code) {
  std::string out = "<select id=\"pick\" aria-label=\"kernel\"></select>\n";
  if (code.left_out)
    out += soft(
        fmt::format("{} more kernels: choose with --kernel or --arch", grouped(code.left_out)));
  for (const std::string& note : {code.sources_note, code.note})
    if (!note.empty()) out += soft(note);
  return out +
         "<div class=\"stack\" id=\"stack\"></div><div class=\"panes\">\n"
         "<section class=\"pane\"><h2>Source <select id=\"file\" aria-label=\"file\"></select></h2>"
         "<div class=\"lines\" id=\"source\"></div></section>\n"
         "<section class=\"pane\"><h2>PTX</h2><div class=\"lines\" id=\"ptx\"></div></section>\n"
         "<section class=\"pane\"><h2>SASS: live registers, control code, address</h2>"
         "<div class=\"lines\" id=\"sass\"></div></section></div>\n";
}

}  // namespace

std::string inspect_page(const results::Inspection& inspection) {
  std::string body = folded("overview", "Overview", overview_section(inspection.overview), true);
  KernelGroups kernels = group_kernels(inspection.kernels, kMaxKernelBytes);
  if (!inspection.kernels.empty())
    body += folded("table",
                   fmt::format("Kernels ({} of {} function{})", grouped(inspection.kernels.size()),
                               grouped(kernels.functions), kernels.functions == 1 ? "" : "s"),
                   kernels_section(kernels), true);
  if (!inspection.code.images.empty())
    body += folded("code", "Source, PTX and SASS", code_section(inspection.code), true);
  if (inspection.symbols)
    body += folded("symbols", "Symbols and libraries", symbols_section(*inspection.symbols), false);
  const std::string header = fmt::format(
      "<header><h1>{}</h1>\n"
      "<input id=\"search\" type=\"search\" placeholder=\"search everything\" "
      "aria-label=\"search\">\n"
      "<button id=\"theme\">light / dark</button></header>\n",
      escape(inspection.overview.file.name));
  return page({.title = inspection.overview.file.name,
               .body = body,
               .style = kLook_inspect_css,
               .script = kLook_inspect_js,
               .header = header,
               .data = page_data(inspection.code, std::move(kernels.groups))});
}

}  // namespace kiln::report
