// SPDX-License-Identifier: Apache-2.0
// What does one text mean as a value of a parameter, and how well does it fit?
#pragma once

#include <kiln/abi.h>

#include <string_view>

#include "base/result.h"
#include "host/arguments.h"

namespace kiln::host {

struct Fit {
  Argument argument;
  int cost = 0;  // 0: the text is written as this type is; more: it had to be taken as it
};

// The error's why says what the parameter wants; its what is left to the caller.
Result<Fit> parse_value(std::string_view text, const KilnParameter& parameter);

}  // namespace kiln::host
