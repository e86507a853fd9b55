// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <fmt/format.h>

namespace kiln::report {
namespace {

// Series colours keep their order and differ in lightness too, for those who see no red or green;
// checked on both backgrounds for a contrast of at least 3.
constexpr std::string_view kStyle = R"css(
:root { --back:#ffffff; --text:#1c2530; --soft:#5b6775; --line:#d9dfe6; --panel:#f6f8fa;
  --s1:#0b62b8; --s2:#b45309; --s3:#0f766e; --s4:#8b1f5c; --s5:#5a6b1f; --s6:#6d28d9;
  --bad:#b42318; --good:#116932; }
@media (prefers-color-scheme: dark) {
  :root { --back:#12171d; --text:#e4e9ee; --soft:#9aa7b4; --line:#2d3742; --panel:#1a2129;
    --s1:#6cb2ff; --s2:#f5a54a; --s3:#4fd1c0; --s4:#f28cc0; --s5:#c3d469; --s6:#b9a3ff;
    --bad:#ff8a7a; --good:#7bd88f; } }
* { box-sizing:border-box }
body { margin:0; background:var(--back); color:var(--text); font:15px/1.5 system-ui,sans-serif }
main { max-width:1100px; margin:0 auto; padding:24px 20px 60px }
h1 { font-size:24px; margin:0 0 4px; overflow-wrap:anywhere }
h2 { font-size:18px; margin:32px 0 8px } h3 { font-size:15px; margin:20px 0 6px }
p,li { max-width:80ch } .soft { color:var(--soft) }
.num { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap }
code,pre { font-family:ui-monospace,monospace; font-size:13px }
pre { overflow:auto; background:var(--panel); padding:10px; border-radius:6px }
.wide { overflow-x:auto } table { border-collapse:collapse; font-size:14px }
th,td { padding:5px 12px 5px 0; text-align:left; border-bottom:1px solid var(--line);
  vertical-align:top } th { color:var(--soft); font-weight:600 }
.card { background:var(--panel); border:1px solid var(--line); border-radius:8px;
  padding:14px 16px; margin:12px 0 }
.tag { display:inline-block; padding:0 8px; border-radius:10px; border:1px solid currentColor;
  font-size:12px; font-weight:600 }
.SLOWER,.refusal,.warning { color:var(--bad) } .FASTER { color:var(--good) }
.SAME,.AMBIGUOUS,.note { color:var(--soft) }
svg { display:block; width:100%; height:auto; max-width:900px }
svg text { fill:var(--soft); font:12px system-ui,sans-serif }
/* A chart shrinks with the window, and its labels with it: they begin larger where it is narrow. */
@media (max-width:800px) { svg text { font-size:15px } }
svg .axis { stroke:var(--line); stroke-width:1 } svg .name { fill:var(--text) }
.s1{--c:var(--s1)} .s2{--c:var(--s2)} .s3{--c:var(--s3)}
.s4{--c:var(--s4)} .s5{--c:var(--s5)} .s6{--c:var(--s6)}
svg .stroke { stroke:var(--c); fill:none; stroke-width:2 }
svg .area { fill:var(--c); fill-opacity:.18; stroke:var(--c); stroke-width:1.5 }
svg .mark { fill:var(--c); stroke:var(--back); stroke-width:1 } svg .bar { fill:var(--c) }
svg .roof { stroke:var(--soft); stroke-dasharray:5 4; fill:none }
.key { display:flex; flex-wrap:wrap; gap:4px 18px; font-size:13px; margin:4px 0 }
.key i { display:inline-block; width:12px; height:12px; border-radius:3px; background:var(--c);
  margin-right:6px; vertical-align:-1px }
.key i.roof { width:18px; height:0; border-radius:0; background:none; vertical-align:4px;
  border-top:2px dashed var(--soft) }
button { font:inherit; font-size:13px; color:var(--text); background:var(--panel);
  border:1px solid var(--line); border-radius:5px; padding:2px 10px; cursor:pointer }
button:hover { border-color:var(--soft) }
)css";

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string page(std::string_view title, std::string_view body, std::string_view script) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n",
      escape(title), kStyle);
  out += body;
  out += "\n</main>\n";
  if (!script.empty()) out += fmt::format("<script>\n{}\n</script>\n", script);
  return out + "</body>\n</html>\n";
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"wide\"><table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    out += "<tr>";
    for (size_t k = 0; k < rows[i].size(); ++k)
      out += fmt::format("<{0}{2}>{1}</{0}>", i == 0 ? "th" : "td", rows[i][k],
                         k == 0 ? "" : " class=\"num\"");
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

}  // namespace kiln::report
