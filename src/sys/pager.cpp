// SPDX-License-Identifier: Apache-2.0
// When does a text go through a pager?
#include "sys/pager.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "sys/files.h"
#include "sys/printable.h"

namespace kiln::sys {
namespace {

int terminal_rows() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

}  // namespace

void write_paged(std::string text, const Terminal& terminal, const Environment& env) {
  text = printable(std::move(text));
  auto lines = std::count(text.begin(), text.end(), '\n');
  std::string pager = env.get("PAGER").value_or("less -FRX");
  std::string program = pager.substr(0, pager.find(' '));
  if (!terminal.out_is_terminal || lines < terminal_rows() || env.get("TERM") == "dumb" ||
      find_program(real_files(), program, env.get("PATH").value_or("/usr/bin:/bin")).empty()) {
    write_out(text);
    return;
  }
  // A reader that quits early is not a fault.
  auto before = std::signal(SIGPIPE, SIG_IGN);
  FILE* pipe = popen(pager.c_str(), "w");
  if (pipe) {
    std::fwrite(text.data(), 1, text.size(), pipe);
    pclose(pipe);
  } else {
    write_out(text);
  }
  std::signal(SIGPIPE, before);
}

}  // namespace kiln::sys
