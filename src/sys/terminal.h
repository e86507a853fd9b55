// SPDX-License-Identifier: Apache-2.0
// Who reads what kiln prints: a person at a terminal, or a pipe?
#pragma once

#include <string_view>

#include "sys/env.h"

namespace kiln::sys {

enum class ColorChoice { Auto, Always, Never };

struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool color_out = false;
  bool color_err = false;
  int columns = 80;
};

// NO_COLOR (no-color.org), CLICOLOR_FORCE and TERM=dumb are honoured for Auto.
Terminal look_at_terminal(const Environment& env, ColorChoice choice);

// Everything goes out, or the process ends: a reader that went away (SIGPIPE) or a full
// disk. False on the latter.
bool write_out(std::string_view text);
void write_err(std::string_view text);

}  // namespace kiln::sys
