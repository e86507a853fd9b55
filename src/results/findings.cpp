// SPDX-License-Identifier: Apache-2.0
#include "results/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kiln::results {

// Constant, for findings are written when the process ends and its variables are gone.
std::span<const RuleRow> rules() {
  static constexpr RuleRow kRows[] = {
#define RULE(id, name, check, severity, title) \
  {Rule::id, name, Check::check, Severity::severity, title},
#include "results/rules.def"
#undef RULE
  };
  return kRows;
}

const RuleRow& row_of(Rule rule) { return rules()[static_cast<size_t>(rule)]; }

const RuleRow* rule_named(std::string_view name) {
  for (const RuleRow& row : rules()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string_view name_of(Check check) {
  constexpr std::string_view kNames[] = {"memory", "race", "sync", "api", "leaks", "always"};
  return kNames[static_cast<size_t>(check)];
}

std::string_view name_of(Severity severity) {
  return severity == Severity::Error ? "error" : "note";
}

template <class Fields>
static void describe(Fields& field, FindingLine& line) {
  field("file", line.file);
  field("line", line.line);
  field("text", line.text);
}

template <class Fields>
static void describe(Fields& field, FindingPlace& place) {
  field("action", place.action);
  field("kernel", place.kernel);
  field("function", place.function);
  field("stack", place.stack);
  field("ptx_line", place.ptx_line);
  field("opcode", place.opcode);
  field("thread", place.thread);
  field("block", place.block);
  field("launch", place.launch);
  field("stream", place.stream);
}

template <class Fields>
static void describe(Fields& field, FindingObject& object) {
  field("kind", object.kind);
  field("name", object.name);
  field("index", object.index);
  field("offset_bytes", object.offset_bytes);
  field("size_bytes", object.size_bytes);
}

template <class Fields>
static void describe(Fields& field, Finding& finding) {
  field("rule", finding.rule);
  field("check", finding.check);
  field("severity", finding.severity);
  field("message", finding.message);
  field("places", finding.places);
  field.maybe("object", finding.object);
  field("advice", finding.advice);
  field("notes", finding.notes);
  field("count", finding.count);
  field.maybe("suppressed", finding.suppressed);
}

template <class Fields>
static void describe(Fields& field, Findings& findings) {
  field("checks", findings.checks);
  field("kernels", findings.kernels);
  field("launches", findings.launches);
  field("findings", findings.findings);
  field("left_out", findings.left_out);
  field("by_rule", findings.by_rule);
}

Json to_json(const Findings& findings) { return write(findings); }

Result<Findings> read_findings(const Json& json, std::string_view source) {
  return read<Findings>(json, source);
}

std::string key_of(const Finding& finding) {
  std::string key = finding.rule;
  for (const FindingPlace& place : finding.places) {
    key += '\n';
    for (const FindingLine& line : place.stack) key += fmt::format("{}:{};", line.file, line.line);
    if (place.stack.empty())
      key += fmt::format("{} {} {} {}", place.kernel, place.ptx_line, place.action,
                         place.ptx_line ? "" : finding.message);
  }
  return key;
}

// Only where a path begins: /x/a/b does not start with /a/b.
static void shorten(std::string& text, const std::string& prefix, const std::string& shown) {
  constexpr std::string_view kBefore = " ('\"`";
  for (size_t at = text.find(prefix); at != text.npos; at = text.find(prefix, at)) {
    const bool begins = at == 0 || kBefore.find(text[at - 1]) != kBefore.npos;
    if (begins) text.replace(at, prefix.size(), shown);
    at += begins ? shown.size() : prefix.size();
  }
}

void shorten_paths(Findings& findings, const std::string& folder, const std::string& shown) {
  if (folder.empty() || folder == "/") return;
  const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
  const std::string to = shown.empty() || shown.ends_with('/') ? shown : shown + "/";
  for (Finding& finding : findings.findings) {
    shorten(finding.message, prefix, to);
    shorten(finding.advice, prefix, to);
    for (std::string& note : finding.notes) shorten(note, prefix, to);
    for (FindingPlace& place : finding.places) {
      shorten(place.action, prefix, to);
      for (FindingLine& line : place.stack) shorten(line.file, prefix, to);
    }
  }
}

void merge(Findings& into, const Findings& from) {
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < into.findings.size(); ++i) known.emplace(key_of(into.findings[i]), i);
  for (const Finding& finding : from.findings) {
    const auto [at, is_new] = known.emplace(key_of(finding), into.findings.size());
    if (is_new)
      into.findings.push_back(finding);
    else
      into.findings[at->second].count += finding.count;
  }
  for (const std::string& check : from.checks) {
    if (std::ranges::find(into.checks, check) == into.checks.end()) into.checks.push_back(check);
  }
  for (const std::string& kernel : from.kernels) {
    if (into.kernels.size() < Findings::kMostKernels &&
        std::ranges::find(into.kernels, kernel) == into.kernels.end())
      into.kernels.push_back(kernel);
  }
  for (const auto& [rule, count] : from.by_rule) {
    auto at = std::ranges::find(into.by_rule, rule, &std::pair<std::string, int64_t>::first);
    if (at == into.by_rule.end())
      into.by_rule.emplace_back(rule, count);
    else
      at->second += count;
  }
  into.launches += from.launches;
  into.left_out += from.left_out;
}

}  // namespace kiln::results
