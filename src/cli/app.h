// SPDX-License-Identifier: Apache-2.0
// How does a command line become one command's run, its output and an exit code?
#pragma once

namespace kiln::cli {

int run_command_line(int argc, const char* const* argv);

}  // namespace kiln::cli
