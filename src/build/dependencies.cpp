// SPDX-License-Identifier: Apache-2.0
// What did a step read, and where did its preprocessor look in vain?
#include "build/dependencies.h"

#include <fmt/format.h>

#include <set>

#include "base/hash.h"
#include "base/text.h"

namespace kiln::build {

namespace {

using sys::fs::path;

// "<a.h>" or "\"a.h\"" at the start of a text.
std::optional<IncludeName> name_at(std::string_view text) {
  if (text.size() < 3 || (text[0] != '"' && text[0] != '<')) return std::nullopt;
  size_t end = text.find(text[0] == '<' ? '>' : '"', 1);
  if (end == std::string_view::npos) return std::nullopt;
  return IncludeName{std::string(text.substr(1, end - 1)), text[0] == '"'};
}

// Anywhere: a condition may go on over several lines.
void take_questions(std::string_view text, std::vector<IncludeName>& names) {
  constexpr std::string_view kQuestion = "__has_include";
  for (size_t at = text.find(kQuestion); at != std::string_view::npos; at = text.find(kQuestion, at + 1)) {
    size_t open = text.find_first_of("<\"\n", at);
    if (open == std::string_view::npos) return;
    if (auto name = name_at(text.substr(open))) names.push_back(std::move(*name));
  }
}

class Absences {
 public:
  Absences(const sys::Files& files, const Step& step) : files_(files), step_(step) {}

  // Everything before the first place where it is.
  void look_for(const IncludeName& include, const path& includer_folder) {
    if (include.name.starts_with('/')) return;
    if (include.quoted && found_in(includer_folder, include.name)) return;
    if (!asked_.insert(include.name).second) return;
    for (const std::string& folder : step_.search)
      if (found_in(folder, include.name)) return;
  }

  // A file that was found in the k-th folder, by whatever kind of #include: no folder before has it.
  void nothing_shadows(const std::string& file) {
    for (size_t k = 0; k < step_.search.size(); ++k) {
      const std::string& folder = step_.search[k];
      if (!file.starts_with(folder + "/")) continue;
      std::string rest = file.substr(folder.size() + 1);
      for (size_t i = 0; i < k; ++i) (void)found_in(step_.search[i], rest);
      return;
    }
  }

  std::vector<std::string> list() const { return {absent_.begin(), absent_.end()}; }

 private:
  bool exists(const std::string& file) {
    auto [at, is_new] = known_.try_emplace(file, false);
    if (is_new) at->second = files_.state(file).exists;
    return at->second;
  }

  // Of a path that is not there the first missing part is kept: a folder "thrust" that is not there stands for
  // hundreds of headers.
  bool found_in(const path& folder, const std::string& name) {
    std::string at = folder.string();
    if (!exists(at)) {
      absent_.insert(canonical_path(step_.roots, at));
      return false;
    }
    for (std::string_view part : text::split(name, '/')) {
      at += "/" + std::string(part);
      if (exists(at)) continue;
      absent_.insert(canonical_path(step_.roots, at));
      return false;
    }
    return true;
  }

  const sys::Files& files_;
  const Step& step_;
  std::map<std::string, bool> known_;
  std::set<std::string> asked_, absent_;
};

}  // namespace

const std::string& ContentHashes::of(const std::string& file) {
  auto [at, is_new] = known_.try_emplace(file);
  if (is_new) {
    auto content = files_.read(file);
    if (content) at->second = hash_hex(*content);
  }
  return at->second;
}

Json to_json(const Dependencies& dependencies) {
  Json files = Json::object();
  for (const auto& [name, hash] : dependencies.files) files[name] = hash;
  return {{"files", files}, {"absent", dependencies.absent}};
}

std::optional<Dependencies> read_dependencies(const Json& json) {
  try {
    Dependencies out;
    for (const auto& [name, hash] : json.at("files").items()) out.files[name] = hash.get<std::string>();
    out.absent = json.at("absent").get<std::vector<std::string>>();
    return out;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::vector<IncludeName> include_names(std::string_view text) {
  std::vector<IncludeName> names;
  for (size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at)) {
    size_t end = text.find('\n', at);
    std::string_view line = text.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
    at = end == std::string_view::npos ? text.size() : end;
    line = text::trim(line);
    std::string_view directive = line.substr(0, line.find_first_of(" \t<\"("));
    if (directive == "include" || directive == "include_next" || directive == "import") {
      if (auto name = name_at(text::trim(line.substr(directive.size())))) names.push_back(std::move(*name));
    }
  }
  take_questions(text, names);
  return names;
}

Dependencies collect_dependencies(const sys::Files& files, ContentHashes& hashes, const Step& step,
                                  const std::vector<std::string>& read_files, const path& directory) {
  Dependencies out;
  Absences absences(files, step);
  for (const std::string& name : read_files) {
    path file = (directory / name).lexically_normal();
    if (!out.files.emplace(canonical_path(step.roots, file.string()), hashes.of(file.string())).second) continue;
    absences.nothing_shadows(file.string());
    auto content = files.read(file);
    if (!content) continue;
    for (const IncludeName& include : include_names(*content)) absences.look_for(include, file.parent_path());
  }
  out.absent = absences.list();
  return out;
}

std::optional<std::string> first_difference(const sys::Files& files, ContentHashes& hashes, const Step& step,
                                            const Dependencies& dependencies) {
  for (const std::string& name : dependencies.absent)
    if (std::string file = real_path(step.roots, name); files.state(file).exists)
      return fmt::format("{} appeared", file);
  for (const auto& [name, hash] : dependencies.files) {
    std::string file = real_path(step.roots, name);
    const std::string& now = hashes.of(file);
    if (now.empty()) return fmt::format("{} is gone", file);
    if (now != hash) return fmt::format("{} changed", file);
  }
  return std::nullopt;
}

}  // namespace kiln::build
