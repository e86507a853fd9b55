// SPDX-License-Identifier: Apache-2.0
// How does `kiln` start and end?
#include "cli/app.h"

int main(int argc, char** argv) { return kiln::cli::run_command_line(argc, argv); }
