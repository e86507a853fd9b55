// SPDX-License-Identifier: Apache-2.0
// Which commands make which files from which?
#include "build/plan/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "build/plan/compat.h"
#include "build/plan/flags.h"
#include "build/plan/graph_parts.h"
#include "build/plan/light_headers.h"

namespace kiln::build {

namespace {

// Relocated data that is read-only afterwards begins on a page of its own in the file: on aarch64,
// where a page may have 64 KB, that made a library of 78 KB one of 134.
#ifdef __aarch64__
constexpr const char* kRelocations = "-Wl,-z,norelro";
#else
constexpr const char* kRelocations = "-Wl,-z,relro";
#endif

// Reload: a library of a name that is loaded already must not share its inline variables
// (STB_GNU_UNIQUE) with the older one.
Words host_code_flags(const Plan& plan) {
  Words flags = {"-fPIC"};
  // A source that uses Python's C API may define its PyInit_ function by hand, without a mark that
  // exports it. Functions that a source declares extern "C" are there for ctypes, as with torch.
  bool by_hand = std::find(plan.leaked.begin(), plan.leaked.end(), "Python.h") != plan.leaked.end();
  if (plan.torch != TorchHeaders::None)
    for (const Source& source : plan.sources) by_hand |= source.facts.extern_c;
  if (!by_hand) flags.emplace_back("-fvisibility=hidden");
  if (!is_clang(plan.host.path)) flags.emplace_back("-fno-gnu-unique");
  return flags;
}

// torch.utils.cpp_extension compiled as C++17 before torch 2.13, nvcc does, and what was written
// for them must mean the same here: some sources are right as C++17 and not as C++20, or end nvcc's
// parser. What includes kiln's headers was written for kiln, and what has words that C++20 alone
// has for a newer torch.
std::string language_flag(const Plan& plan, const Words& flags) {
  const std::string asked = asked_language(flags);
  if (plan.torch == TorchHeaders::Torchs)
    return language_year(asked) >= plan.torch_language
               ? "-std=" + asked
               : fmt::format("-std=c++{}", plan.torch_language);
  if (!asked.empty()) return "-std=" + asked;
  bool of_others = plan.program, only_20 = false;
  for (const Source& source : plan.sources) {
    of_others &= !source.facts.kiln_header;
    only_20 |= source.facts.only_cxx20;
  }
  const bool for_17 = plan.torch != TorchHeaders::None || of_others;
  return for_17 && !only_20 ? "-std=c++17" : "-std=c++20";
}

Command other_flags(const Words& flags) {
  Command rest;
  for (std::string& flag : without_language(flags)) rest.push_back(users(std::move(flag)));
  return rest;
}

void add_preprocessor_flags(const Plan& plan, Command& command) {
  command.push_back(own("-DKILN_NAMESPACE=" + plan.name));
  for (const std::string& define : plan.defines) command.push_back(users("-D" + define));
  for (const fs::path& folder : plan.includes) command.push_back(path_word("-I" + folder.string()));
  command.push_back(path_word("-I" + plan.home.include().string()));
}

// Programs are paths; flags behind them, as of CXX="g++ -DROOT=...", are the user's.
Command program_words(const Words& command) {
  Command out;
  for (const std::string& word : command)
    out.push_back(word.starts_with('-') ? users(word) : path_word(word));
  return out;
}

void add_torch_flags(const Plan& plan, bool cuda, Command& command) {
  for (const std::string& flag : torch_compile_flags(plan, cuda))
    command.push_back(compiler_word(command.back().text, flag));
}

// CXX may be "ccache g++ -m64": the word that names the compiler is the last before the flags.
std::string compiler_of(const Words& command) {
  auto flag = std::find_if(command.begin() + 1, command.end(),
                           [](const std::string& word) { return word.starts_with('-'); });
  return *(flag - 1);
}

// A launcher (ccache) may answer without the compiler, and then no assembler tells what it read.
bool tells_what_it_assembles(const Plan& plan) {
  return !is_clang(plan.host.path) && compiler_of(plan.host.command) == plan.host.command[0];
}

// Optimizing pybind11's templates takes longer than reading them (small class: 5.6 s of 8.9), and a
// binding spends its time in what it calls. A level among the user's own flags comes later and
// wins; torch's load() gives C++ sources none at all.
std::string optimization(const Plan& plan) {
  const bool binds =
      std::find(plan.leaked.begin(), plan.leaked.end(), kPybindHeader) != plan.leaked.end();
  return plan.torch == TorchHeaders::Compat && binds ? "-Og" : "-O3";
}

Command host_command(const Plan& plan, Step& step) {
  Command words = program_words(plan.host.command);
  add(words, {own("-c"), own(language_flag(plan, plan.cflags)), own(optimization(plan))});
  for (std::string& flag : host_code_flags(plan)) words.push_back(own(std::move(flag)));
  add_preprocessor_flags(plan, words);
  add_torch_flags(plan, false, words);
  if (!plan.cuda_include.empty()) words.push_back(path_word("-I" + plan.cuda_include.string()));
  add(words, other_flags(plan.cflags));
  add(words, path_map_words(plan, "-ffile-prefix-map"));
  if (tells_what_it_assembles(plan)) add(words, assembler_depfile_words(step));
  return words;
}

Step whole_step(const Plan& plan, const Facts& facts, const Source& source) {
  Step step = source_step(plan, facts, source.cuda ? StepKind::Whole : StepKind::Host, source);
  step.what = "compile " + source.file.filename().string();
  step.key = source.key;
  step.outputs = {source.key + ".o"};
  if (!source.cuda) step.roots = plan.roots;
  Command words = source.cuda ? nvcc_command(plan, source.facts.extended_lambda, true)
                              : host_command(plan, step);
  add(words, depfile_words(step.outputs[0], step.key));
  add(words, {own("-o"), path_word(staged(step.outputs[0])), path_word(source.file.string())});
  step.commands = {std::move(words)};
  Command looked_at = step.commands[0];
  if (source.cuda)
    for (const std::string& flag : plan.environment_flags) looked_at.push_back(users(flag));
  step.search = search_list(plan, facts.search, looked_at);
  step.writes_depfile = true;
  return step;
}

// Where the linker looks, in order: what flags and LIBRARY_PATH name, and, where flags name
// libraries, its own folders. (That a library appears in a folder of the compiler before the
// compiler's own is not looked for.)
std::vector<std::string> library_folders(const Plan& plan, const Facts& facts, const Words& words) {
  std::vector<std::string> folders;
  bool names_libraries = false;
  for (size_t i = 0; i < words.size(); ++i)
    for (std::string_view piece : text::split(words[i], ',')) {
      names_libraries |= piece.starts_with("-l") || piece.starts_with("--library=");
      if (piece == "-L" && i + 1 < words.size())
        folders.push_back(words[i + 1]);
      else if (piece.starts_with("-L"))
        folders.emplace_back(piece.substr(2));
      if (piece.starts_with("--library-path=")) folders.emplace_back(piece.substr(15));
    }
  for (const std::string& folder : facts.library_search) {
    const bool named = std::any_of(plan.library_path.begin(), plan.library_path.end(),
                                   [&](const std::string& one) { return folder.starts_with(one); });
    if (named || names_libraries) folders.push_back(folder);
  }
  // gcc's own list has a slash behind each.
  for (std::string& folder : folders)
    folder = (plan.build_dir / folder / "").lexically_normal().parent_path().string();
  return folders;
}

// The linker tells which files it read: libraries that flags name, and the compiler's own, which
// change with an update that leaves g++ and ld alone.
void have_linker_tell(const Plan& plan, const Facts& facts, Step& step, Command& words) {
  const Words torchs = torch_link_words(plan);
  const bool names_files = !plan.ldflags.empty() || torchs.size() > 1;
  if (facts.linker_tells_files) {
    add(words, {own("-Wl,--dependency-file=" + staged(step.key + ".d"))});
    step.writes_depfile = true;
    Words flags = torchs;
    flags.insert(flags.end(), plan.ldflags.begin(), plan.ldflags.end());
    step.libraries = library_folders(plan, facts, flags);
  } else if (names_files && step.uncached.empty()) {
    step.uncached = "this linker does not report which libraries it reads";
  }
}

// By the host compiler and not by nvcc, which would add a device link of 0.1 s that these objects
// do not need. No CUDA and no torch library: the runtime in the archive finds both when it runs.
Step link_step(const Plan& plan, const Facts& facts, const std::vector<Step>& steps) {
  Step step = new_step(plan, facts, StepKind::Link, facts.link_flags);
  step.key = plan.program ? plan.name : fmt::format("lib{}.so", plan.name);
  step.what = "link " + step.key;
  step.outputs = {step.key};
  step.env = plan.link_variables;
  Command words = program_words(plan.host.command);
  if (!plan.program) words.push_back(own("-shared"));
  add(words, {own("-o"), path_word(staged(step.key))});
  for (const Step& made : steps)
    for (const std::string& output : made.outputs)
      if (output.ends_with(".o")) {
        step.inputs.push_back(in_obj(output));
        words.push_back(path_word(in_obj(output)));
      }
  for (const std::string& word : torch_link_words(plan)) {
    words.push_back(path_word(word));
    if (word.starts_with('/')) step.inputs.push_back(word);
  }
  std::string archive = plan.home.runtime_archive().string();
  step.inputs.push_back(archive);
  add(words,
      {path_word(archive), own("-Wl,--gc-sections"), own(kRelocations), own("-Wl,--as-needed")});
  // The symbol table is 23 of 92 KB for one float op, and only a debugger reads it.
  if (!plan.program && !plan.debug) words.push_back(own("-Wl,-s"));
  // Without pages of their own for code and data around it: 4 of 85 KB for one float op on x86_64.
  words.push_back(own("-Wl,-z,noseparate-code"));
  // The runtime keeps what a library registered until the process ends.
  if (!plan.program) words.push_back(own("-Wl,-z,nodelete"));
  // A program may be linked with several op libraries: each has an entry of its own name.
  if (plan.release && !plan.program)
    add(words, {own(fmt::format("-Wl,-soname,lib{}.so", plan.name)),
                own(fmt::format("-Wl,--defsym=kiln_library_{}=kiln_library", plan.name))});
  for (const std::string& flag : plan.ldflags) words.push_back(users(flag));
  have_linker_tell(plan, facts, step, words);
  // A machine may have libstdc++.a alone next to g++; copied in, it would bring 100 KB and a newer
  // glibc.
  if (!is_clang(plan.host.path)) words.push_back(own("-l:libstdc++.so.6"));
  add(words, {own("-ldl"), own("-lpthread")});
  step.commands = {std::move(words)};
  return step;
}

}  // namespace

bool is_clang(const fs::path& compiler) {
  return compiler.filename().string().find("clang") != std::string::npos;
}

Step new_step(const Plan& plan, const Facts& facts, StepKind kind, const FlagFacts& flags) {
  Step step;
  step.kind = kind;
  step.circumstances = facts.circumstances;
  step.findings_fail = plan.findings_fail;
  step.limit_s = plan.limit_s;
  step.memory_bytes = plan.memory_bytes;
  step.uncached = flags.opaque;
  step.inputs = flags.files;
  // gcc reads a file "specs" there.
  if (kind != StepKind::Link) step.libraries = library_folders(plan, facts, {});
  return step;
}

Step source_step(const Plan& plan, const Facts& facts, StepKind kind, const Source& source) {
  Step step = new_step(plan, facts, kind, source.cuda ? facts.cuda_flags : facts.host_flags);
  step.source = source.file.string();
  step.shown = source.shown;
  return step;
}

Command depfile_words(const std::string& target, const std::string& key) {
  return {own("-MD"), own("-MT"), own(in_obj(target)), own("-MF"), path_word(staged(key + ".d"))};
}

Command assembler_depfile_words(Step& step) {
  step.writes_assembler_depfile = true;
  return {own("-Xassembler"), own("--MD"), own("-Xassembler"),
          path_word(staged(step.key + ".as.d"))};
}

Command path_map_words(const Plan& plan, std::string_view option) {
  Command words;
  for (const Root& root : plan.roots)
    words.push_back(
        path_word(fmt::format("{}={}/={}", option, root.real,
                              option == "-fmacro-prefix-map" ? "" : root.canonical + "/")));
  return words;
}

std::vector<std::string> search_list(const Plan& plan, const std::vector<std::string>& built_in,
                                     const Command& command) {
  std::vector<std::string> all, user, system, last;
  const std::pair<std::string_view, std::vector<std::string>*> options[] = {
      {"-iquote", &all}, {"-isystem", &system}, {"-idirafter", &last}, {"-I", &user}};
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    for (const auto& [option, list] : options) {
      if (!word.starts_with(option)) continue;
      if (word.size() > option.size())
        list->push_back(word.substr(option.size()));
      else if (i + 1 < command.size())
        list->push_back(command[++i].text);
      break;
    }
  }
  for (const std::vector<std::string>* list :
       {&std::as_const(user), &plan.cpath, &std::as_const(system), &built_in, &std::as_const(last)})
    all.insert(all.end(), list->begin(), list->end());
  for (std::string& folder : all) folder = (plan.build_dir / folder).lexically_normal().string();
  return all;
}

Command nvcc_command(const Plan& plan, bool extended_lambda, bool with_threads) {
  Command words = program_words(plan.nvcc->command);
  add(words, {own("-c"), own(language_flag(plan, plan.cuda_flags)), own("-O3")});
  if (!plan.release) words.push_back(own("-lineinfo"));
  words.push_back(own("--expt-relaxed-constexpr"));
  if (extended_lambda) words.push_back(own("--expt-extended-lambda"));
  if (plan.fast_math) words.push_back(own("--use_fast_math"));
  if (plan.host.chosen) add(words, {own("-ccbin"), path_word(compiler_of(plan.host.command))});
  for (std::string& flag : project::gencode_flags(plan.arch)) words.push_back(own(std::move(flag)));
  size_t archs = plan.arch.sass.size();
  if (archs > 1 && with_threads)
    words.push_back(own(fmt::format("--threads={}", std::min<size_t>(archs, 4))));
  add(words, {own("-Xcompiler"), own(fmt::format("{}", fmt::join(host_code_flags(plan), ",")))});
  add_preprocessor_flags(plan, words);
  add_torch_flags(plan, true, words);
  add(words, other_flags(plan.cuda_flags));
  return words;
}

Graph make_graph(const Plan& plan, const Facts& facts) {
  Graph graph;
  for (const Source& source : plan.sources) {
    auto recipe =
        source.cuda ? facts.recipes.find(source.facts.extended_lambda) : facts.recipes.end();
    if (recipe == facts.recipes.end())
      graph.steps.push_back(whole_step(plan, facts, source));
    else
      add_cuda_steps(graph, plan, facts, source, recipe->second);
  }
  graph.steps.push_back(link_step(plan, facts, graph.steps));
  return graph;
}

std::string shown_intent(const Plan& plan) {
  std::string text;
  for (const Step& step : make_graph(plan, {}).steps)
    for (const std::string& line : shown_commands(step, "obj")) text += line + "\n";
  return text;
}

}  // namespace kiln::build
