// SPDX-License-Identifier: Apache-2.0
// How are the findings of kiln sanitize shown?
#pragma once

#include <string>
#include <string_view>

#include "results/findings.h"

namespace kiln::report {

// A function's name for people: long template arguments, and parameters if it is still too long,
// become "...". Names of Thrust's kernels have thousands of characters.
std::string folded_name(std::string_view name);
// As rustc writes: the rule, both places with their source lines, then notes and advice.
std::string finding_text(const results::Finding& finding);
// "kiln sanitize: 2 errors, 1 note in 12 launches; checks: memory, race, sync"
std::string findings_summary(const results::Findings& findings);
// All of them, worst first, and the summary. Suppressed ones are counted and not shown.
std::string findings_text(const results::Findings& findings);
// One self-contained page. `title`: what was run.
std::string findings_page(const results::Findings& findings, const std::string& title);
// SARIF 2.1.0, which code hosts show on the diff. Paths inside `folder` become relative to it.
// Findings without a line are put at the first one of `target`, the file that was run.
std::string findings_sarif(const results::Findings& findings, const std::string& folder,
                           const std::string& target);

}  // namespace kiln::report
