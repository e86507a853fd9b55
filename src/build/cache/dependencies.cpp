// SPDX-License-Identifier: Apache-2.0
// How is what a step read found out?
#include "build/cache/dependencies.h"

#include <algorithm>
#include <set>

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
  for (size_t at = text.find("__has_"); at != std::string_view::npos;
       at = text.find("__has_", at + 1)) {
    const std::string_view rest = text.substr(at + 6);
    if (!rest.starts_with("include") && !rest.starts_with("embed")) continue;
    size_t open = text.find_first_of("<\"\n", at);
    if (open == std::string_view::npos) return;
    if (auto name = name_at(text.substr(open))) names.push_back(std::move(*name));
  }
}

class Absences {
 public:
  Absences(const sys::Files& files, const Step& step, int64_t begun_ns)
      : files_(files), step_(step), begun_ns_(begun_ns) {}

  // Everything before the first place where it is.
  void look_for(const IncludeName& include, const path& includer_folder) {
    if (include.name.starts_with('/')) return;
    if (include.quoted && found_in(includer_folder, include.name)) return;
    if (!asked_.insert(include.name).second) return;
    for (const std::string& folder : step_.search)
      if (found_in(folder, include.name)) return;
  }

  // A file that was found in the k-th folder, by whatever kind of #include: no folder before has
  // it.
  void nothing_shadows(const std::string& file) {
    for (size_t k = 0; k < step_.search.size(); ++k) {
      const std::string& folder = step_.search[k];
      if (!file.starts_with(folder + "/")) continue;
      std::string rest = file.substr(folder.size() + 1);
      for (size_t i = 0; i < k; ++i) (void)found_in(step_.search[i], rest);
      return;
    }
  }

  // The assembler looks for what .incbin names in the folder of the command, then where the
  // preprocessor looks.
  void nothing_shadows_assembled(const std::string& file, const path& directory) {
    for (const std::string& folder : step_.search)
      if (file.starts_with(folder + "/")) (void)found_in(directory, file.substr(folder.size() + 1));
    nothing_shadows(file);
  }

  // -lname: the first folder with a shared or a static library of that name.
  void nothing_shadows_library(const std::string& file) {
    const path parent = path(file).lexically_normal().parent_path();
    const std::string name = path(file).filename().string();
    std::vector<std::string> names = {name};
    if (name.starts_with("lib") && name.ends_with(".so"))
      names.push_back(name.substr(0, name.size() - 3) + ".a");
    if (name.starts_with("lib") && name.ends_with(".a"))
      names.push_back(name.substr(0, name.size() - 2) + ".so");
    for (const std::string& folder : step_.libraries) {
      if (path(folder) == parent) {
        if (names.size() > 1 && name.ends_with(".a")) (void)found_in(folder, names[1]);
        return;
      }
      for (const std::string& one : names) (void)found_in(folder, one);
    }
  }

  // gcc takes its rules from a file "specs" in the folders of LIBRARY_PATH. Those that are there.
  std::vector<std::string> specs_files() {
    std::vector<std::string> there;
    for (const std::string& folder : step_.libraries)
      if (found_in(folder, "specs")) there.push_back(folder + "/specs");
    return there;
  }

  // gcc takes x.h.gch for x.h, without a look at x.h. Those that are there. Not looked for in the
  // folders that commands do not name: the compiler's own.
  std::vector<std::string> precompiled(const std::vector<IncludeName>& direct,
                                       const path& includer_folder) {
    std::vector<std::string> there;
    std::vector<std::string> folders = named_folders();
    folders.insert(folders.begin(), includer_folder.string());
    for (const IncludeName& include : direct)
      for (const std::string& folder : folders)
        if (found_in(folder, include.name + ".gch"))
          there.push_back(folder + "/" + include.name + ".gch");
    return there;
  }

  std::vector<IncludeName> forced() const {
    std::vector<IncludeName> names;
    for (const Command& command : step_.commands)
      for (size_t i = 0; i + 1 < command.size(); ++i)
        if (command[i].text == "-include" || command[i].text == "-imacros")
          names.push_back({command[i + 1].text, true});
    return names;
  }

  std::vector<std::string> list() const { return {absent_.begin(), absent_.end()}; }
  // A header where the compiler may have found nothing a moment ago.
  bool appeared() const { return appeared_; }

 private:
  const sys::FileState& state(const std::string& file) {
    auto [at, is_new] = known_.try_emplace(file);
    if (is_new) at->second = files_.state(file);
    return at->second;
  }

  std::vector<std::string> named_folders() const {
    std::vector<std::string> folders;
    for (const std::string& folder : step_.search)
      for (const Command& command : step_.commands)
        for (const Word& word : command)
          if (word.kind != WordKind::Own && word.text.ends_with(folder)) {
            folders.push_back(folder);
            break;
          }
    return folders;
  }

  // Of a path that is not there the first missing part is kept: a folder "thrust" that is not there
  // stands for hundreds of headers.
  bool found_in(const path& folder, const std::string& name) {
    std::string at = folder.string();
    if (!state(at).exists) {
      absent_.insert(at);
      return false;
    }
    for (std::string_view part : text::split(name, '/')) {
      at += "/" + std::string(part);
      const sys::FileState& now = state(at);
      if (!now.exists) {
        absent_.insert(at);
        return false;
      }
      // A folder that gets an entry changes too, both its times at once; one that is moved here,
      // its ctime alone.
      appeared_ |= now.ctime_ns >= begun_ns_ && (now.is_file() || now.mtime_ns != now.ctime_ns);
    }
    return true;
  }

  const sys::Files& files_;
  const Step& step_;
  const int64_t begun_ns_;
  bool appeared_ = false;
  std::map<std::string, sys::FileState> known_;
  std::set<std::string> asked_, absent_;
};

}  // namespace

std::vector<IncludeName> include_names(std::string_view text) {
  std::vector<IncludeName> names;
  for (size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at)) {
    size_t end = text.find('\n', at);
    std::string_view line = text.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
    at = end == std::string_view::npos ? text.size() : end;
    line = text::trim(line);
    std::string_view directive = line.substr(0, line.find_first_of(" \t<\"("));
    if (directive == "include" || directive == "include_next" || directive == "import" ||
        directive == "embed") {
      if (auto name = name_at(text::trim(line.substr(directive.size()))))
        names.push_back(std::move(*name));
    }
  }
  take_questions(text, names);
  return names;
}

namespace {

// Steps that assemble: their asm() may read files.
bool assembles(const Step& step) {
  return step.kind == StepKind::Host || step.kind == StepKind::Whole ||
         step.kind == StepKind::Object;
}

bool may_read_by_asm(std::string_view text) {
  return text.find("incbin") != std::string_view::npos;
}

// Where the assembler does not tell, the text has to: a source, or what other steps made of one.
bool reads_unknown(const sys::Files& files, const Step& step, const ReadFiles& read,
                   const path& directory) {
  if (read.unknown) return true;
  if (!assembles(step) || step.writes_assembler_depfile) return false;
  std::vector<std::string> texts = read.compiled;
  for (const std::string& input : step.inputs)
    if (input.ends_with(".cpp")) texts.push_back((directory / input).string());
  for (const std::string& file : texts)
    if (auto content = files.read(file); content && may_read_by_asm(*content)) return true;
  return false;
}

}  // namespace

Collected collect_reads(const sys::Files& files, ContentHashes& hashes, const Step& step,
                        const ReadFiles& read, const path& directory, int64_t begun_ns) {
  Collected out;
  Absences absences(files, step, begun_ns);
  std::set<std::string> known;
  auto take = [&](const std::string& file) {
    if (!known.insert(file).second) return false;
    out.reads.files.push_back({file, {}, hashes.of(file)});
    out.sound &= !out.reads.files.back().hash.empty();
    return true;
  };
  auto take_precompiled = [&](const std::vector<IncludeName>& names, const path& folder) {
    for (const std::string& file : absences.precompiled(names, folder)) take(file);
  };
  for (const std::string& file : read.compiled) {
    if (!take(file)) continue;
    if (step.kind == StepKind::Link) {
      absences.nothing_shadows_library(file);
      continue;
    }
    absences.nothing_shadows(file);
    auto content = files.read(file);
    if (!content) continue;
    std::vector<IncludeName> names = include_names(*content);
    for (const IncludeName& include : names) absences.look_for(include, path(file).parent_path());
    if (!assembles(step) || file != step.source) continue;
    names.push_back({path(file).filename().string(), true});
    take_precompiled(names, path(file).parent_path());
  }
  for (const std::string& file : absences.specs_files()) take(file);
  // -include looks in the folder of the command first.
  for (const IncludeName& include : absences.forced()) absences.look_for(include, directory);
  std::vector<IncludeName> first = absences.forced();
  first.push_back({"stdc-predef.h", false});  // which gcc includes by itself
  if (assembles(step)) take_precompiled(first, directory);
  for (const std::string& file : read.assembled)
    if (take(file)) absences.nothing_shadows_assembled(file, directory);
  // What other steps made is known to the graph by its times.
  for (const std::string& input : step.inputs)
    if (input.starts_with('/')) take(input);
  out.reads.absent = absences.list();
  if (reads_unknown(files, step, read, directory)) out.reads.absent.emplace_back(kUnknownRead);
  // After the hashes: whoever changed a file while it was read changed its state too.
  out.sound &= look_at_states(files, begun_ns, out.reads) && !absences.appeared();
  return out;
}

}  // namespace kiln::build
