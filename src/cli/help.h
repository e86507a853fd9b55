// SPDX-License-Identifier: Apache-2.0
// What does --help print? The command's own options first, then those that several share, then
// those that all have; broken at words to fit the reader's window.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kiln::cli {

inline constexpr const char* kGlobalGroup = "Global options";

// `columns` is the reader's window.
std::string help_text(const CLI::App& app, size_t columns);

// `kiln --help`: `app` has the global options alone.
std::string main_help(const CLI::App& app, size_t columns);

}  // namespace kiln::cli
