// SPDX-License-Identifier: Apache-2.0
// How are findings shown? One line an area; below it what is not right, why, and the command that
// fixes it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "doctor/check.h"

namespace kiln::doctor {

struct ReportStyle {
  bool color = false;
  bool verbose = false;  // every check, and the facts
};

std::string report_text(const Facts& facts, const std::vector<CheckResult>& results,
                        const ReportStyle& style);
Json report_json(const Facts& facts, const std::vector<CheckResult>& results);

// "ninja", "1.13.0 at /usr/bin/ninja": what was found, for people.
std::vector<std::pair<std::string, std::string>> list_facts(const Facts& facts);

// docs/guide/troubleshooting.md: every check by the words of its symptom.
std::string troubleshooting_page();

}  // namespace kiln::doctor
