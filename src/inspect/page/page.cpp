// SPDX-License-Identifier: Apache-2.0
// How do all views fit into one HTML page that needs nothing else?
#include "inspect/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "inspect/page/svg.h"
#include "inspect/page_text.h"
#include "inspect/views/text_views.h"

namespace kiln::inspect {
namespace {

// What a page lists of each kind at most; the text view and --json have the rest.
constexpr size_t kMaxKernelRows = 3000, kMaxSymbolRows = 2000;

using FrameKey = std::vector<std::tuple<uint32_t, uint32_t, std::string>>;

class PageFiles {
 public:
  explicit PageFiles(Sources& sources) : sources_(sources) {}
  uint32_t number_of(const std::string& path) {
    auto found = numbers_.find(path);
    if (found != numbers_.end()) return found->second;
    uint32_t number = static_cast<uint32_t>(list_.size());
    numbers_[path] = number;
    const Sources::Text& text = sources_.of(path);
    list_.push_back({{"path", path},
                     {"lines", text.shown ? Json(text.lines) : Json(nullptr)},
                     {"why", text.why}});
    return number;
  }
  Json take() { return std::move(list_); }

 private:
  Sources& sources_;
  std::map<std::string, uint32_t> numbers_;
  Json list_ = Json::array();
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

// Names of inlined functions are long and come again on every line.
class PageNames {
 public:
  size_t number_of(const std::string& name) {
    auto [found, added] = numbers_.emplace(name, numbers_.size());
    if (added) list_.push_back(name);
    return found->second;
  }
  Json take() { return std::move(list_); }

 private:
  std::map<std::string, size_t> numbers_;
  Json list_ = Json::array();
};

Json code_json(const Listing& listing, const std::vector<std::string>& ptx, PageFiles& files,
               PageNames& names) {
  Json lines = Json::array(), frames = Json::array(), labels = Json::array();
  std::map<FrameKey, size_t> known;
  for (const SassLine& line : listing.lines) {
    FrameKey key;
    for (const SourceFrame& frame : line.source)
      key.emplace_back(files.number_of(listing.files[frame.file]), frame.line, frame.function);
    auto [found, added] = known.emplace(key, known.size());
    if (added) {
      Json list = Json::array();
      for (const auto& [file, number, function] : key) {
        Json frame = Json::array({file, number});
        if (!function.empty()) frame.push_back(names.number_of(function));
        list.push_back(std::move(frame));
      }
      frames.push_back(std::move(list));
    }
    if (!line.label.empty()) labels.push_back(Json::array({lines.size(), line.label}));
    std::string text = line.text;
    if (!listing.disassembled)
      text = fmt::format("{:<12} 0x{:016x} 0x{:016x}", text, line.low, line.high);
    lines.push_back(Json::array(
        {text, line.high >> 41 & 0x1fffff, line.live_registers, found->second, line.ptx_line}));
  }
  auto [begin, end] = ptx_range(ptx, listing.symbol);
  Json ptx_part = Json::array();
  for (size_t i = begin; i < end; ++i) ptx_part.push_back(ptx[i]);
  return {{"name", binary::demangle(listing.symbol)},
          {"symbol", listing.symbol},
          {"arch", listing.arch},
          {"first", listing.lines.empty() ? 0 : listing.lines.front().address},
          {"lines", std::move(lines)},
          {"frames", std::move(frames)},
          {"labels", std::move(labels)},
          {"ptx_first", begin},
          {"ptx", std::move(ptx_part)}};
}

Json kernel_row(const KernelRow& row, Demangler& demangle, uint32_t block, int listing) {
  const binary::Kernel& kernel = row.resources;
  uint32_t threads = row.block_threads(block);
  bool known = false;
  Occupancy fits = occupancy_of(row, threads, &known);
  return {
      {"name", demangle(row.name)},
      {"symbol", row.name},
      {"arch", row.arch_text()},
      {"registers", kernel.registers},
      {"shared", row.user_shared_bytes()},
      {"reserved", kernel.shared_reserved_bytes},
      {"stack", kernel.stack_bytes},
      {"spills", fmt::format("{} / {}", kernel.spill_store_bytes, kernel.spill_load_bytes)},
      {"constant", kernel.constant_bytes},
      {"parameters", kernel.attributes.parameter_bytes},
      {"barriers", kernel.attributes.barriers},
      {"bounds", bounds_text(kernel.attributes)},
      {"instructions", row.instructions()},
      {"occupancy", !known             ? std::string("?")
                    : fits.blocks == 0 ? std::string("does not fit")
                                       : fmt::format("{:.0f} % ({} x {}, {})", fits.fraction * 100,
                                                     fits.blocks, threads, name_of(fits.limiter))},
      {"mix", mix_text(kernel.counts)},
      {"listing", listing}};
}

// Indented below the library that asked for it first.
std::string libraries_html(const SymbolView& view) {
  if (view.libraries.size() < 2) return "";
  std::string out =
      "<h3>Libraries</h3>\n<div class=\"scroll\"><table><tr><th class=\"text\">library</th>"
      "<th class=\"text\">where</th><th class=\"text\">by</th></tr>\n";
  std::vector<int> depth(view.libraries.size(), 0);
  for (size_t i = 1; i < view.libraries.size(); ++i) {
    const LoadedLibrary& library = view.libraries[i];
    if (library.parent > 0) depth[i] = depth[static_cast<size_t>(library.parent)] + 1;
    std::string where = library.path.empty()     ? "not found"
                        : library.member.empty() ? escaped(library.path.string())
                                                 : "in this wheel: " + escaped(library.member);
    out += fmt::format(
        "<tr><td class=\"text\" style=\"padding-left: {}px\">{}</td><td class=\"text\">{}</td>"
        "<td class=\"text faint\">{}</td></tr>\n",
        10 + 16 * std::min(depth[i], 12), escaped(library.name), where, escaped(library.how));
  }
  return out + "</table></div>\n";
}

std::string symbols_html(const SymbolView& view) {
  std::string out = fmt::format("<p>{}", escaped(view.floor.tag));
  if (!view.floor.glibc.empty())
    out += fmt::format(", GLIBC_{} or newer", escaped(view.floor.glibc));
  if (!view.floor.glibcxx.empty())
    out += fmt::format(", GLIBCXX_{} or newer", escaped(view.floor.glibcxx));
  out += "</p>\n";
  for (const std::string& line : view.advice) out += fmt::format("<p>{}</p>\n", escaped(line));
  out += libraries_html(view);
  auto heading = [](const char* word, size_t count) {
    return fmt::format(
        "<h3>{} ({})</h3>\n<div class=\"scroll\"><table><tr><th class=\"text\">nm</th>"
        "<th class=\"name\">symbol</th>{}</tr>\n",
        word, grouped(count), word[0] == 'N' ? "<th class=\"text\">from</th>" : "");
  };
  size_t rows = 0;
  auto row = [&](char letter, const SymbolRow& symbol, const std::string& from) {
    if (++rows > kMaxSymbolRows) return;
    std::string version = symbol.version.empty() ? "" : "@" + symbol.version;
    out += fmt::format(
        "<tr class=\"symbol\"><td class=\"text\">{}</td><td class=\"name\">{}</td><td "
        "class=\"text\">{}</td></tr>\n",
        letter, escaped(symbol.demangled + version), escaped(from));
  };
  out += heading("Needed", view.needed.size());
  for (const NeededSymbol& needed : view.needed)
    row(needed.symbol.letter, needed.symbol,
        !needed.provider.empty() ? needed.provider
                                 : "nobody" + (needed.why.empty() ? "" : ": " + needed.why));
  out += "</table></div>\n" + heading("Defined", view.defined.size());
  for (const SymbolRow& symbol : view.defined) row(symbol.letter, symbol, "");
  out += "</table></div>\n";
  if (rows > kMaxSymbolRows)
    out += fmt::format("<p class=\"faint\">{} more: kiln inspect --symbols</p>\n",
                       grouped(rows - kMaxSymbolRows));
  return out;
}

std::string folded(const char* id, std::string_view title, std::string_view content, bool open) {
  return fmt::format("<details id=\"{}\"{}><summary>{}</summary><div>\n{}</div></details>\n", id,
                     open ? " open" : "", escaped(title), content);
}

// "</script>" inside of a string would end the element.
std::string for_script(std::string text) {
  text = text::replace_all(text, "</", "<\\/");
  return text::replace_all(text, "<!--", "<\\!--");
}

}  // namespace

std::string make_page(const PageInput& input, Sources& sources) {
  const Analysis& analysis = input.analysis;
  Json data{{"kernels", Json::array()},
            {"files", Json::array()},
            {"names", Json::array()},
            {"code", Json::array()}};
  PageFiles files(sources);
  PageNames names;
  std::map<std::pair<size_t, std::string>, int> listing_of;
  for (const CodeImage& image : input.code.images) {
    for (const Listing& listing : image.listing.kernels) {
      listing_of[{image.image, listing.symbol}] = static_cast<int>(data["code"].size());
      data["code"].push_back(code_json(listing, image.listing.ptx, files, names));
    }
  }
  data["files"] = files.take();
  data["names"] = names.take();
  Demangler demangle;
  for (const KernelRow& row : analysis.kernels.rows) {
    if (data["kernels"].size() >= kMaxKernelRows) break;
    auto found = listing_of.find({row.image, row.name});
    data["kernels"].push_back(kernel_row(row, demangle, input.block_threads,
                                         found == listing_of.end() ? -1 : found->second));
  }
  TextStyle plain;
  plain.block_threads = input.block_threads;
  std::string main =
      folded("overview", "Overview",
             overview_svg(analysis) + "<pre>" +
                 escaped(images_and_gpus_text(analysis, input.gpus, plain)) + "</pre>",
             true);
  size_t kernels = analysis.kernels.rows.size();
  if (kernels) {
    std::string more = kernels > kMaxKernelRows
                           ? fmt::format("<p class=\"faint\">{} more: kiln inspect --kernels</p>",
                                         grouped(kernels - kMaxKernelRows))
                           : "";
    main += folded("table", fmt::format("Kernels ({})", grouped(kernels)),
                   "<div class=\"scroll\"><table id=\"kernels\"></table></div>" + more, true);
  }
  if (!data["code"].empty()) {
    std::string note =
        input.code.left_out
            ? fmt::format("<p class=\"faint\">{} more kernels: choose with --kernel or --arch</p>",
                          grouped(input.code.left_out))
            : "";
    if (std::string left_out = sources.note(); !left_out.empty())
      note += "<p class=\"faint\">" + escaped(left_out) + "</p>";
    if (!input.code.note.empty()) note += "<p class=\"faint\">" + escaped(input.code.note) + "</p>";
    main += folded(
        "code", "Source, PTX and SASS",
        "<select id=\"pick\" aria-label=\"kernel\"></select>" + note +
            "<div class=\"stack\" id=\"stack\"></div><div class=\"panes\">"
            "<section class=\"pane\"><h2>Source <select id=\"file\" "
            "aria-label=\"file\"></select></h2>"
            "<div class=\"lines\" id=\"source\"></div></section>"
            "<section class=\"pane\"><h2>PTX</h2><div class=\"lines\" id=\"ptx\"></div></section>"
            "<section class=\"pane\"><h2>SASS: live registers, control code, address</h2>"
            "<div class=\"lines\" id=\"sass\"></div></section></div>",
        true);
  }
  if (input.symbols)
    main += folded("symbols", "Symbols and libraries", symbols_html(*input.symbols), false);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n"
      "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<header><h1>{0}</h1>\n"
      "<input id=\"search\" type=\"search\" placeholder=\"search\" aria-label=\"search\">\n"
      "<button id=\"theme\">light / dark</button></header>\n<main>\n{2}</main>\n"
      "<script type=\"application/json\" "
      "id=\"data\">{3}</script>\n<script>\n{4}</script>\n</body>\n</html>\n",
      escaped(analysis.file.name), kPage_css, main, for_script(dump(data)), kPage_js);
}

}  // namespace kiln::inspect
