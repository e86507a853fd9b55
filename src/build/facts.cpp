// SPDX-License-Identifier: Apache-2.0
// What must be asked of the compilers themselves?
#include "build/facts.h"

#include <fmt/format.h>

#include <set>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "build/graph.h"

namespace kiln::build {

namespace {

constexpr int kVersion = 3;

std::string answer_of(const World& world, Words words) {
  sys::ProcessSpec spec;
  spec.arguments = std::move(words);
  spec.env = world.env;
  auto result = world.processes.run(spec);
  return result && result->exit_code == 0 ? result->out : "";
}

std::set<bool> kinds_of_sources(const Plan& plan) {
  std::set<bool> kinds;
  for (const Source& source : plan.sources)
    if (source.cuda) kinds.insert(source.facts.extended_lambda);
  return kinds;
}

Words question_for(const Plan& plan, bool extended_lambda) {
  Words words = nvcc_command(plan, extended_lambda, false);
  for (std::string_view word : {std::string_view("--dryrun"), std::string_view("-o"), kDryRunObject, kDryRunSource})
    words.emplace_back(word);
  return words;
}

// The program that compiles, in the list of what `gcc -v` starts.
std::string compiler_proper(std::string_view text) {
  for (std::string_view line : text::lines(text)) {
    std::string_view word = text::trim(line).substr(0, text::trim(line).find(' '));
    if (word.ends_with("/cc1plus")) return std::string(word);
  }
  return "";
}

// What the folders of headers are depends on the environment too.
std::string host_answer(Words words, const World& world) {
  for (const char* word : {"-v", "-E", "-x", "c++", "/dev/null"}) words.emplace_back(word);
  return answer_of(world, std::move(words));
}

std::string to_text(const Facts& facts) {
  Json recipes = Json::object();
  for (const auto& [extended_lambda, recipe] : facts.recipes)
    recipes[extended_lambda ? "extended" : "plain"] = write_recipe(recipe);
  return dump({{"kiln_facts", kVersion},
               {"recipes", recipes},
               {"search", facts.search},
               {"cuda_search", facts.cuda_search},
               {"host_compiler_proper", facts.host_compiler_proper}});
}

std::optional<Facts> from_text(std::string_view text) {
  auto json = parse_json(text, "facts");
  if (!json || !json->is_object() || json->value("kiln_facts", 0) != kVersion) return std::nullopt;
  try {
    Facts facts;
    for (const auto& [name, text_of_recipe] : json->at("recipes").items()) {
      auto recipe = read_recipe(text_of_recipe.get<std::string>());
      if (!recipe) return std::nullopt;
      facts.recipes.emplace(name == "extended", std::move(*recipe));
    }
    facts.search = json->at("search").get<std::vector<std::string>>();
    facts.cuda_search = json->at("cuda_search").get<std::vector<std::string>>();
    facts.host_compiler_proper = json->at("host_compiler_proper");
    return facts;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

Facts ask(const Plan& plan, const World& world) {
  Facts facts;
  std::string answer = host_answer(plan.host.command, world);
  facts.search = parse_search_list(answer);
  facts.host_compiler_proper = compiler_proper(answer);
  // A launcher (ccache) is there to see nvcc's own command line.
  if (!plan.nvcc || plan.nvcc->command.size() > 1) return facts;
  for (bool extended_lambda : kinds_of_sources(plan)) {
    auto recipe = parse_dryrun(answer_of(world, question_for(plan, extended_lambda)));
    if (!recipe) continue;
    if (facts.cuda_search.empty()) facts.cuda_search = parse_search_list(host_answer({recipe->preprocess[0]}, world));
    facts.recipes.emplace(extended_lambda, std::move(*recipe));
  }
  // One that does not answer: where g++ looks is the best guess, and nothing known would be the worst.
  if (facts.cuda_search.empty()) facts.cuda_search = facts.search;
  return facts;
}

// The content of each program, by a list of what was seen before: cicc alone has 100 MB. The list is believed while
// size, both times and inode are the same.
class ProgramHashes {
 public:
  ProgramHashes(sys::Files& files, fs::path list) : files_(files), list_(std::move(list)) {
    auto text = files.read(list_);
    if (auto json = text ? parse_json(*text, "hashes") : Json::object(); json && json->is_object()) known_ = *json;
  }
  std::string of(const fs::path& program) {
    sys::FileState state = files_.state(program);
    if (!state.exists) return "";
    std::string seen = fmt::format("{} {} {} {}", state.size_bytes, state.mtime_ns, state.ctime_ns, state.inode);
    Json& row = known_[program.string()];
    if (row.is_array() && row.size() == 2 && row[0] == seen && row[1].is_string()) return row[1];
    auto content = files_.read(program);
    if (!content) return "";
    row = Json::array({seen, hash_hex(*content)});
    changed_ = true;
    return row[1];
  }
  void keep() {
    if (changed_) (void)files_.write(list_, dump(known_), sys::Durable::No);
  }

 private:
  sys::Files& files_;
  fs::path list_;
  Json known_ = Json::object();
  bool changed_ = false;
};

}  // namespace

std::vector<std::string> parse_search_list(std::string_view text) {
  std::vector<std::string> folders;
  bool inside = false;
  for (std::string_view line : text::lines(text)) {
    if (line.starts_with("End of search list")) break;
    if (inside && line.starts_with(' ')) folders.push_back(fs::path(text::trim(line)).lexically_normal().string());
    inside |= line.starts_with("#include <...>");
  }
  return folders;
}

Facts learn_facts(const Plan& plan, const World& world) {
  auto cache = project::cache_folder(world.env);
  fs::path folder = (cache ? *cache : plan.build_dir) / "facts";
  Hasher hasher;
  hasher.add_field(std::to_string(kVersion)).add_field(plan.circumstances);
  for (const std::string& word : plan.host.command) hasher.add_field(word);
  if (plan.nvcc)
    for (bool extended_lambda : kinds_of_sources(plan))
      for (const std::string& word : question_for(plan, extended_lambda)) hasher.add_field(word);
  fs::path file = folder / (hasher.hex().substr(0, 24) + ".json");
  auto kept = world.files.read(file);
  auto known = kept ? from_text(*kept) : std::nullopt;
  Facts facts = known ? std::move(*known) : ask(plan, world);
  if (!known) (void)world.files.write(file, to_text(facts), sys::Durable::No);

  ProgramHashes hashes(world.files, folder / "programs.json");
  Json all = Json::object();
  // Two programs of one name are told apart: each counts.
  auto put = [&](std::string name, const std::string& value) {
    while (all.contains(name)) name += "'";
    all[name] = value;
  };
  for (std::string_view line : text::lines(plan.environment))
    put(std::string(line.substr(0, line.find('='))), std::string(line));
  auto add = [&](const fs::path& program) { put(program.filename().string(), hashes.of(program)); };
  if (plan.nvcc)
    for (const fs::path& part : plan.nvcc->parts) add(part);
  for (const fs::path& part : plan.host.parts) add(part);
  if (!facts.host_compiler_proper.empty()) add(facts.host_compiler_proper);
  for (const fs::path& tool : plan.host_tools) add(tool);
  hashes.keep();
  facts.circumstances = dump(all);
  return facts;
}

}  // namespace kiln::build
