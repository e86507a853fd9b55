// SPDX-License-Identifier: Apache-2.0
// What does "3 * n * size(t)" come to? Formulas of bytes and flops, and the axes of a sweep.
//
//   sum     = product (("+" | "-") product)*
//   product = power (("*" | "/") power)*
//   power   = ["-"] atom [("^" | "**") power]
//   atom    = NUMBER | NAME | "size(" NAME ")" | "(" sum ")"
//
// A NAME is an axis whose value is a number (2^24 counts as one); size() wants an axis whose value
// is a dtype.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kiln::measure {

using Values =
    std::map<std::string, std::string, std::less<>>;  // an axis and its value, as it was written

Result<double> evaluate(std::string_view formula, const Values& values);

// "{n}" in `text` becomes the value of axis n. Fails for a name that is not an axis.
Result<std::string> substitute(std::string_view text, const Values& values);

struct Axis {
  std::string name;
  std::vector<std::string> values;
  bool is_define = false;  // a macro of the build, -DNAME=VALUE
};
// "n=2^20,2^24", "t=f32,bf16"; "D:BLOCK=128,256" is a define, as it was written before --vary.
Result<Axis> parse_axis(std::string_view text);
// "BLOCK=128,256": a define.
Result<Axis> parse_vary(std::string_view text);

// Every combination, the last axis fastest. One empty combination without axes.
std::vector<Values> combinations(const std::vector<Axis>& axes);

}  // namespace kiln::measure
