// SPDX-License-Identifier: Apache-2.0
// What does one text mean as a value of a parameter, and how well does it fit?
#pragma once

#include <kiln/abi.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "host/arguments.h"

namespace kiln::host {

struct Fit {
  Argument argument;
  int cost = 0;  // 0: the text is written as this type is; more: it had to be taken as it
};

// The error's why says what the parameter wants; its what is left to the caller.
Result<Fit> parse_value(std::string_view text, const KilnParameter& parameter);

// What a text means where no parameter says its type, as for a function of Python: the first of
// none, true or false, an integer, a float, a list of numbers, a tensor, a list of tensors whose
// own writing it is; else a text.
Result<Argument> parse_untyped(std::string_view text);

// An error whose what the caller adds.
inline Error unfit(std::string why, std::string fix = {}) {
  return {Fault::Usage, {}, std::move(why), std::move(fix)};
}

// Where the name of NAME=VALUE ends; npos when the text has no such form.
size_t keyword_end(std::string_view text);

}  // namespace kiln::host
