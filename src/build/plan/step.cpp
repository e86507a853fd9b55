// SPDX-License-Identifier: Apache-2.0
// What is one step of a build?
#include "build/plan/step.h"

#include <algorithm>
#include <array>
#include <exception>

#include "base/text.h"

namespace kiln::build {

namespace {

constexpr std::array kKindNames = {"whole", "host", "front", "device", "object", "fat", "link"};

std::string swap_prefix(std::string_view path, const std::string& from, const std::string& to) {
  if (!path.starts_with(from)) return "";
  std::string_view rest = path.substr(from.size());
  return rest.empty() || rest[0] == '/' ? to + std::string(rest) : "";
}

bool can_begin_path(std::string_view text, size_t at) {
  if (at == 0) return true;
  unsigned char before = static_cast<unsigned char>(text[at - 1]);
  bool part_of_name = before >= 0x80 || before == '/' || before == '_' || before == '.' ||
                      before == '-' || (before >= '0' && before <= '9') ||
                      (before >= 'A' && before <= 'Z') || (before >= 'a' && before <= 'z');
  // "-I/root": an option that ends in a letter.
  return !part_of_name || (at >= 2 && text[at - 2] == '-');
}

bool can_end_path(std::string_view text, size_t at) {
  return at == text.size() ||
         std::string_view("/\"' \n\t:,;()=").find(text[at]) != std::string_view::npos;
}

std::string replace_paths(std::string_view text, const std::string& from, const std::string& to) {
  std::string out;
  size_t done = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, at + 1)) {
    if (at < done || !can_begin_path(text, at) || !can_end_path(text, at + from.size())) continue;
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  return out.append(text, done, std::string_view::npos);
}

constexpr std::string_view kKindLetters = "opu";

// Options whose value is a path that the preprocessor looks into, or a file that a step makes or
// reads by content.
constexpr std::array<std::string_view, 8> kPathOptions = {
    "-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-o", "-MF"};
constexpr std::array<std::string_view, 4> kPathPrefixes = {"-I", "-isystem", "-iquote",
                                                           "-idirafter"};

Json to_json(const std::vector<Command>& commands) {
  Json out = Json::array();
  for (const Command& command : commands) {
    std::string kinds;
    for (const Word& word : command) kinds += kKindLetters[static_cast<size_t>(word.kind)];
    out.push_back({{"words", texts(command)}, {"kinds", kinds}});
  }
  return out;
}

std::vector<Command> commands_from(const Json& json) {
  std::vector<Command> commands;
  for (const Json& one : json) {
    Command command;
    const std::string kinds = one.at("kinds");
    for (const Json& word : one.at("words"))
      command.push_back({word, static_cast<WordKind>(kKindLetters.find(kinds.at(command.size())))});
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace

Word own(std::string text) { return {std::move(text), WordKind::Own}; }
Word path_word(std::string text) { return {std::move(text), WordKind::Path}; }
Word users(std::string text) { return {std::move(text), WordKind::User}; }

Word compiler_word(const std::string& before, std::string text) {
  if (before == "-D" || text.starts_with("-D")) return users(std::move(text));
  if (std::find(kPathOptions.begin(), kPathOptions.end(), before) != kPathOptions.end())
    return path_word(std::move(text));
  for (std::string_view prefix : kPathPrefixes)
    if (text.size() > prefix.size() && text.starts_with(prefix)) return path_word(std::move(text));
  return own(std::move(text));
}

Command compiler_command(const Words& words) {
  Command command;
  for (const std::string& word : words) {
    const std::string before = command.empty() ? "" : command.back().text;
    command.push_back(command.empty() ? path_word(word) : compiler_word(before, word));
  }
  return command;
}

Words texts(const Command& command) {
  Words out;
  for (const Word& word : command) out.push_back(word.text);
  return out;
}

std::string_view name_of(StepKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

Json to_json(const Step& step) {
  Json env = Json::array(), roots = Json::array();
  for (const auto& [name, value] : step.env) env.push_back({name, value});
  for (const Root& root : step.roots) roots.push_back({root.real, root.canonical});
  return {{"kiln_step", 2},
          {"kind", static_cast<int>(step.kind)},
          {"what", step.what},
          {"key", step.key},
          {"source", step.source},
          {"shown", step.shown},
          {"arch", step.arch},
          {"commands", to_json(step.commands)},
          {"preprocessed", step.preprocessed},
          {"fat_symbol", step.fat_symbol},
          {"outputs", step.outputs},
          {"inputs", step.inputs},
          {"writes_depfile", step.writes_depfile},
          {"writes_assembler_depfile", step.writes_assembler_depfile},
          {"env", env},
          {"search", step.search},
          {"libraries", step.libraries},
          {"roots", roots},
          {"circumstances", step.circumstances},
          {"findings_fail", step.findings_fail},
          {"limit_s", step.limit_s},
          {"memory_bytes", step.memory_bytes},
          {"uncached", step.uncached}};
}

Result<Step> read_step(std::string_view text) {
  TRY(Json json, parse_json(text, "a step"));
  try {
    Step step;
    step.kind = static_cast<StepKind>(json.at("kind").get<int>());
    step.what = json.at("what");
    step.key = json.at("key");
    step.source = json.at("source");
    step.shown = json.at("shown");
    step.arch = json.at("arch");
    step.commands = commands_from(json.at("commands"));
    step.preprocessed = json.at("preprocessed");
    step.fat_symbol = json.at("fat_symbol");
    step.outputs = json.at("outputs").get<Words>();
    step.inputs = json.at("inputs").get<Words>();
    step.writes_depfile = json.at("writes_depfile");
    step.writes_assembler_depfile = json.at("writes_assembler_depfile");
    for (const Json& pair : json.at("env")) step.env.emplace_back(pair.at(0), pair.at(1));
    step.search = json.at("search").get<Words>();
    step.libraries = json.at("libraries").get<Words>();
    for (const Json& pair : json.at("roots")) step.roots.push_back({pair.at(0), pair.at(1)});
    step.circumstances = json.at("circumstances");
    step.findings_fail = json.at("findings_fail");
    step.limit_s = json.at("limit_s");
    step.memory_bytes = json.at("memory_bytes");
    step.uncached = json.at("uncached");
    return step;
  } catch (const std::exception& e) {  // of the JSON, or kinds that do not fit their words
    return Error{Fault::Bug, "cannot read a step of a build", e.what(),
                 "remove the build folder and build again"};
  }
}

std::string real_path(const std::vector<Root>& roots, std::string_view path) {
  for (const Root& root : roots)
    if (std::string swapped = swap_prefix(path, root.canonical, root.real); !swapped.empty())
      return swapped;
  return std::string(path);
}

std::string canonical_path(const std::vector<Root>& roots, std::string_view path) {
  for (const Root& root : roots)
    if (std::string swapped = swap_prefix(path, root.real, root.canonical); !swapped.empty())
      return swapped;
  return std::string(path);
}

std::string with_real_paths(const std::vector<Root>& roots, std::string_view text) {
  std::string out(text);
  for (const Root& root : roots) out = replace_paths(out, root.canonical, root.real);
  return out;
}

std::string with_canonical_paths(const std::vector<Root>& roots, std::string_view text) {
  std::string out(text);
  for (const Root& root : roots) out = replace_paths(out, root.real, root.canonical);
  return out;
}

Json key_of_commands(const Step& step, const std::string& build_dir) {
  std::vector<Command> commands = step.commands;
  for (Command& command : commands)
    for (Word& word : command)
      if (word.kind == WordKind::Path)
        word.text = with_canonical_paths(
            step.roots, replace_paths(text::replace_all(word.text, kStaging, ""), build_dir, ""));
  return to_json(commands);
}

std::vector<std::string> shown_commands(const Step& step, std::string_view staging) {
  std::vector<std::string> lines;
  for (const Command& command : step.commands) {
    std::string line;
    for (const Word& one : command) {
      const std::string& word = one.text;
      if (!line.empty()) line += ' ';
      size_t at = word.find(kStaging);
      line += at == std::string::npos
                  ? text::shell_quote(word)
                  : text::shell_quote(word.substr(0, at) + std::string(staging) + "/" +
                                      word.substr(at + kStaging.size()));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace kiln::build
