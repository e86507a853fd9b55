// SPDX-License-Identifier: Apache-2.0
// How are the findings of kiln sanitize shown?
#pragma once

#include <string>

#include "results/findings.h"

namespace kiln::report {

// As rustc writes: the rule, both places with their source lines, then notes and advice.
std::string finding_text(const results::Finding& finding);
// "kiln sanitize: 2 errors, 1 note; 12 launches, checks: memory, race, sync"
std::string findings_summary(const results::Findings& findings);

}  // namespace kiln::report
