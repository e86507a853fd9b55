// SPDX-License-Identifier: Apache-2.0
// How do all views of a file fit into one page that needs nothing else? Sections that fold; kernels
// and code are data, which the page's script turns into tables and linked panes.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/inspect.h"
#include "report/kernels/groups.h"
#include "report/look.h"
#include "report/page.h"

namespace kiln::report {
namespace {

// Of JSON: with 6,000 instructions of code and 2,000 symbols, a page stays below a megabyte.
constexpr size_t kMaxKernelBytes = 300'000;

// The keys of this and the next function are those of look/inspect.js.
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

Json page_data(const results::Inspection& inspection, Json kernels) {
  Json files = Json::array(), code = Json::array();
  for (const results::SourceText& file : inspection.files)
    files.push_back({{"path", file.path},
                     {"lines", file.lines ? Json(*file.lines) : Json()},
                     {"why", file.why}});
  for (const results::Code& one : inspection.code) code.push_back(code_data(one));
  return {{"groups", std::move(kernels)},
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
  if (gpus.empty()) return soft("No GPU code.");
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

std::string overview_section(const results::Inspection& inspection) {
  std::string out =
      bytes_picture(inspection.file) + images_table(inspection.file) + gpu_tiles(inspection.gpus);
  if (inspection.notes.empty()) return out;
  out += "<ul class=\"soft\">\n";
  for (const std::string& note : inspection.notes)
    out += fmt::format("<li>{}</li>\n", escape(note));
  return out + "</ul>\n";
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
  std::string body = folded("overview", "Overview", overview_section(inspection), true);
  KernelGroups kernels = group_kernels(inspection.kernels, kMaxKernelBytes);
  if (!inspection.kernels.empty())
    body += folded("table",
                   fmt::format("Kernels ({} of {} function{})", grouped(inspection.kernels.size()),
                               grouped(kernels.functions), kernels.functions == 1 ? "" : "s"),
                   kernels_section(kernels), true);
  if (!inspection.code.empty())
    body += folded("code", "Source, PTX and SASS", code_section(inspection), true);
  if (inspection.symbols)
    body += folded("symbols", "Symbols and libraries", symbols_section(*inspection.symbols), false);
  const std::string header = fmt::format(
      "<header><h1>{}</h1>\n"
      "<input id=\"search\" type=\"search\" placeholder=\"search everything\" "
      "aria-label=\"search\">\n"
      "<button id=\"theme\">light / dark</button></header>\n",
      escape(inspection.file.name));
  return page({.title = inspection.file.name,
               .body = body,
               .style = kLook_inspect_css,
               .script = kLook_inspect_js,
               .header = header,
               .data = page_data(inspection, std::move(kernels.groups))});
}

}  // namespace kiln::report
