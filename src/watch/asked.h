// SPDX-License-Identifier: Apache-2.0
// Which watchers does the environment ask for?
#pragma once

#include <string>

#include "engine/machine/events.h"
#include "watch/sanitize/sanitizer.h"

namespace kiln::watch {

struct Asked {
  std::string accesses;         // a file for the access trace; empty: none
  uint64_t accesses_limit = 0;  // accesses that it has at most
  std::string lines;            // a file for the counts of source lines; empty: none
  bool fidelity = false;        // a line about exact and approximate instructions
  SanitizeRequest sanitize;
};

// Lives as long as the process; null: nothing is asked for. A file that cannot be written is an
// error on stderr, and that watcher does not watch. `problem`: a check that does not exist, for
// which nothing may run: a run without it would look clean.
engine::Sink* make_watchers(const Asked& asked, std::string* problem);

}  // namespace kiln::watch
