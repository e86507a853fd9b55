// SPDX-License-Identifier: Apache-2.0
// What does a constraint like "BLOCK_M % (16 * WARPS) == 0" say of a configuration?
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kiln::tune {

// Integers, names, + - * / %, comparisons, && || !, parentheses, min(a, b), max(a, b); C's
// precedence. Truth is 1 or 0.
class Expression {
 public:
  // The error's column counts from 1 and is that of `text`.
  static Result<Expression> parse(std::string_view text);

  using Values = std::function<std::optional<int64_t>(std::string_view)>;
  // An error for an unknown name, a division by zero, an overflow.
  Result<int64_t> value(const Values& values) const;

  const std::string& text() const { return text_; }
  // Each once, in the order of the text.
  const std::vector<std::string>& names() const { return names_; }

  struct Node;

 private:
  std::string text_;
  std::vector<std::string> names_;
  std::shared_ptr<const Node> root_;
};

}  // namespace kiln::tune
