// SPDX-License-Identifier: Apache-2.0
// How do all views of a file fit into one page that needs nothing else? Sections that fold; kernels
// and code are data, which the page's script turns into tables and linked panes.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/inspect.h"
#include "report/look.h"
#include "report/page.h"

namespace kiln::report {
namespace {

std::string fit_text(const std::optional<results::Fit>& fit) {
  if (!fit) return "?";
  if (fit->blocks == 0) return "does not fit";
  return fmt::format("{:.0f} % ({} x {}, {})", fit->fraction * 100, fit->blocks, fit->block_threads,
                     fit->limiter);
}

// The keys of this and the next function are those of look/inspect.js.
Json kernel_data(const results::KernelFacts& kernel) {
  return {{"name", kernel.name},
          {"symbol", kernel.symbol},
          {"arch", kernel.arch},
          {"registers", kernel.registers},
          {"shared", kernel.shared_bytes},
          {"reserved", kernel.reserved_shared_bytes},
          {"stack", kernel.stack_bytes},
          {"spills", fmt::format("{} / {}", kernel.spill_store_bytes, kernel.spill_load_bytes)},
          {"constant", kernel.constant_bytes},
          {"parameters", kernel.parameter_bytes},
          {"barriers", kernel.barriers},
          {"bounds", kernel.bounds},
          {"instructions", kernel.instructions},
          {"occupancy", fit_text(kernel.fit)},
          {"mix", kernel.mix},
          {"listing", kernel.listing}};
}

Json code_data(const results::Code& code) {
  Json lines = Json::array(), frames = Json::array(), labels = Json::array();
  for (const results::CodeLine& line : code.lines)
    lines.push_back(
        Json::array({line.text, line.control, line.live_registers, line.frames, line.ptx_line}));
  for (const auto& stack : code.frames) {
    Json list = Json::array();
    for (const results::CodeFrame& frame : stack) {
      Json one = Json::array({frame.file, frame.line});
      if (frame.function) one.push_back(*frame.function);
      list.push_back(std::move(one));
    }
    frames.push_back(std::move(list));
  }
  for (const auto& [before, label] : code.labels) labels.push_back(Json::array({before, label}));
  return {
      {"name", code.name},           {"symbol", code.symbol},       {"arch", code.arch},
      {"first", code.first_address}, {"lines", std::move(lines)},   {"frames", std::move(frames)},
      {"labels", std::move(labels)}, {"ptx_first", code.ptx_first}, {"ptx", code.ptx}};
}

Json page_data(const results::Inspection& inspection) {
  Json kernels = Json::array(), files = Json::array(), code = Json::array();
  for (const results::KernelFacts& kernel : inspection.kernels)
    kernels.push_back(kernel_data(kernel));
  for (const results::SourceText& file : inspection.files)
    files.push_back({{"path", file.path},
                     {"lines", file.lines ? Json(*file.lines) : Json()},
                     {"why", file.why}});
  for (const results::Code& one : inspection.code) code.push_back(code_data(one));
  return {{"kernels", std::move(kernels)},
          {"files", std::move(files)},
          {"names", inspection.names},
          {"code", std::move(code)}};
}

std::string soft(std::string_view text) {
  return fmt::format("<p class=\"soft\">{}</p>\n", escape(text));
}

std::string folded(std::string_view id, std::string_view title, std::string_view content,
                   bool open) {
  return fmt::format("<details id=\"{}\"{}><summary>{}</summary><div>\n{}</div></details>\n", id,
                     open ? " open" : "", escape(title), content);
}

std::string libraries_table(const std::vector<results::LibraryRow>& libraries) {
  if (libraries.empty()) return "";
  std::string out =
      "<h3>Libraries</h3>\n<div class=\"scroll\"><table><tr><th class=\"text\">library</th>"
      "<th class=\"text\">where</th><th class=\"text\">by</th></tr>\n";
  for (const results::LibraryRow& library : libraries)
    out += fmt::format(
        "<tr><td class=\"text\" style=\"padding-left: {}px\">{}</td><td class=\"text\">{}</td>"
        "<td class=\"text soft\">{}</td></tr>\n",
        10 + 16 * std::min(library.depth, 12), escape(library.name), escape(library.where),
        escape(library.how));
  return out + "</table></div>\n";
}

std::string symbols_table(std::string_view title, const std::vector<results::SymbolEntry>& symbols,
                          size_t count, bool with_from) {
  std::string out = fmt::format(
      "<h3>{} ({})</h3>\n<div class=\"scroll\"><table><tr><th class=\"text\">nm</th>"
      "<th class=\"name\">symbol</th>{}</tr>\n",
      title, grouped(count), with_from ? "<th class=\"text\">from</th>" : "");
  for (const results::SymbolEntry& symbol : symbols)
    out += fmt::format(
        "<tr class=\"symbol\"><td class=\"text\">{}</td><td class=\"name\">{}</td>{}</tr>\n",
        escape({&symbol.letter, 1}), escape(symbol.name),
        with_from ? fmt::format("<td class=\"text\">{}</td>", escape(symbol.from)) : "");
  return out + "</table></div>\n";
}

std::string symbols_section(const results::Symbols& symbols) {
  std::string out = fmt::format("<p>{}", escape(symbols.tag));
  if (!symbols.glibc.empty()) out += fmt::format(", GLIBC_{} or newer", escape(symbols.glibc));
  if (!symbols.glibcxx.empty())
    out += fmt::format(", GLIBCXX_{} or newer", escape(symbols.glibcxx));
  out += "</p>\n";
  for (const std::string& line : symbols.advice) out += fmt::format("<p>{}</p>\n", escape(line));
  out += libraries_table(symbols.libraries);
  out += symbols_table("Needed", symbols.needed, symbols.needed_count, true);
  out += symbols_table("Defined", symbols.defined, symbols.defined_count, false);
  const size_t left_out =
      symbols.needed_count + symbols.defined_count - symbols.needed.size() - symbols.defined.size();
  if (left_out) out += soft(fmt::format("{} more: kiln inspect --symbols", grouped(left_out)));
  return out;
}

std::string kernels_section(const results::Inspection& inspection) {
  std::string out = "<div class=\"scroll\"><table id=\"kernels\"></table></div>\n";
  if (const size_t left_out = inspection.kernel_count - inspection.kernels.size())
    out += soft(fmt::format("{} more: kiln inspect --kernels", grouped(left_out)));
  return out;
}

std::string code_section(const results::Inspection& inspection) {
  std::string out = "<select id=\"pick\" aria-label=\"kernel\"></select>\n";
  if (inspection.code_left_out)
    out += soft(fmt::format("{} more kernels: choose with --kernel or --arch",
                            grouped(inspection.code_left_out)));
  for (const std::string& note : inspection.code_notes) out += soft(note);
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
  std::string body = folded(
      "overview", "Overview",
      bytes_picture(inspection.file) + "<pre>" + escape(inspection.images_text) + "</pre>", true);
  if (inspection.kernel_count)
    body += folded("table", fmt::format("Kernels ({})", grouped(inspection.kernel_count)),
                   kernels_section(inspection), true);
  if (!inspection.code.empty())
    body += folded("code", "Source, PTX and SASS", code_section(inspection), true);
  if (inspection.symbols)
    body += folded("symbols", "Symbols and libraries", symbols_section(*inspection.symbols), false);
  const std::string header = fmt::format(
      "<header><h1>{}</h1>\n"
      "<input id=\"search\" type=\"search\" placeholder=\"search\" aria-label=\"search\">\n"
      "<button id=\"theme\">light / dark</button></header>\n",
      escape(inspection.file.name));
  return page({.title = inspection.file.name,
               .body = body,
               .style = kLook_inspect_css,
               .script = kLook_inspect_js,
               .header = header,
               .data = page_data(inspection)});
}

}  // namespace kiln::report
