// SPDX-License-Identifier: Apache-2.0
// How does a person read findings on a terminal?
#include <fmt/format.h>

#include <algorithm>

#include "report/findings.h"

namespace kiln::report {
namespace {

using results::Finding;
using results::FindingLine;
using results::FindingPlace;

constexpr size_t kColumns = 100;

std::string index_text(const std::vector<int64_t>& at) {
  return at.size() == 3 ? fmt::format("({},{},{})", at[0], at[1], at[2]) : "";
}

size_t line_width(const Finding& finding) {
  size_t width = 1;
  for (const FindingPlace& place : finding.places) {
    if (!place.stack.empty()) width = std::max(width, std::to_string(place.stack[0].line).size());
  }
  return width;
}

std::string who_did(const FindingPlace& place) {
  std::string text = place.action;
  if (!place.thread.empty())
    text +=
        fmt::format(", thread {} of block {}", index_text(place.thread), index_text(place.block));
  return text;
}

// The code without its comment is underlined, as far as the words behind it leave room.
std::string marked_line(const std::string& margin, const std::string& code,
                        const std::string& words) {
  const size_t end = code.find("//");
  size_t width = std::max<size_t>(code.substr(0, end).find_last_not_of(" \t") + 1, 1);
  const size_t taken = margin.size() + 4 + words.size();
  width = std::min(width, taken < kColumns ? kColumns - taken : 3);
  return fmt::format("{} | {} {}\n", margin, std::string(std::max<size_t>(width, 3), '^'), words);
}

std::string place_lines(const FindingPlace& place, size_t width, bool first) {
  std::string out;
  const std::string margin(width, ' ');
  if (!place.stack.empty()) {
    const FindingLine& line = place.stack[0];
    out += fmt::format("{}{} {}:{}\n", margin, first ? "-->" : ":::", line.file, line.line);
    out += fmt::format("{} |\n", margin);
    if (!line.text.empty()) out += fmt::format("{:>{}} | {}\n", line.line, width, line.text);
    out += marked_line(margin, line.text, who_did(place));
  } else if (place.ptx_line) {
    out += fmt::format("{}{} PTX line {}, {} (compile with -lineinfo for the source line)\n",
                       margin, first ? "-->" : ":::", place.ptx_line, place.opcode);
    out += fmt::format("{} | {}\n", margin, who_did(place));
  } else {
    out += fmt::format("{}{} {}\n", margin, first ? "-->" : ":::", who_did(place));
  }
  for (size_t i = 1; i < place.stack.size(); ++i)
    out += fmt::format("{} = inlined: {}:{}\n", margin, place.stack[i].file, place.stack[i].line);
  if (!place.function.empty())
    out += fmt::format("{} = in {}\n", margin, folded_name(place.function));
  return out;
}

// "k(float*), launch 3, stream 1": of both places where they differ.
std::string kernel_lines(const Finding& finding, const std::string& margin) {
  std::string out, last;
  for (const FindingPlace& place : finding.places) {
    if (place.kernel.empty()) continue;
    std::string text =
        fmt::format("{} = kernel: {}, launch {}", margin, folded_name(place.kernel), place.launch);
    if (place.stream) text += fmt::format(", stream {}", place.stream);
    if (text != last) out += text + "\n";
    last = text;
  }
  return out;
}

// "  = help: ...", in lines of at most kColumns.
std::string labelled_lines(const std::string& margin, std::string_view label,
                           std::string_view words) {
  std::string out, line = fmt::format("{} = {}:", margin, label);
  const std::string indent(line.size(), ' ');
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (line.size() + 1 + (end - at) > kColumns && line.size() > indent.size()) {
      out += line + "\n";
      line = indent;
    }
    line += fmt::format(" {}", words.substr(at, end - at));
    at = end + 1;
  }
  return out + line + "\n";
}

// The bracket that closes the one at `open`; the end if none does.
size_t closing(std::string_view name, size_t open) {
  const char opens = name[open], closes = opens == '<' ? '>' : ')';
  size_t depth = 0;
  for (size_t at = open; at < name.size(); ++at) {
    if (name[at] == opens) ++depth;
    const bool arrow = closes == '>' && at > 0 && name[at - 1] == '-';
    if (name[at] == closes && !arrow && --depth == 0) return at;
  }
  return name.size();
}

// Without what is inside of brackets of this kind, where that is longer than `most`.
std::string folded(std::string_view name, char open, size_t most) {
  std::string out;
  for (size_t at = 0; at < name.size(); ++at) {
    out += name[at];
    if (name[at] != open || out.ends_with("operator<") || out.ends_with("operator<<")) continue;
    const size_t end = closing(name, at);
    if (end == name.size() || end - at - 1 <= most) continue;
    out += "...";
    at = end - 1;
  }
  return out;
}

}  // namespace

std::string folded_name(std::string_view name) {
  constexpr size_t kLong = 100, kLongArguments = 24;
  if (name.size() <= kLong) return std::string(name);
  std::string without_arguments = folded(name, '<', kLongArguments);
  if (without_arguments.size() <= kLong) return without_arguments;
  return folded(without_arguments, '(', kLongArguments);
}

std::string finding_text(const Finding& finding) {
  const size_t width = line_width(finding);
  const std::string margin(width, ' ');
  std::string out = fmt::format("{}[{}]: {}\n", finding.severity, finding.rule, finding.message);
  for (size_t i = 0; i < finding.places.size(); ++i)
    out += place_lines(finding.places[i], width, i == 0);
  out += kernel_lines(finding, margin);
  for (const std::string& note : finding.notes) out += labelled_lines(margin, "note", note);
  if (!finding.advice.empty()) out += labelled_lines(margin, "help", finding.advice);
  if (finding.count > 1) out += fmt::format("{} = times: {}\n", margin, finding.count);
  if (finding.suppressed) out += fmt::format("{} = suppressed: {}\n", margin, *finding.suppressed);
  return out;
}

std::string findings_text(const results::Findings& findings) {
  std::vector<const Finding*> shown;
  for (const Finding& finding : findings.findings) {
    if (!finding.suppressed) shown.push_back(&finding);
  }
  std::ranges::stable_sort(shown, {},
                           [](const Finding* each) { return each->severity != "error"; });
  std::string out;
  for (const Finding* finding : shown) out += finding_text(*finding) + "\n";
  return out + findings_summary(findings);
}

std::string findings_summary(const results::Findings& findings) {
  int64_t errors = 0, notes = 0, suppressed = 0;
  for (const Finding& finding : findings.findings) {
    if (finding.suppressed)
      ++suppressed;
    else
      ++(finding.severity == "error" ? errors : notes);
  }
  auto counted = [](int64_t count, std::string_view word) {
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
  };
  std::string out = "kiln sanitize: " + (errors ? counted(errors, "error") : "no errors");
  if (notes) out += ", " + counted(notes, "note");
  if (suppressed) out += fmt::format(", {} suppressed", suppressed);
  if (findings.left_out)
    out += fmt::format(" and {} more occurrences beyond the limit", findings.left_out);
  out += fmt::format(" in {} launch{}; checks: ", findings.launches,
                     findings.launches == 1 ? "" : "es");
  for (size_t i = 0; i < findings.checks.size(); ++i) out += (i ? ", " : "") + findings.checks[i];
  return out + "\n";
}

}  // namespace kiln::report
