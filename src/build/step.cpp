// SPDX-License-Identifier: Apache-2.0
// What is one step of a build?
#include "build/step.h"

#include <array>

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
  bool part_of_name = before >= 0x80 || before == '/' || before == '_' || before == '.' || before == '-' ||
                      (before >= '0' && before <= '9') || (before >= 'A' && before <= 'Z') ||
                      (before >= 'a' && before <= 'z');
  // "-I/root": an option that ends in a letter.
  return !part_of_name || (at >= 2 && text[at - 2] == '-');
}

bool can_end_path(std::string_view text, size_t at) {
  return at == text.size() || std::string_view("/\"' \n\t:,;()=").find(text[at]) != std::string_view::npos;
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

}  // namespace

std::string_view name_of(StepKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

Json to_json(const Step& step) {
  Json env = Json::array(), roots = Json::array();
  for (const auto& [name, value] : step.env) env.push_back({name, value});
  for (const Root& root : step.roots) roots.push_back({root.real, root.canonical});
  return {{"kiln_step", 1},
          {"kind", static_cast<int>(step.kind)},
          {"what", step.what},
          {"key", step.key},
          {"source", step.source},
          {"shown", step.shown},
          {"arch", step.arch},
          {"commands", step.commands},
          {"preprocessed", step.preprocessed},
          {"fat_symbol", step.fat_symbol},
          {"outputs", step.outputs},
          {"inputs", step.inputs},
          {"writes_depfile", step.writes_depfile},
          {"env", env},
          {"search", step.search},
          {"roots", roots},
          {"circumstances", step.circumstances},
          {"findings_fail", step.findings_fail}};
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
    step.commands = json.at("commands").get<std::vector<Words>>();
    step.preprocessed = json.at("preprocessed");
    step.fat_symbol = json.at("fat_symbol");
    step.outputs = json.at("outputs").get<Words>();
    step.inputs = json.at("inputs").get<Words>();
    step.writes_depfile = json.at("writes_depfile");
    for (const Json& pair : json.at("env")) step.env.emplace_back(pair.at(0), pair.at(1));
    step.search = json.at("search").get<Words>();
    for (const Json& pair : json.at("roots")) step.roots.push_back({pair.at(0), pair.at(1)});
    step.circumstances = json.at("circumstances");
    step.findings_fail = json.at("findings_fail");
    return step;
  } catch (const nlohmann::json::exception& e) {
    return Error{Fault::Bug, "cannot read a step of a build", e.what(), "remove the build folder and build again"};
  }
}

std::string real_path(const std::vector<Root>& roots, std::string_view path) {
  for (const Root& root : roots)
    if (std::string swapped = swap_prefix(path, root.canonical, root.real); !swapped.empty()) return swapped;
  return std::string(path);
}

std::string canonical_path(const std::vector<Root>& roots, std::string_view path) {
  for (const Root& root : roots)
    if (std::string swapped = swap_prefix(path, root.real, root.canonical); !swapped.empty()) return swapped;
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

std::vector<std::string> shown_commands(const Step& step, std::string_view staging) {
  std::vector<std::string> lines;
  for (const Words& command : step.commands) {
    std::string line;
    for (const std::string& word : command) {
      if (!line.empty()) line += ' ';
      size_t at = word.find(kStaging);
      line +=
          at == std::string::npos
              ? text::shell_quote(word)
              : text::shell_quote(word.substr(0, at) + std::string(staging) + "/" + word.substr(at + kStaging.size()));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace kiln::build
