// SPDX-License-Identifier: Apache-2.0
// What did kiln sanitize find? One Finding for each pair of source lines and rule. The engine's
// library writes it, the command merges and filters it; text, page and SARIF are drawn from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "results/fields.h"

namespace kiln::results {

enum class Rule : uint8_t {
#define RULE(id, name, check, severity, title) id,
#include "results/rules.def"
#undef RULE
};
enum class Check : uint8_t { Memory, Race, Sync, Api, Leaks, Always };
enum class Severity : uint8_t { Error, Note };

struct RuleRow {
  Rule rule;
  std::string_view name;
  Check check;
  Severity severity;
  std::string_view title;
};
std::span<const RuleRow> rules();
const RuleRow& row_of(Rule rule);
// Null: no such rule.
const RuleRow* rule_named(std::string_view name);
std::string_view name_of(Check check);
std::string_view name_of(Severity severity);

struct FindingLine {
  std::string file;
  int64_t line = 0;
  std::string text;  // of the line, without the spaces before it; empty: the file could not be read
};

// Where one of the two accesses was made, or what a thread stood at.
struct FindingPlace {
  std::string action;              // "write of 4 bytes", "__syncthreads()", "cudaMemcpyAsync"
  std::string kernel;              // empty: the host did it
  std::string function;            // a device function that was called; empty: the kernel itself
  std::vector<FindingLine> stack;  // the line to look at first, then those that it was inlined into
  int64_t ptx_line = 0;            // for libraries without line information; 0: none
  std::string opcode;              // of PTX: "st.shared.f32"
  std::vector<int64_t> thread, block;  // x, y, z; empty: none
  int64_t launch = 0, stream = 0;      // numbers of the process
};

// What the accesses have in common.
struct FindingObject {
  std::string kind;   // "tensor", "shared variable", "variable", "allocation", "local memory"
  std::string name;   // empty: none
  std::string index;  // "[3]": of elements as large as the access; empty: not known
  int64_t offset_bytes = 0, size_bytes = 0;
};

struct Finding {
  std::string rule, check, severity;  // names of a row of rules.def
  std::string message;                // one sentence: what is wrong
  std::vector<FindingPlace> places;   // one or two
  std::optional<FindingObject> object;
  std::string advice;                     // what would have ordered them, or how to fix it
  std::vector<std::string> notes;         // more facts, a line each
  int64_t count = 1;                      // how often it happened
  std::optional<std::string> suppressed;  // the reason that a suppression file gives
};

struct Findings {
  static constexpr size_t kMostKernels = 1000;

  std::vector<std::string> checks;   // that ran
  std::vector<std::string> kernels;  // that were launched, the first kMostKernels of them
  int64_t launches = 0;
  std::vector<Finding> findings;
  int64_t left_out = 0;    // findings beyond the limit
  Named<int64_t> by_rule;  // how often each rule was broken, also by those left out
};

Json to_json(const Findings& findings);
Result<Findings> read_findings(const Json& json, std::string_view source);

// Adds those of another process: a finding of the same rule and lines counts once more.
void merge(Findings& into, const Findings& from);
// Shows files of `folder` as the user wrote them: `shown` in place of `folder`, "" for none.
void shorten_paths(Findings& findings, const std::string& folder, const std::string& shown);
// The same for two findings: rule and stacks of all places, or their lines of PTX, or, of what the
// host did, the message.
std::string key_of(const Finding& finding);

}  // namespace kiln::results
