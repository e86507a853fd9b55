// SPDX-License-Identifier: Apache-2.0
// What do a user's flags make the compilers read, or do, that no depfile tells?
//
// nvcc, gcc, as, ld and ptxas each have a grammar of their own, and -Xcompiler, -Wl, and option
// files nest them. So a flag is taken apart at every ',' and '=', and whatever names a file that is
// there counts as read: one file too many costs a compile, one too few gives a stale result.
#include "build/plan/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "base/text.h"

namespace kiln::build {

namespace {

using sys::fs::path;

struct Opaque {
  std::string_view flag, reason;
};
constexpr Opaque kOpaque[] = {
#define OPAQUE(flag, reason) {flag, reason},
#include "build/plan/opaque_flags.def"
#undef OPAQUE
};

constexpr std::array<std::string_view, 2> kOptionFile = {"--options-file", "-optf"};
constexpr std::array<std::string_view, 6> kRelocatable = {
    "-dc", "--device-c", "-dlink", "--device-link", "--dlink-time-opt", "-dlto"};
constexpr size_t kMostOptionFiles = 1000;  // a file may name itself

// The linker's -B flags choose between libraries; gcc's -B names a folder of programs.
constexpr std::array<std::string_view, 7> kLinkersB = {
    "-Bstatic",      "-Bdynamic", "-Bsymbolic", "-Bsymbolic-functions",
    "-Bno-symbolic", "-Bgroup",   "-Bshareable"};

template <class List>
bool is_one_of(std::string_view word, const List& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_rdc(std::string_view name) { return name == "-rdc" || name == "--relocatable-device-code"; }

// "lto_80" among the kinds of code.
bool names_lto_code(const std::string& before, const std::string& word) {
  const bool about_code =
      word.find("code") != word.npos || before == "-code" || before == "--gpu-code";
  return about_code && word.find("lto_") != word.npos;
}

class Look {
 public:
  Look(const sys::Files& files, const std::vector<path>& folders)
      : files_(files), folders_(folders) {}

  FlagFacts run(const Words& flags) {
    look_at(flags);
    while (!waiting_.empty() && facts_.option_files.size() < kMostOptionFiles) {
      std::string file = waiting_.back();
      waiting_.pop_back();
      if (auto content = files_.read(file)) look_at(text::shell_split(*content));
    }
    return std::move(facts_);
  }

 private:
  void look_at(const Words& words) {
    if (facts_.relocatable.empty()) facts_.relocatable = relocatable_flag(words);
    std::string before;
    for (const std::string& word : words) {
      look_at_word(before, word);
      before = word;
    }
  }

  void look_at_word(const std::string& before, const std::string& word) {
    if (before == "-D" || word.starts_with("-D"))
      return;  // its text is in the key, and nobody opens it
    const bool named = is_one_of(before, kOptionFile);
    for (std::string_view piece : text::split(word, ',')) {
      if (named) take_option_file(piece);
      // "-Xcompiler=-fplugin=x.so": each part behind a '=' may be a flag or a file.
      for (size_t at = 0; at != std::string_view::npos;) {
        look_at_part(piece.substr(at));
        at = piece.find('=', at);
        if (at != std::string_view::npos) ++at;
      }
    }
  }

  void look_at_part(std::string_view part) {
    if (part.empty()) return;
    for (const Opaque& one : kOpaque)
      if (facts_.opaque.empty() && part.starts_with(one.flag) && !is_one_of(part, kLinkersB))
        facts_.opaque = fmt::format("{}: {}", part.substr(0, part.find('=')), one.reason);
    if (part[0] == '@' && part.size() > 1) take_option_file(part.substr(1));
    for (std::string_view option : kOptionFile)
      if (part.size() > option.size() && part.starts_with(option) && part[option.size()] == '=')
        take_option_file(part.substr(option.size() + 1));
    take_file(part);
    // "-T/srv/link.ld": a path right behind an option.
    if (size_t slash = part.find('/'); part[0] == '-' && slash != std::string_view::npos)
      take_file(part.substr(slash));
  }

  void take_option_file(std::string_view name) {
    std::string file = take_file(name);
    if (file.empty()) facts_.missing = name;
    if (file.empty() || !option_files_.insert(file).second) return;
    facts_.option_files.push_back(file);
    waiting_.push_back(file);
  }

  // Where it is, in whichever of the folders; empty: nowhere.
  std::string take_file(std::string_view name) {
    std::string first;
    for (const path& folder : folders_) {
      std::string file = (folder / name).lexically_normal().string();
      if (folder.empty() || !files_.state(file).is_file()) continue;
      if (first.empty()) first = file;
      if (seen_.insert(file).second) facts_.files.push_back(file);
    }
    return first;
  }

  const sys::Files& files_;
  const std::vector<path>& folders_;
  FlagFacts facts_;
  std::vector<std::string> waiting_;
  std::set<std::string> seen_, option_files_;
};

}  // namespace

FlagFacts look_at_flags(const sys::Files& files, const Words& flags,
                        const std::vector<path>& folders) {
  return Look(files, folders).run(flags);
}

// nvcc takes --std=c++17 and "-std c++17" too.
template <class Keep, class Choose>
void split_by_language(const Words& flags, Keep keep, Choose choose) {
  for (size_t i = 0; i < flags.size(); ++i) {
    std::string_view flag = flags[i];
    if (flag.starts_with("--std")) flag.remove_prefix(1);
    if (flag.starts_with("-std="))
      choose(std::string(flag.substr(5)));
    else if (flag == "-std" && i + 1 < flags.size())
      choose(flags[++i]);
    else
      keep(flags[i]);
  }
}

std::string asked_language(const Words& flags) {
  std::string found;
  split_by_language(
      flags, [](const std::string&) {}, [&](std::string language) { found = std::move(language); });
  return found;
}

Words without_language(const Words& flags) {
  Words rest;
  split_by_language(
      flags, [&](const std::string& flag) { rest.push_back(flag); }, [](const std::string&) {});
  return rest;
}

int language_year(std::string_view language) {
  size_t plus = language.find("++");
  if (plus == std::string_view::npos) return 0;
  std::string_view year = language.substr(plus + 2);
  for (auto [name, number] : {std::pair<std::string_view, int>{"0x", 11},
                              {"1y", 14},
                              {"1z", 17},
                              {"2a", 20},
                              {"2b", 23},
                              {"2c", 26}})
    if (year == name) return number;
  return year.size() == 2 ? std::atoi(std::string(year).c_str()) : 0;
}

std::string relocatable_flag(const Words& flags) {
  std::string before;
  for (const std::string& word : flags) {
    if (is_rdc(before) && word == "true") return before + " true";
    const size_t equals = word.find('=');
    const bool asks =
        is_rdc(word.substr(0, equals)) && equals != word.npos && word.substr(equals + 1) == "true";
    if (asks || is_one_of(word, kRelocatable) || names_lto_code(before, word)) return word;
    before = word;
  }
  return "";
}

Error no_relocatable_code(const std::string& flag) {
  return {Fault::Usage, fmt::format("cannot build with {}", flag),
          "kiln does not link relocatable device code, and such a library could not be loaded",
          "leave the flag out, and define the device functions that a kernel calls in its own .cu "
          "or in a header"};
}

}  // namespace kiln::build
