// SPDX-License-Identifier: Apache-2.0
// Did a run get worse than one that was saved? The numbers do not depend on the machine, so any
// rise is a change of the code.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/counter_report.h"

namespace kiln::counters {

// "add" is kiln-counters/add.json below `directory`; a name with a slash or .json is a path.
std::filesystem::path baseline_path(const std::filesystem::path& directory,
                                    const std::string& name);

std::string baseline_text(const results::CounterReport& report);

struct Change {
  size_t launch = 0;
  std::string kernel, metric;
  std::string at;  // the source line; "": the whole launch
  double before = 0, now = 0;
  bool worse = false;
};
// An error where the text is not a baseline, or one of another version or GPU.
Result<std::vector<Change>> compare_with_baseline(const results::CounterReport& report,
                                                  const std::string& text,
                                                  const std::string& source);

}  // namespace kiln::counters
