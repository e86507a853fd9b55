// SPDX-License-Identifier: Apache-2.0
// Who reads what kiln prints: a person at a terminal, or a pipe?
#include "sys/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace kiln::sys {

namespace {

bool write_fd(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool wants_color(const Environment& env, ColorChoice choice, bool is_terminal) {
  if (choice != ColorChoice::Auto) return choice == ColorChoice::Always;
  if (env.get("NO_COLOR")) return false;
  if (auto force = env.get("CLICOLOR_FORCE"); force && *force != "0") return true;
  return is_terminal && env.get("TERM").value_or("") != "dumb";
}

}  // namespace

Terminal look_at_terminal(const Environment& env, ColorChoice choice) {
  Terminal out;
  out.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  out.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  out.color_out = wants_color(env, choice, out.out_is_terminal);
  out.color_err = wants_color(env, choice, out.err_is_terminal);
  winsize size{};
  if (out.err_is_terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    out.columns = size.ws_col;
  return out;
}

bool write_out(std::string_view text) { return write_fd(STDOUT_FILENO, text); }
void write_err(std::string_view text) { write_fd(STDERR_FILENO, text); }

}  // namespace kiln::sys
