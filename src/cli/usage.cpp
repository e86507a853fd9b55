// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line, why, and what should it be?
#include "cli/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/command.h"

namespace kiln::cli {
namespace {

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command* row : commands()) names.emplace_back(row->name);
  return names;
}

std::string sees_help(const CLI::App& app, const char* what) {
  return fmt::format("{} --help lists {}", full_name(app), what);
}

std::vector<std::string> shown_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one = &app; one; one = one->get_parent())
    for (const CLI::Option* option : one->get_options())
      if (is_shown(*option))
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The name that was meant: a slip, or one that was cut off or drawn out ("benchmark").
std::optional<std::string> meant_by(const std::string& word,
                                    const std::vector<std::string>& names) {
  if (auto near = text::closest(word, names)) return near;
  constexpr size_t kEnough = 3;
  for (const std::string& name : names)
    if (std::min(word.size(), name.size()) >= kEnough &&
        (name.starts_with(word) || word.starts_with(name)))
      return name;
  return std::nullopt;
}

// Within a sentence: "A .cu file" is "a .cu file", "GPU architectures" stays.
std::string within_sentence(std::string text) {
  const bool plain = text.size() > 1 && (text[1] == ' ' || (text[1] >= 'a' && text[1] <= 'z'));
  if (plain) text[0] = static_cast<char>(text[0] | 0x20);
  return text;
}

// "a, b and c".
std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i)
    out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return out;
}

const CLI::Option* find(const CLI::App& app, const std::string& name) {
  for (const CLI::App* one = &app; one; one = one->get_parent())
    if (const CLI::Option* found = one->get_option_no_throw(name)) return found;
  return nullptr;
}

// "--arch" or "-o"; CLI11's own comparison copies every name.
bool has_name(const CLI::Option& option, std::string_view name) {
  const bool is_long = name.starts_with("--");
  const auto& names = is_long ? option.get_lnames() : option.get_snames();
  return std::ranges::find(names, name.substr(is_long ? 2 : 1)) != names.end();
}

bool has_option(const CLI::App& app, std::string_view name) {
  return std::ranges::any_of(app.get_options(), [&](const CLI::Option* one) {
    return is_shown(*one) && has_name(*one, name);
  });
}

// Adds "bench", "cache prune": the command and those below it that have the option.
void add_commands_with(const CLI::App& app, const std::string& called, const std::string& name,
                       std::vector<std::string>& out) {
  if (has_option(app, name)) out.push_back(called);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    add_commands_with(*sub, called + " " + sub->get_name(), name, out);
}

// Which commands have an option of this name: the reader may have meant one of those.
std::vector<std::string> commands_with(const std::string& name) {
  std::vector<std::string> out;
  for (const Command* row : commands()) {
    CLI::App app("", name);
    app.disabled();  // looked through, not parsed: see add_build_options
    row->setup(app);
    add_commands_with(app, row->name, name, out);
  }
  return out;
}

// "--arch LIST", "--watch".
std::string with_value(const CLI::Option& option, const std::string& name) {
  const std::string type = option.get_type_name();
  return type.empty() || option.get_items_expected_max() == 0 ? name : name + " " + type;
}

// "--limit SECONDS: kill a call that takes longer".
std::string described(const CLI::Option& option, const std::string& name) {
  return with_value(option, name) + ": " + within_sentence(option.get_description());
}

// What the NAME of a value in the help stands for.
std::string kind_of_value(const std::string& type) {
  if (type == "N" || type == "PID") return "a whole number";
  if (type == "SECONDS") return "a number of seconds";
  if (type == "NUMBER") return "a number";
  if (type == "PERCENT") return "a number of percent";
  return type.empty() ? "another kind of value" : "a value of the kind " + type;
}

// CLI11 names an option before the first colon, as "--limit" or "TARGET".
std::pair<std::string, std::string> named_part(const std::string& text) {
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 2)};
}

Error wrong_value(const CLI::App& app, const std::string& text) {
  // "Could not convert: --limit = abc"
  constexpr std::string_view kHead = "Could not convert: ";
  const std::string tail =
      text.starts_with(kHead) ? text.substr(kHead.size()) : named_part(text).first;
  const size_t equals = tail.find(" = ");
  const std::string name = tail.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : tail.substr(equals + 3);
  const CLI::Option* option = find(app, name);
  const std::string type = option ? option->get_type_name() : "";
  return {Fault::Usage, fmt::format("invalid value '{}' for {}", value, name),
          "it must be " + kind_of_value(type),
          option ? described(*option, name) : sees_help(app, "all options")};
}

Error missing(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return {Fault::Usage, fmt::format("{} needs {}", full_name(app), option->get_name(true)),
            "it is missing: " + within_sentence(option->get_description()), usage_line(app)};
  }
  return {Fault::Usage, fmt::format("{} needs more arguments", full_name(app)),
          "the command line ends too early", usage_line(app)};
}

Error too_many(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  std::vector<std::string> taken;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() && is_shown(*option)) taken.push_back(option->get_name(true));
  return {Fault::Usage, fmt::format("unexpected argument '{}'", words.empty() ? "" : words.front()),
          taken.empty() ? fmt::format("{} takes no arguments, only options", full_name(app))
                        : fmt::format("{} takes {} and no more", full_name(app), listed(taken)),
          usage_line(app)};
}

// Of CLI11's "--a excludes --b": the two names.
std::pair<std::string, std::string> two_names(const std::string& text, std::string_view between) {
  const size_t at = text.find(between);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + between.size())};
}

Error excluded(const CLI::App& app, const std::string& text) {
  const auto [one, other] = two_names(text, " excludes ");
  return {Fault::Usage, fmt::format("{} and {} cannot be used together", one, other),
          fmt::format("{} takes one of them", full_name(app)),
          "leave out one; " + sees_help(app, "its options")};
}

Error alone(const CLI::App& app, const std::string& text) {
  const auto [one, other] = two_names(text, " requires ");
  const CLI::Option* option = find(app, one);
  return {Fault::Usage, fmt::format("{} needs {}", one, other),
          option ? described(*option, one) : "it has no effect without it",
          fmt::format("add {}, or leave out {}", other, one)};
}

const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

}  // namespace

bool is_shown(const CLI::Option& option) { return !option.get_group().empty(); }

std::string full_name(const CLI::App& app) {
  return app.get_parent() ? full_name(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

std::string usage_line(const CLI::App& app) {
  std::string line = full_name(app) + " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || !is_shown(*option)) continue;
    std::string name = option->get_name(true);
    if (option->get_items_expected_max() > 1) name += "...";
    line += option->get_required() ? " " + name : " [" + name + "]";
  }
  if (!app.get_subcommands([](const CLI::App*) { return true; }).empty())
    line += app.get_parent() || app.get_name() != "kiln" ? " [COMMAND]" : " COMMAND";
  return line;
}

Error unknown_command(const std::string& word) {
  const std::vector<std::string> names = command_names();
  Error error{Fault::Usage, fmt::format("kiln has no command '{}'", word),
              "its commands are " + text::join(names, ", "), "kiln --help"};
  if (auto meant = meant_by(word, names)) error.fix = "kiln " + *meant;
  return error;
}

Error unknown_subcommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  const auto meant = meant_by(word, names);
  return {Fault::Usage, fmt::format("{} has no command '{}'", full_name(app), word),
          "its commands are " + text::join(names, ", "),
          meant ? full_name(app) + " " + *meant : full_name(app) + " --help"};
}

Error unknown_option(const CLI::App& app, const std::string& name) {
  Error error{Fault::Usage, fmt::format("{} has no option {}", full_name(app), name),
              "no option has a similar name", sees_help(app, "its options")};
  if (name == "-inf" || name == "-nan") {
    error.why = "a word that starts with - is an option";
    error.fix = fmt::format("write the argument with its name: NAME={}", name);
    return error;
  }
  if (const std::vector<std::string> others = commands_with(name); !others.empty()) {
    error.why = fmt::format("only {} {} it", listed(others), others.size() == 1 ? "has" : "have");
    error.fix = "leave it out; " + error.fix;
    return error;
  }
  const std::vector<std::string> names = shown_names(app);
  if (auto meant = name.starts_with("--") ? meant_by(name, names) : std::nullopt) {
    error.why = fmt::format("did you mean {}?", *meant);
    error.fix = with_value(*find(app, *meant), *meant) + "; " + error.fix;
  }
  return error;
}

Error no_value(const CLI::Option& option, const std::string& name) {
  return {Fault::Usage, fmt::format("{} needs a value", name),
          fmt::format("{} is missing after it", option.get_type_name()), described(option, name)};
}

Error needless_value(const CLI::App& app, const std::string& name) {
  return {Fault::Usage, fmt::format("{} takes no value", name), "it is a flag: on or left out",
          name + "; " + sees_help(app, "all options")};
}

Error parse_error(const CLI::ParseError& error, const CLI::App& root) {
  const CLI::App& app = innermost(root);
  const std::string text = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error)) return missing(app);
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) return too_many(app);
  if (dynamic_cast<const CLI::ConversionError*>(&error)) return wrong_value(app, text);
  if (dynamic_cast<const CLI::ExcludesError*>(&error)) return excluded(app, text);
  if (dynamic_cast<const CLI::RequiresError*>(&error)) return alone(app, text);
  const auto [name, why] = named_part(text);
  const CLI::Option* option = find(app, name);
  Error out{Fault::Usage, fmt::format("invalid value for {}", name), why,
            option ? described(*option, name) : sees_help(app, "all options")};
  if (option && option->get_positional()) out.fix = usage_line(app);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    out.what = fmt::format("{} was given more than once", name);
    out.why = "it takes one value";
    out.fix = "leave out all but one";
  }
  return out;
}

}  // namespace kiln::cli
