// SPDX-License-Identifier: Apache-2.0
#include "host/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "host/argument_value.h"
#include "host/library.h"

namespace kiln::host {
namespace {

struct Candidate {
  BoundCall call;
  int cost = 0;
};

std::span<const KilnParameter> parameters_of(const KilnOpInfo& op) {
  return {op.parameters, op.parameter_count};
}

const KilnParameter* find_parameter(const KilnOpInfo& op, std::string_view name) {
  for (const KilnParameter& parameter : parameters_of(op))
    if (name == parameter.name) return &parameter;
  return nullptr;
}

// "valu=3" was likely meant as a keyword.
bool is_unknown_keyword(std::string_view text) {
  return keyword_end(text) != std::string_view::npos && !looks_like_tensor(text);
}

// One letter is near to any other: then all names are better than a guess.
std::string keyword_fix(const KilnOpInfo& op, std::string_view text) {
  const std::string_view word = text.substr(0, keyword_end(text));
  std::vector<std::string> names;
  for (const KilnParameter& parameter : parameters_of(op)) names.emplace_back(parameter.name);
  if (const auto near = word.size() > 1 ? text::closest(word, names) : std::nullopt)
    return fmt::format("did you mean '{}'?", *near);
  return names.empty() ? "it takes no arguments" : "its parameters: " + text::join(names, ", ");
}

std::string keyword_hint(const KilnOpInfo& op, std::string_view text) {
  if (!is_unknown_keyword(text)) return {};
  return fmt::format("unknown parameter '{}'; {}", text.substr(0, keyword_end(text)),
                     keyword_fix(op, text));
}

// Which text goes to which parameter: an index into texts and where its value begins, by parameter.
struct Place {
  size_t text = 0;
  size_t value_begin = 0;
};

Result<std::vector<std::optional<Place>>> place_texts(const KilnOpInfo& op,
                                                      std::span<const std::string> texts) {
  std::vector<std::optional<Place>> places(op.parameter_count);
  size_t positional = 0, positional_count = 0;
  for (const KilnParameter& parameter : parameters_of(op))
    positional_count += !(parameter.flags & KILN_PARAMETER_KEYWORD_ONLY);
  bool keyword_seen = false;
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t end = keyword_end(texts[i]);
    const KilnParameter* named =
        end == std::string::npos ? nullptr
                                 : find_parameter(op, std::string_view(texts[i]).substr(0, end));
    if (named) {
      std::optional<Place>& place = places[static_cast<size_t>(named - op.parameters)];
      if (place)
        return unfit(fmt::format("'{}' is given twice", named->name), "leave out one of them");
      place = Place{i, end + 1};
      keyword_seen = true;
      continue;
    }
    if (keyword_seen && is_unknown_keyword(texts[i]))
      return unfit(fmt::format("unknown parameter '{}'", texts[i].substr(0, end)),
                   keyword_fix(op, texts[i]));
    if (keyword_seen)
      return unfit(fmt::format("positional argument '{}' follows a named one", texts[i]),
                   keyword_hint(op, texts[i]));
    // Keyword-only parameters come last in a schema.
    if (positional >= positional_count)
      return unfit(fmt::format("it takes {} positional argument{}; '{}' is one too many",
                               positional_count, positional_count == 1 ? "" : "s", texts[i]),
                   is_unknown_keyword(texts[i]) ? keyword_hint(op, texts[i]) : "leave it out");
    places[positional++] = Place{i, 0};
  }
  return places;
}

Result<Candidate> fit_op(const KilnOpInfo& op, std::span<const std::string> texts) {
  TRY(const auto places, place_texts(op, texts));
  Candidate candidate;
  for (size_t i = 0; i < op.parameter_count; ++i) {
    const KilnParameter& parameter = op.parameters[i];
    Argument argument;
    if (places[i]) {
      const std::string_view text = texts[places[i]->text];
      Result<Fit> fit = parse_value(text.substr(places[i]->value_begin), parameter);
      if (!fit) {
        Error error = std::move(fit.error());
        if (!error.what.empty())
          error.why = error.what + ": " + error.why;  // of the tensor's own grammar
        if (const std::string hint = keyword_hint(op, text);
            places[i]->value_begin == 0 && !hint.empty())
          error.fix = hint;
        return error;
      }
      argument = std::move(fit->argument);
      candidate.cost += fit->cost;
    } else if (parameter.flags & KILN_PARAMETER_HAS_DEFAULT) {
      argument.is_default = true;
      argument.scalar.type = parameter.default_value.type;
    } else {
      return unfit(
          fmt::format("'{}' is missing; it expects {}", parameter.name, type_name(parameter)),
          parameter.flags & KILN_PARAMETER_OPTIONAL
              ? fmt::format("write {}=none to leave it out", parameter.name)
              : fmt::format("pass it in its place, or as {}=VALUE", parameter.name));
    }
    candidate.call.arguments.push_back(std::move(argument));
  }
  return candidate;
}

Error unknown_op(std::span<const KilnOpInfo> ops, std::string_view name) {
  std::vector<std::string> names;
  for (const KilnOpInfo& op : ops) names.push_back(full_name(op));
  const auto near = text::closest(name, names);
  return {Fault::Usage, fmt::format("no op '{}' in the library", name),
          names.empty() ? "it has none" : "it has " + text::join(names, ", "),
          near            ? "did you mean " + *near + "?"
          : names.empty() ? "make its functions ops: KILN_OP(name, \"a, b\"); see kiln docs op"
                          : "name one of these"};
}

bool is_named(const KilnOpInfo& op, std::string_view name) {
  return name == op.name || (*op.overload && name == full_name(op));
}

}  // namespace

// What the parameters make of the texts decides between overloads: the cheapest fit wins, equal
// ones are refused rather than guessed between.
Result<BoundCall> bind_call(std::span<const KilnOpInfo> ops, std::string_view name,
                            std::span<const std::string> texts) {
  std::vector<uint32_t> named;
  for (uint32_t i = 0; i < ops.size(); ++i)
    if (is_named(ops[i], name)) named.push_back(i);
  if (named.empty()) return unknown_op(ops, name);

  std::optional<Candidate> best;
  std::vector<std::string> refusals, equals;
  std::optional<Error> last;
  for (uint32_t index : named) {
    Result<Candidate> candidate = fit_op(ops[index], texts);
    if (!candidate) {
      last = std::move(candidate.error());
      refusals.push_back(fmt::format("{}: {}", ops[index].schema, last->why));
      continue;
    }
    candidate->call.op = index;
    if (!best || candidate->cost < best->cost) {
      equals.clear();
      best = std::move(*candidate);
      equals.push_back(full_name(ops[index]));
    } else if (candidate->cost == best->cost) {
      equals.push_back(full_name(ops[index]));
    }
  }
  if (best && equals.size() == 1) return std::move(best->call);
  if (best)
    return Error{Fault::Usage, fmt::format("several overloads of {} match", name),
                 text::join(equals, ", "), "name the overload: " + equals.front()};
  if (named.size() == 1) {
    last->what = fmt::format("cannot call {}", ops[named[0]].schema);
    return std::move(*last);
  }
  return Error{Fault::Usage, fmt::format("no overload of {} matches", name),
               text::join(refusals, "; "),
               fmt::format("pass arguments that match one of them: {}", ops[named[0]].schema)};
}

std::string type_name(const KilnParameter& parameter) {
  static constexpr const char* kNames[] = {"None",  "Tensor", "int",      "float", "bool",   "str",
                                           "dtype", "Device", "Tensor[]", "int[]", "float[]"};
  std::string name = parameter.type < std::size(kNames) ? kNames[parameter.type] : "?";
  if (parameter.flags & KILN_PARAMETER_OPTIONAL) name += "?";
  return name;
}

std::string scalar_text(const Scalar& scalar) {
  switch (scalar.type) {
    case KILN_TYPE_NONE:
      return "none";
    case KILN_TYPE_INT:
      return std::to_string(scalar.integer);
    case KILN_TYPE_FLOAT:
      return number_text(scalar.number, 0);
    case KILN_TYPE_BOOL:
      return scalar.integer ? "true" : "false";
    case KILN_TYPE_STR:
      return "\"" + scalar.string + "\"";
    case KILN_TYPE_DTYPE:
      return dtype_name(static_cast<int32_t>(scalar.integer));
    case KILN_TYPE_DEVICE:
      return device_text(scalar.device);
    case KILN_TYPE_INT_LIST:
      return fmt::format("[{}]", fmt::join(scalar.integers, ", "));
    case KILN_TYPE_FLOAT_LIST: {
      std::vector<std::string> parts;
      for (double number : scalar.numbers) parts.push_back(number_text(number, 0));
      return "[" + text::join(parts, ", ") + "]";
    }
    default:
      return fmt::format("a value of type number {}", scalar.type);
  }
}

}  // namespace kiln::host
