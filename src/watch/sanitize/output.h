// SPDX-License-Identifier: Apache-2.0
// When are findings written? After each launch that had new ones, for a process may end without a
// word, and once more when it ends; to a file also while a launch runs.
#pragma once

#include <memory>
#include <string>

#include "watch/sanitize/collector.h"

namespace kiln::watch {

// `folder`: gets PID.json. Empty: new findings are printed to stderr.
std::unique_ptr<engine::Sink> make_output(Collector& collector, const std::string& folder);

// Fills in FindingLine::text from the files, as far as they can be read.
void read_source_lines(results::Findings& findings);
// Paths inside of the process's folder, relative to it.
void show_paths_of_here(results::Findings& findings);

}  // namespace kiln::watch
