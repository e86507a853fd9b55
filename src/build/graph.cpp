// SPDX-License-Identifier: Apache-2.0
// Which commands make which files from which?
#include "build/graph.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::build {

namespace {

using Words = std::vector<std::string>;

// Relocated data that is read-only afterwards begins on a page of its own in the file: on aarch64, where a page may
// have 64 KB, that made a library of 78 KB one of 134.
#ifdef __aarch64__
constexpr const char* kRelocations = "-Wl,-z,norelro";
#else
constexpr const char* kRelocations = "-Wl,-z,relro";
#endif

void add(Words& words, std::initializer_list<std::string> more) { words.insert(words.end(), more); }
void add(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

bool is_clang(const project::HostCompiler& host) {
  return host.path.filename().string().find("clang") != std::string::npos;
}

// Reload: a library of a name that is loaded already must not share its inline variables (STB_GNU_UNIQUE) with the
// older one.
Words host_code_flags(const Plan& plan) {
  Words flags = {"-fPIC", "-fvisibility=hidden"};
  if (!is_clang(plan.host)) flags.emplace_back("-fno-gnu-unique");
  return flags;
}

bool wants_symbols(const Plan& plan) {
  const auto asks = [](const Words& flags) {
    return std::any_of(flags.begin(), flags.end(),
                       [](const std::string& flag) { return flag == "-g" || flag == "-G"; });
  };
  return asks(plan.cuda_flags) || asks(plan.cflags) || asks(plan.ldflags);
}

void add_preprocessor_flags(const Plan& plan, Words& words) {
  words.push_back("-DKILN_NAMESPACE=" + plan.name);
  for (const std::string& define : plan.defines) words.push_back("-D" + define);
  for (const fs::path& folder : plan.includes) words.push_back("-I" + folder.string());
  words.push_back("-I" + plan.home.include().string());
}

void add_files(const Source& source, Words& words) {
  std::string staged = std::string(kStaging) + source.key;
  add(words,
      {"-MD", "-MT", "obj/" + source.key + ".o", "-MF", staged + ".d", "-o", staged + ".o", source.file.string()});
}

// CXX may be "ccache g++ -m64": the word that names the compiler is the last before the flags.
std::string compiler_word(const Words& command) {
  auto flag =
      std::find_if(command.begin() + 1, command.end(), [](const std::string& word) { return word.starts_with('-'); });
  return *(flag - 1);
}

Words nvcc_command(const Plan& plan, const Source& source) {
  Words words = plan.nvcc->command;
  add(words, {"-c", "-std=c++20", "-O3", "-lineinfo", "--expt-relaxed-constexpr"});
  if (source.facts.extended_lambda) words.emplace_back("--expt-extended-lambda");
  if (plan.fast_math) words.emplace_back("--use_fast_math");
  if (plan.host.chosen) add(words, {"-ccbin", compiler_word(plan.host.command)});
  add(words, project::gencode_flags(plan.arch));
  size_t archs = plan.arch.sass.size();
  if (archs > 1) words.push_back(fmt::format("--threads={}", std::min<size_t>(archs, 4)));
  add(words, {"-Xcompiler", fmt::format("{}", fmt::join(host_code_flags(plan), ","))});
  add_preprocessor_flags(plan, words);
  add(words, plan.cuda_flags);
  add_files(source, words);
  return words;
}

Words host_command(const Plan& plan, const Source& source) {
  Words words = plan.host.command;
  add(words, {"-c", "-std=c++20", "-O3"});
  add(words, host_code_flags(plan));
  add_preprocessor_flags(plan, words);
  if (plan.nvcc) words.push_back("-I" + (plan.nvcc->path.parent_path().parent_path() / "include").string());
  add(words, plan.cflags);
  add_files(source, words);
  return words;
}

Edge compile_edge(const Plan& plan, const Source& source) {
  Edge edge;
  edge.what = "compile " + source.file.filename().string();
  edge.key = source.key;
  edge.output = "obj/" + source.key + ".o";
  edge.inputs = {source.file.string()};
  edge.implicit = {std::string(kCircumstancesFile)};
  edge.arguments = source.cuda ? nvcc_command(plan, source) : host_command(plan, source);
  edge.writes_depfile = true;
  edge.source = &source;
  return edge;
}

// By the host compiler and not by nvcc, which would add a device link of 0.1 s that these objects do not need. No CUDA
// and no torch library: the runtime in the archive finds both when it runs.
Edge link_edge(const Plan& plan, const std::vector<Edge>& objects) {
  Edge edge;
  edge.key = plan.program ? plan.name : fmt::format("lib{}.so", plan.name);
  edge.what = "link " + edge.key;
  edge.output = "obj/" + edge.key;
  for (const Edge& object : objects) edge.inputs.push_back(object.output);
  std::string archive = plan.home.runtime_archive().string();
  edge.implicit = {archive, std::string(kCircumstancesFile)};
  edge.arguments = plan.host.command;
  if (!plan.program) edge.arguments.emplace_back("-shared");
  add(edge.arguments, {"-o", std::string(kStaging) + edge.key});
  add(edge.arguments, edge.inputs);
  add(edge.arguments, {archive, "-Wl,--gc-sections", kRelocations, "-Wl,--as-needed"});
  // The symbol table is 23 of 92 KB for one float op, and only a debugger reads it.
  if (!plan.program && !wants_symbols(plan)) edge.arguments.emplace_back("-Wl,-s");
  // Without pages of their own for code and data around it: 4 of 85 KB for one float op on x86_64.
  edge.arguments.emplace_back("-Wl,-z,noseparate-code");
  // The runtime keeps what a library registered until the process ends.
  if (!plan.program) edge.arguments.emplace_back("-Wl,-z,nodelete");
  add(edge.arguments, plan.ldflags);
  // A machine may have libstdc++.a alone beside g++; copied in, it would bring 100 KB and a newer glibc.
  if (!is_clang(plan.host)) edge.arguments.emplace_back("-l:libstdc++.so.6");
  add(edge.arguments, {"-ldl", "-lpthread"});
  return edge;
}

}  // namespace

Graph make_graph(const Plan& plan) {
  Graph graph;
  for (const Source& source : plan.sources) graph.edges.push_back(compile_edge(plan, source));
  graph.edges.push_back(link_edge(plan, graph.edges));
  return graph;
}

}  // namespace kiln::build
