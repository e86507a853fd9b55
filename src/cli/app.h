// SPDX-License-Identifier: Apache-2.0
// How does a command line become one command's run, its output and an exit code?
#pragma once

#include "base/result.h"

namespace kiln::cli {

// Prints an error for people on stderr and, with --json, for programs on stdout; the exit code.
int report_error(Error error, bool json, bool color);

int run_command_line(int argc, const char* const* argv);

}  // namespace kiln::cli
