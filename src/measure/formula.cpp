// SPDX-License-Identifier: Apache-2.0
#include "measure/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/ascii.h"
#include "base/number.h"
#include "base/text.h"
#include "host/dtype.h"
#include "host/tensor_spec.h"

namespace kiln::measure {
namespace {

constexpr int kDeepest =
    64;  // nested parentheses: a formula is one line, not an attack on the stack

class Parser {
 public:
  Parser(std::string_view text, const Values& values) : text_(text), values_(values) {}

  Result<double> whole() {
    TRY(const double value, sum());
    skip();
    if (at_ != text_.size()) return wrong(fmt::format("unexpected '{}'", text_.substr(at_)));
    if (!std::isfinite(value)) return wrong("it is not a finite number");
    return value;
  }

 private:
  void skip() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  Error wrong(std::string why) const {
    return {Fault::Usage, fmt::format("cannot read the formula '{}'", text_), std::move(why),
            "numbers, axes, + - * / ^ ( ), size(DTYPE AXIS)"};
  }

  Result<double> sum() {
    TRY(double value, product());
    for (;;) {
      if (take("+")) {
        TRY(const double more, product());
        value += more;
      } else if (take("-")) {
        TRY(const double less, product());
        value -= less;
      } else {
        return value;
      }
    }
  }

  Result<double> product() {
    TRY(double value, power());
    for (;;) {
      if (take("*")) {
        TRY(const double by, power());
        value *= by;
      } else if (take("/")) {
        TRY(const double by, power());
        value /= by;
      } else {
        return value;
      }
    }
  }

  Result<double> power() {
    if (++depth_ > kDeepest) return wrong("it is nested too deeply");
    if (take("-")) {
      TRY(const double value, power());
      --depth_;
      return -value;
    }
    TRY(const double base, atom());
    if (take("**") || take("^")) {
      TRY(const double exponent, power());
      --depth_;
      return std::pow(base, exponent);
    }
    --depth_;
    return base;
  }

  Result<double> atom() {
    if (take("(")) {
      TRY(const double value, sum());
      if (!take(")")) return wrong("a ')' is missing");
      return value;
    }
    skip();
    if (at_ == text_.size()) return wrong("it ends too early");
    if (is_digit(text_[at_]) || text_[at_] == '.') return number();
    std::string name;
    while (at_ < text_.size() && is_name_part(text_[at_])) name += text_[at_++];
    if (name.empty()) return wrong(fmt::format("unexpected '{}'", text_.substr(at_)));
    if (name == "size" && take("(")) return size_of();
    return value_of(name);
  }

  Result<double> number() {
    size_t used = 0;
    const double value = leading_number(text_.substr(at_), &used);
    if (used == 0) return wrong("a number is expected");
    at_ += used;
    return value;
  }

  Result<double> size_of() {
    skip();
    std::string name;
    while (at_ < text_.size() && text_[at_] != ')') name += text_[at_++];
    if (!take(")")) return wrong("a ')' is missing");
    const auto found = values_.find(std::string(text::trim(name)));
    const std::string dtype =
        found == values_.end() ? std::string(text::trim(name)) : found->second;
    const host::DType* type = host::find_dtype(dtype);
    if (!type) return wrong(fmt::format("unknown dtype '{}'", dtype));
    return static_cast<double>(type->bytes);
  }

  Result<double> value_of(const std::string& name) {
    const auto found = values_.find(name);
    if (found == values_.end()) return wrong(fmt::format("there is no axis '{}'", name));
    if (const auto integer = host::parse_integer(found->second))
      return static_cast<double>(*integer);
    if (const auto real = host::parse_float(found->second)) return *real;
    return wrong(fmt::format("the axis {} is '{}', which is not a number", name, found->second));
  }

  std::string_view text_;
  const Values& values_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<double> evaluate(std::string_view formula, const Values& values) {
  return Parser(formula, values).whole();
}

Result<std::string> substitute(std::string_view text, const Values& values) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('{', at);
    out += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const size_t close = text.find('}', open);
    const std::string name(
        text.substr(open + 1, close == std::string_view::npos ? close : close - open - 1));
    const auto found = values.find(name);
    if (close == std::string_view::npos || found == values.end())
      return Error{Fault::Usage, fmt::format("cannot read '{}'", text),
                   fmt::format("there is no axis '{}'", name),
                   fmt::format("--axis {}=VALUE,VALUE", name)};
    out += found->second;
    at = close + 1;
  }
  return out;
}

namespace {

Result<Axis> parse_values(std::string_view written, bool is_define) {
  const Error wrong = is_define
                          ? Error{Fault::Usage, fmt::format("cannot read --vary {}", written),
                                  "it is not NAME=VALUE,VALUE,...", "--vary BLOCK=128,256"}
                          : Error{Fault::Usage, fmt::format("cannot read the axis '{}'", written),
                                  "an axis is NAME=VALUE,VALUE,...", "--axis n=2^20,2^24"};
  Axis axis;
  axis.is_define = is_define;
  const size_t equal = written.find('=');
  if (equal == std::string_view::npos) return wrong;
  axis.name = std::string(written.substr(0, equal));
  for (std::string_view value : text::split(written.substr(equal + 1), ','))
    axis.values.emplace_back(text::trim(value));
  const bool empty =
      std::any_of(axis.values.begin(), axis.values.end(), [](const auto& v) { return v.empty(); });
  if (!text::is_identifier(axis.name) || empty) return wrong;
  return axis;
}

}  // namespace

Result<Axis> parse_axis(std::string_view written) {
  if (written.starts_with("D:")) return parse_values(written.substr(2), true);
  return parse_values(written, false);
}

Result<Axis> parse_vary(std::string_view written) { return parse_values(written, true); }

std::vector<Values> combinations(const std::vector<Axis>& axes) {
  std::vector<Values> all = {{}};
  for (const Axis& axis : axes) {
    std::vector<Values> next;
    for (const Values& before : all)
      for (const std::string& value : axis.values) {
        next.push_back(before);
        next.back()[axis.name] = value;
      }
    all = std::move(next);
  }
  return all;
}

}  // namespace kiln::measure
