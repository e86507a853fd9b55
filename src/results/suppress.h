// SPDX-License-Identifier: Apache-2.0
// Which findings does a team accept, and why? A file of one line each:
//
//   # rule        kernel     place             reason
//   global-race   histogram  histogram.cu:41   lost counts are only a hint
//   *             cub::      *                 third-party code
//
// The first three have no blanks. A rule is a name of rules.def or a check; `*` is any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "results/findings.h"

namespace kiln::results {

struct Suppression {
  std::string rule, kernel, file;  // empty: any
  int64_t line = 0;                // 0: any
  std::string reason;
  int64_t at = 0;  // its line in the file
  int64_t used = 0;
};

// `source` names the file in an error.
Result<std::vector<Suppression>> parse_suppressions(std::string_view text, std::string_view source);
// Sets Finding::suppressed, and counts in Suppression::used.
void suppress(Findings& findings, std::vector<Suppression>& suppressions);

}  // namespace kiln::results
