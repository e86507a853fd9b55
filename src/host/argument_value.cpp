// SPDX-License-Identifier: Apache-2.0
#include "host/argument_value.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "host/dtype.h"

namespace kiln::host {
namespace {

// How far a text is from the type it is taken for. A text that reads as a number goes to an int
// before a float, to either before a string.
enum Cost { kExact = 0, kIntAsFloat = 1, kNumberAsBool = 2, kOneAsList = 2, kAsString = 3 };

Error not_a(std::string_view text, const KilnParameter& parameter, std::string fix = {}) {
  return unfit(fmt::format("'{}' expects {}, got '{}'", parameter.name, type_name(parameter), text),
               std::move(fix));
}

// "[a, b]" gives "a, b"; false when there are no brackets.
bool strip_brackets(std::string_view& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  text = text::trim(text.substr(1, text.size() - 2));
  return true;
}

// A tensor begins with a letter or a path: a comma before a digit or a sign is one of its own.
std::vector<std::string_view> split_tensors(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : 'x';
    if (text[at] != ',' || (next >= '0' && next <= '9') || next == '-') continue;
    parts.push_back(text::trim(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  if (!text.empty()) parts.push_back(text::trim(text.substr(begin)));
  return parts;
}

Result<Fit> parse_tensor(std::string_view text, const KilnParameter& parameter) {
  if (!looks_like_tensor(text)) {
    if (parse_float(text))
      return not_a(text, parameter,
                   fmt::format("write full={}:f32:SHAPE for a tensor of that number", text));
    return not_a(text, parameter, tensor_fix(text));
  }
  Fit fit;
  TRY(TensorSpec spec, parse_tensor_spec(text));
  fit.argument.tensors.push_back(std::move(spec));
  return fit;
}

Result<Fit> parse_tensor_list(std::string_view text, const KilnParameter& parameter) {
  Fit fit;
  if (!strip_brackets(text)) {
    if (!looks_like_tensor(text)) return not_a(text, parameter, "write [randn:f32:4,ones:f32:4]");
    fit.cost = kOneAsList;
  }
  for (std::string_view part : split_tensors(text)) {
    TRY(TensorSpec spec, parse_tensor_spec(part));
    fit.argument.tensors.push_back(std::move(spec));
  }
  return fit;
}

// Parses the parts of a list with `parse`, which gives an optional.
template <class T, class Parse>
Result<int> parse_list(std::string_view text, const KilnParameter& parameter, std::vector<T>& to,
                       Parse parse) {
  const bool brackets = strip_brackets(text);
  if (text.empty() && brackets) return int{kExact};
  for (std::string_view part : text::split(text, ',')) {
    const auto value = parse(text::trim(part));
    if (!value) return not_a(part, parameter, "write a list as [1,2,3]");
    to.push_back(*value);
  }
  return int{brackets || to.size() > 1 ? kExact : kOneAsList};
}

Result<Fit> parse_bool(std::string_view text, const KilnParameter& parameter) {
  Fit fit;
  const bool digit = text == "1" || text == "0";
  if (text == "true" || text == "True" || text == "1") {
    fit.argument.scalar.integer = 1;
  } else if (text != "false" && text != "False" && text != "0") {
    return not_a(text, parameter, "write true or false");
  }
  fit.cost = digit ? kNumberAsBool : kExact;
  return fit;
}

Fit parse_string(std::string_view text) {
  Fit fit;
  fit.cost = kAsString;
  if (text.size() >= 2 && text.front() == text.back() &&
      (text.front() == '"' || text.front() == '\'')) {
    text = text.substr(1, text.size() - 2);
    fit.cost = kExact;
  }
  fit.argument.scalar.string = text;
  return fit;
}

// The parameter's type decides, not the look of the text: `1` is an int, a float or a bool as the
// op declares it. How far the text had to be bent is the cost by which overloads are chosen.
Result<Fit> parse_by_type(std::string_view text, const KilnParameter& parameter) {
  Fit fit;
  Scalar& scalar = fit.argument.scalar;
  switch (parameter.type) {
    case KILN_TYPE_TENSOR:
      return parse_tensor(text, parameter);
    case KILN_TYPE_TENSOR_LIST:
      return parse_tensor_list(text, parameter);
    case KILN_TYPE_BOOL:
      return parse_bool(text, parameter);
    case KILN_TYPE_STR:
      return parse_string(text);
    case KILN_TYPE_INT: {
      const auto value = parse_integer(text);
      if (!value) return not_a(text, parameter);
      scalar.integer = *value;
      return fit;
    }
    case KILN_TYPE_FLOAT: {
      const auto value = parse_float(text);
      if (!value) return not_a(text, parameter);
      scalar.number = *value;
      fit.cost = parse_integer(text) ? kIntAsFloat : kExact;
      return fit;
    }
    case KILN_TYPE_DTYPE: {
      const DType* type = find_dtype(text);
      if (!type) return not_a(text, parameter, "dtypes: " + dtype_names());
      scalar.integer = type->code;
      return fit;
    }
    case KILN_TYPE_DEVICE: {
      const Result<Device> device = parse_device(text);
      if (!device) return not_a(text, parameter, "a device is cpu, cuda or cuda:N");
      scalar.device = *device;
      return fit;
    }
    case KILN_TYPE_INT_LIST: {
      TRY(fit.cost, parse_list(text, parameter, scalar.integers, parse_integer));
      return fit;
    }
    case KILN_TYPE_FLOAT_LIST: {
      TRY(fit.cost, parse_list(text, parameter, scalar.numbers, parse_float));
      return fit;
    }
    default:
      return unfit(fmt::format("'{}' has type number {}, which this kiln does not support",
                               parameter.name, parameter.type),
                   "build the library again with this kiln");
  }
}

}  // namespace

size_t keyword_end(std::string_view text) {
  const size_t equals = text.find('=');
  const bool is_keyword =
      equals != std::string_view::npos && text::is_identifier(text.substr(0, equals));
  return is_keyword ? equals : std::string_view::npos;
}

Result<Argument> parse_untyped(std::string_view text) {
  if (text == "none" || text == "None") return Argument{};
  const auto as = [&](KilnType type) {
    KilnParameter parameter{};
    parameter.name = "a value";
    parameter.type = type;
    return parse_value(text, parameter);
  };
  for (const KilnType type :
       {KILN_TYPE_BOOL, KILN_TYPE_INT, KILN_TYPE_FLOAT, KILN_TYPE_INT_LIST, KILN_TYPE_FLOAT_LIST})
    if (Result<Fit> fit = as(type); fit && fit->cost == kExact) return std::move(fit->argument);
  const bool is_list = text.starts_with('[') && text.ends_with(']');
  TRY(Fit fit, as(looks_like_tensor(text) ? KILN_TYPE_TENSOR
                  : is_list               ? KILN_TYPE_TENSOR_LIST
                                          : KILN_TYPE_STR));
  return std::move(fit.argument);
}

Result<Fit> parse_value(std::string_view text, const KilnParameter& parameter) {
  if (text == "none" || text == "None") {
    if (parameter.flags & KILN_PARAMETER_OPTIONAL) return Fit{};
    if (parameter.type != KILN_TYPE_STR)
      return unfit(fmt::format("'{}' is not optional", parameter.name));
  }
  TRY(Fit fit, parse_by_type(text, parameter));
  fit.argument.scalar.type = parameter.type;
  return fit;
}

}  // namespace kiln::host
