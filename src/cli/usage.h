// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line, why, and what should it be? In kiln's words: the parser knows
// where it stopped, not what a user meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"

namespace kiln::cli {

// "kiln bench", "kiln cache prune".
std::string full_name(const CLI::App& app);
// "kiln build [OPTIONS] [TARGET...]".
std::string usage_line(const CLI::App& app);
// Group "" is for internal options and those of an earlier release.
bool is_shown(const CLI::Option& option);

Error unknown_command(const std::string& word);
Error unknown_subcommand(const CLI::App& app, const std::string& word);
Error unknown_option(const CLI::App& app, const std::string& name);
Error no_value(const CLI::Option& option, const std::string& name);
Error needless_value(const CLI::App& app, const std::string& name);
// What the parser itself found: values of the wrong kind, arguments too many or too few.
Error parse_error(const CLI::ParseError& error, const CLI::App& app);

}  // namespace kiln::cli
