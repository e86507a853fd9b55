// SPDX-License-Identifier: Apache-2.0
// What is one step of a build? Commands that make files from files, and all that decides what they
// make.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "build/plan/recipe.h"

namespace kiln::build {

// Every run has a staging folder of its own. A command writes there, and its results are moved to
// obj/ when the step has succeeded: a killed one leaves nothing half, and one that outlives its
// ninja finds its folder gone.
inline constexpr std::string_view kStaging = "\x01staging/";

// The environment variable through which a step learns the run's staging folder. In the step's text
// it would change every step on every run.
inline constexpr const char* kStagingVariable = "KILN_STAGING";

// Who a word of a command belongs to. Only a path is made canonical for a key: what a user wrote
// may reach the result letter by letter, as -DDATA_DIR="/srv/project/data" does.
enum class WordKind { Own, Path, User };

struct Word {
  std::string text;
  WordKind kind = WordKind::Own;
  bool operator==(const Word&) const = default;
};
using Command = std::vector<Word>;  // the first word is a program

Word own(std::string text);
Word path_word(std::string text);  // one path, perhaps behind an option: "-I/srv/project/include"
Word users(std::string text);
// A compiler's word by what it and the one before it are: -I and similar options are paths, -D is
// the user's.
Word compiler_word(const std::string& before, std::string text);
Command compiler_command(const Words& words);
Words texts(const Command& command);

// A folder under the name that compilers are given: names in anonymous namespaces, line tables and
// __FILE__ hold it, and a checkout that was moved must still give the same bytes.
struct Root {
  std::string real;       // "/srv/project"
  std::string canonical;  // "/proc/self/cwd"
};

enum class StepKind { Whole, Host, Front, Device, Object, Fat, Link };

struct Step {
  StepKind kind = StepKind::Whole;
  std::string what;    // "compile add.cu for compute_90"
  std::string key;     // names its files: obj/<key>.log, .reads, .report
  std::string source;  // absolute; empty where no one file is compiled
  std::string shown;   // the source as the user wrote it
  std::string arch;    // "90a" of a device step
  // Run one after another in the build folder. kStaging + name is a file in the staging folder.
  std::vector<Command> commands;
  std::string
      preprocessed;  // the file in staging that the first command makes, where it preprocesses only
  std::string fat_symbol;  // of a fat step: the name under which the host code finds the fat binary
  std::vector<std::string> outputs;  // names in obj/; the first stands for all in the graph
  std::vector<std::string> inputs;   // files whose content counts, besides those of the depfile
  bool writes_depfile = false;       // <key>.d in staging
  bool writes_assembler_depfile = false;  // <key>.as.d: what .incbin and .include in asm() read
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::string> search;     // where the preprocessor looks for headers, in order
  std::vector<std::string> libraries;  // where the linker looks for libraries, in order
  std::vector<Root> roots;
  std::string circumstances;   // JSON: each compiler's hash and each of their variables, by name
  bool findings_fail = false;  // a finding of ptxas fails the step
  double limit_s = 0;          // of each command, which is killed then; 0: none
  uint64_t memory_bytes = 0;   // that each command may allocate; 0: no limit
  std::string uncached;  // why its result is not kept, and it runs in every build; empty: it is

  std::string step_file() const { return "steps/" + key + ".json"; }
  // In obj/: what it read, build/cache/reads.h.
  std::string reads_file() const { return key + ".reads"; }
  // Else it reads what other steps made of the source.
  bool reads_source() const {
    return kind == StepKind::Whole || kind == StepKind::Host || kind == StepKind::Front ||
           kind == StepKind::Device;
  }
};

std::string_view name_of(StepKind kind);

Json to_json(const Step& step);
Result<Step> read_step(std::string_view text);

// The path with a root's real name in the place of its canonical one, or the other way round.
std::string real_path(const std::vector<Root>& roots, std::string_view path);
std::string canonical_path(const std::vector<Root>& roots, std::string_view path);
// The same for every place in a text where a path of a root begins.
std::string with_real_paths(const std::vector<Root>& roots, std::string_view text);
std::string with_canonical_paths(const std::vector<Root>& roots, std::string_view text);

// The commands as a key has them: words apart, each with its kind, paths without the folders that
// may differ.
Json key_of_commands(const Step& step, const std::string& build_dir);

// The commands as a person would type them, with `staging` for the folder.
std::vector<std::string> shown_commands(const Step& step, std::string_view staging);

}  // namespace kiln::build
