// SPDX-License-Identifier: Apache-2.0
// What does the page of kiln sanitize show? A table of all findings, then each with both places.
#include <fmt/format.h>

#include <algorithm>

#include "report/findings.h"
#include "report/look.h"
#include "report/page.h"

namespace kiln::report {
namespace {

using results::Finding;
using results::FindingPlace;

std::string file_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

std::string place_line(const FindingPlace& place) {
  if (!place.stack.empty())
    return fmt::format("{}:{}", file_name(place.stack[0].file), place.stack[0].line);
  return place.ptx_line ? fmt::format("PTX line {}", place.ptx_line) : "host";
}

std::string thread_text(const std::vector<int64_t>& at) {
  return at.size() == 3 ? fmt::format("({},{},{})", at[0], at[1], at[2]) : "";
}

std::string place_html(const FindingPlace& place) {
  std::string out = "<div class=\"place\">\n";
  const std::string full = place.stack.empty()
                               ? place_line(place)
                               : fmt::format("{}:{}", place.stack[0].file, place.stack[0].line);
  out += fmt::format("<div class=\"soft\" title=\"{}\">{}</div>\n", escape(full),
                     escape(place_line(place)));
  if (!place.stack.empty() && !place.stack[0].text.empty())
    out += fmt::format("<pre><span class=\"soft\">{} </span>{}</pre>\n", place.stack[0].line,
                       escape(place.stack[0].text));
  out += fmt::format("<div>{}", escape(place.action));
  if (!place.thread.empty())
    out += fmt::format(" by thread {} of block {}", thread_text(place.thread),
                       thread_text(place.block));
  out += "</div>\n";
  for (size_t i = 1; i < place.stack.size(); ++i)
    out += fmt::format("<div class=\"soft\">inlined: {}:{}</div>\n", escape(place.stack[i].file),
                       place.stack[i].line);
  if (!place.kernel.empty()) {
    out += fmt::format("<div class=\"soft\" title=\"{}\">{}, launch {}", escape(place.kernel),
                       escape(folded_name(place.kernel)), place.launch);
    if (place.stream) out += fmt::format(", stream {}", place.stream);
    out += "</div>\n";
  }
  return out + "</div>\n";
}

std::string finding_html(const Finding& finding, size_t number) {
  const std::string state = finding.suppressed ? "suppressed" : finding.severity;
  std::string out = fmt::format(
      "<section class=\"card\" id=\"f{}\">\n<div><span class=\"tag {}\">{}</span> "
      "<code>{}</code></div>\n<h3>{}</h3>\n<div class=\"places\">\n",
      number, state, state, escape(finding.rule), escape(finding.message));
  for (const FindingPlace& place : finding.places) out += place_html(place);
  out += "</div>\n";
  for (const std::string& note : finding.notes)
    out += fmt::format("<p class=\"soft\">{}</p>\n", escape(note));
  if (!finding.advice.empty())
    out += fmt::format("<p><b>Fix:</b> {}</p>\n", escape(finding.advice));
  if (finding.suppressed)
    out += fmt::format("<p class=\"soft\">Suppressed: {}</p>\n", escape(*finding.suppressed));
  out += fmt::format("<p class=\"soft\">It happened {} time{}.</p>\n", finding.count,
                     finding.count == 1 ? "" : "s");
  return out + "</section>\n";
}

}  // namespace

std::string findings_page(const results::Findings& findings, const std::string& title) {
  std::string body = fmt::format("<h1>{}</h1>\n<p class=\"soft\">{}</p>\n", escape(title),
                                 escape(findings_summary(findings)));
  if (findings.findings.empty()) {
    body += "<p>Nothing was found in what this run executed.</p>\n";
  } else {
    std::vector<std::vector<std::string>> rows = {{"Rule", "Where", "What", "Times"}};
    for (size_t i = 0; i < findings.findings.size(); ++i) {
      const Finding& finding = findings.findings[i];
      std::string where;
      for (const FindingPlace& place : finding.places)
        where += (where.empty() ? "" : "<br>") + escape(place_line(place));
      rows.push_back({fmt::format("<a href=\"#f{}\"><code>{}</code></a>", i, escape(finding.rule)),
                      where, escape(finding.message), std::to_string(finding.count)});
    }
    body += "<div class=\"wide\">" + table(rows, "tttn") + "</div>\n<h2>Findings</h2>\n";
    for (size_t i = 0; i < findings.findings.size(); ++i)
      body += finding_html(findings.findings[i], i);
  }
  return page({title, body, kLook_findings_css});
}

}  // namespace kiln::report
