// SPDX-License-Identifier: Apache-2.0
// How does `kiln` start and end?
#include <csignal>

#include "cli/app.h"

int main(int argc, char** argv) {
  // A file that grows beyond ulimit -f is then an error of write(), which has a message, and not
  // the end.
  std::signal(SIGXFSZ, SIG_IGN);
  return kiln::cli::run_command_line(argc, argv);
}
