// SPDX-License-Identifier: Apache-2.0
#include "build/run/op_mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/text.h"
#include "build/run/op_names.h"

namespace kiln::build {

namespace {

// Both compilers' words for a mistake, and ours. {} is the name that the message has in quotes.
struct Row {
  std::string_view sign;
  std::string_view why;
  std::string_view fix;
};

constexpr Row kRows[] = {
    {"which instance of overloaded function", "KILN_OP: the function '{}' is overloaded",
     "give each function its own name; overloads of one op are KILN_OP(add_one, \"add.One(Tensor a)"
     " -> Tensor\")"},
    {"unresolved overloaded function", "KILN_OP: the function is overloaded or a template",
     "give each function its own name; a template needs a plain function that calls it"},
    {"which instance of function template", "KILN_OP: '{}' is a template",
     "register a plain function that calls it; KILN_DISPATCH chooses the type"},
    {"has no member", "KILN_OP has no member '{}'",
     ".fake(\"rule\") and .doc(\"text\") can follow KILN_OP(...)"},
};

// The text between the last pair of quotes, of either compiler.
std::string last_quoted(std::string_view text) {
  for (const auto& [open, close] :
       {std::pair<std::string_view, std::string_view>{"‘", "’"}, {"\"", "\""}, {"'", "'"}}) {
    const size_t end = text.rfind(close);
    if (end == std::string_view::npos || end == 0) continue;
    const size_t begin = text.rfind(open, end - 1);
    if (begin == std::string_view::npos) continue;
    return std::string(text.substr(begin + open.size(), end - begin - open.size()));
  }
  return "";
}

// kiln's assertions: nvcc writes `static assertion failed with "TEXT"`, gcc `static assertion
// failed: TEXT`.
std::string assertion(std::string_view message) {
  constexpr std::string_view kFailed = "static assertion failed";
  if (!message.starts_with(kFailed)) return "";
  message = text::trim(message.substr(kFailed.size()));
  for (std::string_view lead : {"with", ":", "\""})
    if (message.starts_with(lead)) message = text::trim(message.substr(lead.size()));
  if (message.ends_with('"')) message.remove_suffix(1);
  return text::replace_all(message, "\\\"", "\"");
}

// "void kiln::detail::the_fake_rule_is_empty()": the names of such functions are messages.
std::string spoken_function(std::string_view message) {
  constexpr std::string_view kSign = "kiln::detail::the_";
  const size_t at = message.find(kSign);
  if (at == std::string_view::npos || message.find("constexpr") == std::string_view::npos)
    return "";
  const std::string_view name = message.substr(at + kSign.size() - 4);
  return text::replace_all(name.substr(0, name.find('(')), "_", " ");
}

// The rule of a FakeRule<...>((const char*)"like(x)") in the compiler's trail; "" without one.
std::string fake_rule_in(std::span<const std::string_view> trail) {
  for (std::string_view line : trail) {
    const size_t at = line.find("FakeRule<");
    const size_t open = at == line.npos ? at : line.find('"', at);
    const size_t close = open == line.npos ? open : line.find('"', open + 1);
    if (close != line.npos) return std::string(line.substr(open + 1, close - open - 1));
  }
  return "";
}

// The word of this number, from 1, as kiln/fake_rule.h counts them; "" if there are fewer.
std::string word_of(std::string_view rule, int64_t number) {
  for (size_t at = 0; at < rule.size(); ++at) {
    if (!is_name_part(rule[at])) continue;
    const size_t first = at;
    while (at < rule.size() && is_name_part(rule[at])) ++at;
    if (--number == 0) return std::string(rule.substr(first, at - first));
  }
  return "";
}

// A word that a fake rule cannot have. The compiler says which by its number: "[with int Word =
// 3]".
std::optional<OpMistake> unknown_rule_word(std::string_view message,
                                           std::span<const std::string_view> trail) {
  if (message.find("the_fake_rule_has_an_unknown_word") == std::string_view::npos)
    return std::nullopt;
  constexpr std::string_view kSign = "Word = ";
  const size_t at = message.find(kSign);
  const std::string_view digits = at == message.npos ? "" : message.substr(at + kSign.size());
  const auto number = text::to_int(digits.substr(0, digits.find_first_of("];,")));
  const std::string rule = fake_rule_in(trail), word = word_of(rule, number.value_or(0));
  return OpMistake{
      word.empty() ? "KILN_OP: unknown word in the fake rule"
                   : fmt::format("KILN_OP: unknown word '{}' in the fake rule \"{}\"", word, rule),
      "use a function such as like, a dtype such as f32, or a parameter of the op; "
      "kiln docs fake-rules has the grammar"};
}

// The type that an assertion is about: nvcc "kiln::detail::Argument<T> [with T=Options]", gcc
// "kiln::detail::Argument<Options>".
std::string subject(std::span<const std::string_view> trail) {
  for (std::string_view line : trail) {
    if (line.find("kiln::detail::") == std::string_view::npos) continue;
    const size_t with = line.find("[with ");
    if (with != std::string_view::npos) {
      std::string_view value = line.substr(with + 6);
      value = value.substr(0, value.find(']'));
      const size_t equal = value.find('=');
      if (value.starts_with("Parameter=")) {
        value = value.substr(equal + 1);
        return fmt::format("parameter {}", value.substr(0, value.find(',')));
      }
      std::string type(value.substr(equal + 1));
      if (type.starts_with("lambda")) return "a lambda";
      return line.find("Argument<T *>") == std::string_view::npos ? type : type + " *";
    }
    for (std::string_view name :
         {"Argument<", "Returned<", "Signature<", "TypeOfParameterFits<", "DefaultFits<"}) {
      const size_t at = line.find(name);
      const size_t end = line.find(">’", at == std::string_view::npos ? 0 : at);
      if (at == std::string_view::npos || end == std::string_view::npos) continue;
      std::string_view value = line.substr(at + name.size(), end - at - name.size());
      if (name.ends_with("Fits<"))
        return fmt::format("parameter {}", value.substr(0, value.find(',')));
      return std::string(value);
    }
  }
  return "";
}

// kiln::detail::OpName<'a', 'd', 'd'>, or <(char)97, (char)100, ...>: "add".
std::string name_in_type(std::string_view line) {
  const size_t at = line.find("OpName<");
  if (at == std::string_view::npos) return "";
  const std::string_view list = line.substr(at + 7, line.find('>', at) - at - 7);
  std::string name;
  for (std::string_view item : text::split(list, ',')) {
    item = text::trim(item);
    if (item.size() == 3 && item.front() == '\'') name += item[1];
    if (const auto code = text::to_int(item.starts_with("(char)") ? item.substr(6) : ""))
      name += static_cast<char>(*code);
  }
  return name;
}

// Two ops of one name define this function twice: kiln/op_name.h.
std::optional<OpMistake> name_taken(std::string_view message,
                                    std::span<const std::string_view> trail) {
  if (message.find("an_op_of_this_name_exists_already") == std::string_view::npos)
    return std::nullopt;
  std::string name = name_in_type(message);
  for (size_t i = 0; name.empty() && i < trail.size(); ++i) name = name_in_type(trail[i]);
  return OpMistake{fmt::format("KILN_OP: two ops are named '{}' in this file", name),
                   fmt::format("remove one, or give it its own name: KILN_OP(function, "
                               "\"{}.Other(Tensor a) -> Tensor\")",
                               name.substr(0, name.find('.')))};
}

// Is there more than one function of the name that KILN_OP was given?
bool finds_several(std::string_view message, std::span<const std::string_view> trail) {
  for (std::string_view sign :
       {"which instance of overloaded function", "unresolved overloaded function"})
    if (message.find(sign) != message.npos) return true;
  // Next to a function with "...", as printf, nvcc has no words for it.
  return message.find("kiln::detail::DeviceOp") != message.npos &&
         std::ranges::any_of(
             trail, [](std::string_view line) { return line.find("<unknown-type>") != line.npos; });
}

OpMistake undeclared(const std::string& name, const std::string& function) {
  if (name == function)
    return {fmt::format("KILN_OP: no function '{}' is declared above this line", name),
            "check its name, and put KILN_OP below the function"};
  return {
      fmt::format("KILN_OP({}): '{}' is not in quotes", function, name),
      fmt::format("the names of the parameters are one text: KILN_OP({}, \"{}\")", function, name)};
}

// "What is wrong. How to fix it": how the assertions of kiln's headers are written.
OpMistake in_two(const std::string& text, const std::string& about) {
  const size_t stop = text.find(". ");
  OpMistake mistake{text.substr(0, stop), stop == std::string::npos ? "" : text.substr(stop + 2)};
  if (mistake.fix.size() > 1 && mistake.fix[1] >= 'a' && mistake.fix[1] <= 'z')
    mistake.fix[0] = text::lower(mistake.fix.substr(0, 1))[0];
  if (!about.empty()) mistake.why += fmt::format(" ({})", about);
  return mistake;
}

}  // namespace

OpMistake op_mistake(std::string_view message, std::span<const std::string_view> trail,
                     std::string_view written, std::span<const std::string> source) {
  if (const std::string text = assertion(message); !text.empty())
    return in_two(text, text.starts_with("KILN_OP:") ? subject(trail) : "");
  if (const auto mistake = unknown_rule_word(message, trail)) return *mistake;
  if (const std::string text = spoken_function(message); !text.empty())
    return {"KILN_OP: " + text,
            "kiln docs fake-rules has the grammar; the names in a rule are those of the text given "
            "to KILN_OP"};
  if (const auto mistake = name_taken(message, trail)) return *mistake;
  const std::string function = registered_name(written);
  if (function.empty()) return {std::string(message), ""};
  if (message.ends_with("is undefined") || message.find("was not declared") != message.npos)
    return undeclared(last_quoted(message), function);
  if (finds_several(message, trail) && count_functions(source, function) == 1)
    return name_of_a_header(function);
  for (const Row& row : kRows)
    if (message.find(row.sign) != std::string_view::npos)
      return {fmt::format(fmt::runtime(row.why), last_quoted(message)), std::string(row.fix)};
  return {std::string(message), ""};
}

bool is_consequence(std::string_view message) {
  return message.find("incomplete type") != std::string_view::npos ||
         message.find("expected an expression") != std::string_view::npos ||
         message.find("is undefined") != std::string_view::npos ||
         message.find("was not declared") != std::string_view::npos;
}

}  // namespace kiln::build
