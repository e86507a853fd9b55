// SPDX-License-Identifier: Apache-2.0
#include "measure/argument_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "host/argument_value.h"

namespace kiln::measure {
namespace {

// The shortest text that reads as the same number.
std::string exact_text(double number) { return fmt::format("{}", number); }

Json tensor_texts(const host::Argument& argument) {
  Json texts = Json::array();
  for (const host::TensorSpec& spec : argument.tensors) texts.push_back(spec.text);
  return texts;
}

Json named(const std::string& name, const host::Argument& argument) {
  Json json = argument_json(argument);
  json["name"] = name;
  return json;
}

}  // namespace

Json argument_json(const host::Argument& argument) {
  const host::Scalar& scalar = argument.scalar;
  const auto as = [](const char* kind, Json value) {
    return Json{{"kind", kind}, {"value", std::move(value)}};
  };
  switch (scalar.type) {
    case KILN_TYPE_TENSOR:
      return as("tensor", argument.tensors.front().text);
    case KILN_TYPE_TENSOR_LIST:
      return as("tensors", tensor_texts(argument));
    case KILN_TYPE_INT:
      return as("int", scalar.integer);
    case KILN_TYPE_FLOAT:
      return as("float", exact_text(scalar.number));
    case KILN_TYPE_BOOL:
      return as("bool", scalar.integer != 0);
    case KILN_TYPE_STR:
      return as("str", scalar.string);
    case KILN_TYPE_DTYPE:
      return as("dtype", scalar.integer);
    case KILN_TYPE_DEVICE:
      return as("device", host::device_text(scalar.device));
    case KILN_TYPE_INT_LIST:
      return as("ints", scalar.integers);
    case KILN_TYPE_FLOAT_LIST: {
      Json texts = Json::array();
      for (const double number : scalar.numbers) texts.push_back(exact_text(number));
      return as("floats", std::move(texts));
    }
    default:
      return as("none", nullptr);
  }
}

Result<Json> bound_arguments(std::span<const KilnOpInfo> ops, const std::string& name,
                             const std::vector<std::string>& texts) {
  TRY(const host::BoundCall call, host::bind_call(ops, name, texts));
  const std::span<const KilnParameter> parameters(ops[call.op].parameters, call.arguments.size());
  const auto is_keyword = [&](const std::string& text) {
    const size_t end = host::keyword_end(text);
    return end != std::string::npos &&
           std::any_of(parameters.begin(), parameters.end(), [&](const KilnParameter& parameter) {
             return text.substr(0, end) == parameter.name;
           });
  };
  // They come first: a text by position after one with a name is refused.
  const auto by_position =
      static_cast<size_t>(std::count_if(texts.begin(), texts.end(), std::not_fn(is_keyword)));
  Json arguments = Json::array();
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (!call.arguments[i].is_default)
      arguments.push_back(named(i < by_position ? "" : parameters[i].name, call.arguments[i]));
  return arguments;
}

Result<Json> free_arguments(const std::vector<std::string>& texts) {
  Json arguments = Json::array();
  for (const std::string& text : texts) {
    const size_t end = host::keyword_end(text);
    // full=1:f32:4 is a tensor, and not a parameter of that name.
    const bool is_named = end != std::string::npos && !host::looks_like_tensor(text);
    TRY(const host::Argument argument, host::parse_untyped(is_named ? text.substr(end + 1) : text));
    arguments.push_back(named(is_named ? text.substr(0, end) : "", argument));
  }
  return arguments;
}

}  // namespace kiln::measure
