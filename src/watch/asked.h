// SPDX-License-Identifier: Apache-2.0
// Which watchers does the environment ask for?
#pragma once

#include <memory>
#include <string>

#include "engine/machine/events.h"
#include "watch/sanitize/sanitizer.h"

namespace kiln::watch {

struct Asked {
  std::string accesses;         // a file for the access trace; empty: none
  uint64_t accesses_limit = 0;  // accesses that it has at most
  std::string lines;            // a file for the counts of source lines; empty: none
  std::string counters;         // a file for the counters of launches; empty: none
  std::string caches;     // of the GPU they are for: "132:52428800" (multiprocessors:L2 bytes)
  bool fidelity = false;  // a line about exact and approximate instructions
  SanitizeRequest sanitize;
};

// What counts launches into `path`; null, and an error on stderr, where it cannot be written.
std::unique_ptr<engine::Sink> make_counters(const std::string& path, const std::string& caches);

// Lives as long as the process; null: nothing is asked for. A file that cannot be written is an
// error on stderr, and that watcher does not watch. `problem`: a check that does not exist, for
// which nothing may run: a run without it would look clean.
engine::Sink* make_watchers(const Asked& asked, std::string* problem);

}  // namespace kiln::watch
