// SPDX-License-Identifier: Apache-2.0
// What must be asked of the compilers themselves?
#include "build/plan/facts.h"

#include <fmt/format.h>

#include <set>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "build/plan/graph.h"
#include "build/plan/graph_parts.h"
#include "build/plan/variables.h"
#include "project/own_cache.h"

namespace kiln::build {

namespace {

constexpr int kVersion = 4;

std::string answer_of(const World& world, Words words) {
  sys::ProcessSpec spec;
  spec.arguments = std::move(words);
  spec.env = tool_environment(world.env);
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
  Words words = texts(nvcc_command(plan, extended_lambda, false));
  for (std::string_view word :
       {std::string_view("--dryrun"), std::string_view("-o"), kDryRunObject, kDryRunSource})
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

// The flags among them that choose where the compiler looks for headers.
Words with_places(Words command, const Words& flags) {
  for (size_t i = 0; i < flags.size(); ++i) {
    bool chooses = false;
    for (std::string_view option : {"--sysroot", "-isysroot", "-nostdinc", "-m", "-B", "-stdlib"})
      chooses |= flags[i].starts_with(option);
    if (!chooses) continue;
    command.push_back(flags[i]);
    if ((flags[i] == "--sysroot" || flags[i] == "-isysroot" || flags[i] == "-B") &&
        i + 1 < flags.size())
      command.push_back(flags[++i]);
  }
  return command;
}

bool is_script(const sys::Files& files, const fs::path& program) {
  auto content = files.read(program);
  return content && content->starts_with("#!");
}

// "libraries: =/a:/b" of `gcc -print-search-dirs`.
std::vector<std::string> parse_library_folders(std::string_view text) {
  std::vector<std::string> folders;
  for (std::string_view line : text::lines(text)) {
    if (!line.starts_with("libraries: =")) continue;
    for (std::string_view folder : text::split(line.substr(12), ':')) folders.emplace_back(folder);
  }
  return folders;
}

void ask_about_linker(const Plan& plan, const World& world, Facts& facts) {
  auto ask_host = [&](const std::string& option) {
    Words words = plan.host.command;
    words.push_back(option);
    return answer_of(world, std::move(words));
  };
  facts.library_search = parse_library_folders(ask_host("-print-search-dirs"));
  for (const char* name : {"as", "collect2", "ld"}) {
    fs::path program(text::trim(ask_host(fmt::format("-print-prog-name={}", name))));
    if (program.is_absolute()) facts.host_programs.push_back(program.lexically_normal().string());
  }
  facts.linker_tells_files = !is_clang(plan.host.path) &&
                             ask_host("-Wl,--help").find("--dependency-file") != std::string::npos;
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
               {"library_search", facts.library_search},
               {"host_programs", facts.host_programs},
               {"linker_tells_files", facts.linker_tells_files},
               {"path_matters", facts.path_matters}});
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
    facts.library_search = json->at("library_search").get<std::vector<std::string>>();
    facts.host_programs = json->at("host_programs").get<std::vector<std::string>>();
    facts.linker_tells_files = json->at("linker_tells_files");
    facts.path_matters = json->at("path_matters");
    return facts;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

Facts ask(const Plan& plan, const World& world) {
  Facts facts;
  std::string answer = host_answer(with_places(plan.host.command, plan.cflags), world);
  facts.search = parse_search_list(answer);
  if (std::string proper = compiler_proper(answer); !proper.empty())
    facts.host_programs.push_back(proper);
  ask_about_linker(plan, world, facts);
  facts.path_matters = is_script(world.files, plan.host.path) ||
                       (plan.nvcc && is_script(world.files, plan.nvcc->path));
  // A launcher (ccache) is there to see nvcc's own command line.
  if (!plan.nvcc || plan.nvcc->command.size() > 1) return facts;
  for (bool extended_lambda : kinds_of_sources(plan)) {
    auto recipe = parse_dryrun(answer_of(world, question_for(plan, extended_lambda)));
    if (!recipe) continue;
    if (facts.cuda_search.empty())
      facts.cuda_search = parse_search_list(
          host_answer(with_places({recipe->preprocess[0]}, recipe->preprocess), world));
    facts.recipes.emplace(extended_lambda, std::move(*recipe));
  }
  // One that does not answer: where g++ looks is the best guess, and nothing known would be the
  // worst.
  if (facts.cuda_search.empty()) facts.cuda_search = facts.search;
  return facts;
}

// The content of each program, by a list of what was seen before: cicc alone has 100 MB. The list
// is believed while size, both times and inode are the same.
class ProgramHashes {
 public:
  ProgramHashes(sys::Files& files, fs::path list) : files_(files), list_(std::move(list)) {
    auto text = files.read(list_);
    if (auto json = text ? parse_json(*text, "hashes") : Json::object(); json && json->is_object())
      known_ = *json;
  }
  std::string of(const fs::path& program) {
    sys::FileState state = files_.state(program);
    if (!state.exists) return "";
    std::string seen =
        fmt::format("{} {} {} {}", state.size_bytes, state.mtime_ns, state.ctime_ns, state.inode);
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
    if (inside && line.starts_with(' '))
      folders.push_back(fs::path(text::trim(line)).lexically_normal().string());
    inside |= line.starts_with("#include <...>");
  }
  return folders;
}

namespace {

// What flags name: nvcc's with those of its variables, the host compiler's, the linker's.
void look_at_all_flags(const Plan& plan, const World& world, Facts& facts) {
  const std::vector<fs::path> folders = {plan.directory, plan.project_dir, plan.build_dir};
  Words cuda = plan.cuda_flags;
  cuda.insert(cuda.end(), plan.environment_flags.begin(), plan.environment_flags.end());
  facts.cuda_flags = look_at_flags(world.files, cuda, folders);
  facts.host_flags = look_at_flags(world.files, plan.cflags, folders);
  facts.link_flags = look_at_flags(world.files, plan.ldflags, folders);
}

// What the answers of the compilers depend on.
std::string question_hash(const Plan& plan, const World& world, const Facts& facts) {
  Hasher hasher;
  hasher.add_field(std::to_string(kVersion)).add_field(plan.circumstances);
  hasher.add_field(world.env.get("PATH").value_or(""));
  for (const Words* words : {&plan.host.command, &plan.cflags}) {
    hasher.add_field(std::to_string(words->size()));
    for (const std::string& word : *words) hasher.add_field(word);
  }
  if (plan.nvcc)
    for (bool extended_lambda : kinds_of_sources(plan))
      for (const std::string& word : question_for(plan, extended_lambda)) hasher.add_field(word);
  // nvcc puts their words into the dry run.
  for (const std::string& file : facts.cuda_flags.option_files) {
    auto content = world.files.read(file);
    hasher.add_field(file).add_field(content ? *content : "");
  }
  return hasher.hex();
}

// Each program by its content, each variable by its value.
std::string circumstances_of(const Plan& plan, const World& world, const Facts& facts,
                             const fs::path& list) {
  ProgramHashes hashes(world.files, list);
  Json all = Json::object();
  // Two programs of one name are told apart: each counts.
  auto put = [&](std::string name, const std::string& value) {
    while (all.contains(name)) name += "'";
    all[name] = value;
  };
  for (const auto& [name, value] : plan.environment) put(name, name + "=" + value);
  if (facts.path_matters) put("PATH", world.env.get("PATH").value_or(""));
  std::set<std::string> seen;
  auto add_program = [&](const fs::path& program) {
    if (seen.insert(program.string()).second) put(program.filename().string(), hashes.of(program));
  };
  if (plan.nvcc)
    for (const fs::path& part : plan.nvcc->parts) add_program(part);
  for (const fs::path& part : plan.host.parts) add_program(part);
  for (const std::string& program : facts.host_programs) add_program(program);
  for (const fs::path& tool : plan.host_tools) add_program(tool);
  hashes.keep();
  return dump(all);
}

}  // namespace

Facts learn_facts(const Plan& plan, const World& world) {
  auto cache = project::own_cache_folder(world.files, world.env);
  fs::path folder = (cache ? *cache : plan.build_dir) / "facts";
  Facts looked;
  look_at_all_flags(plan, world, looked);
  fs::path file = folder / (question_hash(plan, world, looked).substr(0, 24) + ".json");
  auto kept = world.files.read(file);
  auto known = kept ? from_text(*kept) : std::nullopt;
  Facts facts = known ? std::move(*known) : ask(plan, world);
  if (!known) (void)world.files.write(file, to_text(facts), sys::Durable::No);
  facts.cuda_flags = std::move(looked.cuda_flags);
  facts.host_flags = std::move(looked.host_flags);
  facts.link_flags = std::move(looked.link_flags);
  facts.circumstances = circumstances_of(plan, world, facts, folder / "programs.json");
  return facts;
}

}  // namespace kiln::build
