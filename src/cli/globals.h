// SPDX-License-Identifier: Apache-2.0
// Which options does every command have?
#pragma once

#include <CLI/CLI.hpp>

#include "sys/terminal.h"

namespace kiln::cli {

struct Globals {
  bool json = false;
  bool verbose = false;
  bool quiet = false;
  sys::ColorChoice color = sys::ColorChoice::Auto;
};

// --help, --json, -v, -q, --color. `globals` must live as long as `app`.
void add_global_options(CLI::App& app, Globals& globals);

}  // namespace kiln::cli
