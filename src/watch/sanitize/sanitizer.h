// SPDX-License-Identifier: Apache-2.0
// Which checkers run, and where do their findings go? A folder with one file of JSON for each
// process, or the terminal.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "watch/fanout.h"
#include "watch/sanitize/collector.h"

namespace kiln::watch {

// A checker is a Sink that reports to the Collector it is made with (collector.h). To add one,
// write it, and give it a row in sanitizer.cpp.
struct CheckerRow {
  std::string_view name;  // as KILN_SANITIZE names it
  bool by_default;
  std::unique_ptr<engine::Sink> (*make)(Collector&);
};
const std::vector<CheckerRow>& checker_rows();

struct SanitizeRequest {
  std::string checks;  // "memory,race"; "default", "1" or "all"; empty: nothing is sanitized
  std::string folder;  // for the files of JSON; empty: findings are printed to stderr
};

// The rows that `checks` names. `problem`: a name that does not exist, with the names that do.
std::vector<const CheckerRow*> checkers_named(std::string_view checks, std::string* problem);

// Adds the Collector, the checkers, and what writes the findings. `problem`: the message about a
// check that does not exist; then nothing is added.
void add_sanitizer(const SanitizeRequest& request, Fanout& to, std::string* problem);

// Checks a part of a process: what is launched while it is the device's sink.
class SanitizedPart {
 public:
  // Null: `problem` says which check does not exist.
  static std::unique_ptr<SanitizedPart> begin(std::string_view checks, std::string* problem);
  engine::Sink& sink() { return all_; }
  // Findings as JSON, with the key "report": the text for people.
  std::string end();
  // {"error": TEXT}
  static std::string refusal(std::string_view text);

 private:
  Fanout all_;
  Collector* collector_ = nullptr;
};

}  // namespace kiln::watch
