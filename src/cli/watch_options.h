// SPDX-License-Identifier: Apache-2.0
// Which options show what a kernel did on the engine? The engine inside the op library reads them
// from the environment, so that they reach it however the code runs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace kiln::cli {

struct WatchOptions {
  std::string accesses, lines;  // files; empty: not asked for
  std::optional<uint64_t> accesses_limit, schedule;

  bool any() const { return !accesses.empty() || !lines.empty() || schedule; }
};

void add_watch_options(CLI::App& app, WatchOptions& options);

// Sets the engine's variables. A watched call runs on the engine, also where there is a GPU; an
// error where `device` asks for the GPU. Relative paths stay those of the working directory.
Status apply_watch_options(const WatchOptions& options, const std::string& device);

}  // namespace kiln::cli
