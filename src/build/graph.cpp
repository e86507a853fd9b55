// SPDX-License-Identifier: Apache-2.0
// Which commands make which files from which?
#include "build/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "build/compat.h"

namespace kiln::build {

namespace {

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
  Words flags = {"-fPIC"};
  // A source that uses Python's C API may define its PyInit_ function by hand, without a mark that exports it.
  bool by_hand = std::find(plan.leaked.begin(), plan.leaked.end(), "Python.h") != plan.leaked.end();
  if (!by_hand) flags.emplace_back("-fvisibility=hidden");
  if (!is_clang(plan.host)) flags.emplace_back("-fno-gnu-unique");
  return flags;
}

// torch.utils.cpp_extension compiles as C++17, and the same source must mean the same here.
std::string language_flag(const Plan& plan, const Words& flags) {
  for (const std::string& flag : flags)
    if (flag.starts_with("-std=")) return flag;
  return plan.torch == TorchHeaders::None ? "-std=c++20" : "-std=c++17";
}

Words without_language(const Words& flags) {
  Words rest;
  for (const std::string& flag : flags)
    if (!flag.starts_with("-std=")) rest.push_back(flag);
  return rest;
}

void add_preprocessor_flags(const Plan& plan, Words& words) {
  words.push_back("-DKILN_NAMESPACE=" + plan.name);
  for (const std::string& define : plan.defines) words.push_back("-D" + define);
  for (const fs::path& folder : plan.includes) words.push_back("-I" + folder.string());
  words.push_back("-I" + plan.home.include().string());
}

std::string staged(std::string_view name) { return std::string(kStaging) + std::string(name); }
std::string in_obj(std::string_view name) { return "obj/" + std::string(name); }

// CXX may be "ccache g++ -m64": the word that names the compiler is the last before the flags.
std::string compiler_word(const Words& command) {
  auto flag =
      std::find_if(command.begin() + 1, command.end(), [](const std::string& word) { return word.starts_with('-'); });
  return *(flag - 1);
}

void add_depfile(Words& words, const std::string& target, const std::string& key) {
  add(words, {"-MD", "-MT", in_obj(target), "-MF", staged(key + ".d")});
}

// What steps of one plan share.
Step new_step(const Plan& plan, const Facts& facts, StepKind kind) {
  Step step;
  step.kind = kind;
  step.circumstances = facts.circumstances;
  step.findings_fail = plan.findings_fail;
  return step;
}

Step source_step(const Plan& plan, const Facts& facts, StepKind kind, const Source& source) {
  Step step = new_step(plan, facts, kind);
  step.source = source.file.string();
  step.shown = source.shown;
  return step;
}

// In the order in which the preprocessor of `command` looks: its own options, the environment's, the built-in ones.
std::vector<std::string> search_list(const Plan& plan, const std::vector<std::string>& built_in, const Words& command) {
  std::vector<std::string> quoted, user, system;
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    bool next = i + 1 < command.size();
    if (word == "-I" && next)
      user.push_back(command[++i]);
    else if (word == "-isystem" && next)
      system.push_back(command[++i]);
    else if (word == "-iquote" && next)
      quoted.push_back(command[++i]);
    else if (word.starts_with("-I"))
      user.push_back(word.substr(2));
    else if (word.starts_with("-isystem"))
      system.push_back(word.substr(8));
  }
  std::vector<std::string> all = quoted;
  add(all, user);
  add(all, plan.cpath);
  add(all, system);
  add(all, built_in);
  for (std::string& folder : all) folder = (plan.build_dir / folder).lexically_normal().string();
  return all;
}

// __FILE__ is the path within the project; a line table holds the canonical one.
void add_path_maps(const Plan& plan, Words& words, std::string_view option) {
  for (const Root& root : plan.roots)
    words.push_back(
        fmt::format("{}={}/={}", option, root.real, option == "-fmacro-prefix-map" ? "" : root.canonical + "/"));
}

// ---- one .cu by nvcc's programs

class CudaSteps {
 public:
  CudaSteps(const Plan& plan, const Facts& facts, const Source& source, const Recipe& recipe)
      : plan_(plan), facts_(facts), source_(source), recipe_(recipe) {}

  void add_to(Graph& graph) const {
    graph.files.emplace_back(in_obj(source_.key + ".module_id"), module_id());
    graph.files.emplace_back(in_obj(source_.key + ".fatbin.c"), fat_binary_declaration());
    graph.steps.push_back(front());  // the longest way begins first
    for (const DeviceRecipe& device : recipe_.devices) graph.steps.push_back(device_step(device));
    graph.steps.push_back(object());
    graph.steps.push_back(fat());
  }

 private:
  std::string symbol() const { return "kiln_fatbin_" + hash_hex(source_.key).substr(0, 16); }

  std::string canonical_source() const { return canonical_path(plan_.roots, source_.file.string()); }

  // What cudafe++ would write from the time and the path: a name that anonymous namespaces get.
  std::string module_id() const {
    std::string name = source_.file.filename().string();
    for (char& c : name)
      if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))) c = '_';
    std::string hash = hash_hex(canonical_source() + "\n" + plan_.name);
    return fmt::format("_{}_{}_{}_{}", hash.substr(0, 8), name.size(), name, hash.substr(8, 8));
  }

  // In the place of the file that fatbinary writes: the host object refers to the fat binary by name, so that it need
  // not wait for it, nor be made anew with it.
  std::string fat_binary_declaration() const {
    return fmt::format(
        "#include \"fatbinary_section.h\"\n"
        "extern \"C\" {{\n"
        "extern const unsigned long long {}[] __attribute__((visibility(\"hidden\")));\n"
        "static const __fatBinC_Wrapper_t __fatDeviceText __attribute__((aligned(8)))\n"
        "    __attribute__((section(\".nvFatBinSegment\"))) = {{0x466243b1, 1, {}, 0}};\n"
        "}}\n",
        symbol(), symbol());
  }

  // A role's file: one that this step makes is staged, the rest is where other steps left it.
  std::string file_of(std::string_view role, const Words& made_here) const {
    std::string name = source_.key + "." + std::string(role);
    if (role == "stub.c" || role == "fatbin.c") return name;  // names in an #include beside the including file
    if (role == recipe_.stub_compute + ".stub.c") name = source_.key + ".stub.c";
    if (role == "fatbin") return staged(name);
    bool is_made = std::find(made_here.begin(), made_here.end(), role) != made_here.end();
    return is_made ? staged(name) : in_obj(name);
  }

  Words filled(const Words& words, const Words& made_here, const std::string& source_word) const {
    Words out;
    for (const std::string& word : words) {
      size_t at = word.find(kFile);
      size_t source_at = word.find(kSource);
      if (at != std::string::npos)
        out.push_back(word.substr(0, at) + file_of(word.substr(at + kFile.size()), made_here));
      else if (source_at != std::string::npos)
        out.push_back(word.substr(0, source_at) + source_word);
      else
        out.push_back(word);
    }
    return out;
  }

  Words preprocess_command(const Words& recipe, const Words& made_here, const Step& step) const {
    Words words = filled(recipe, made_here, source_.file.string());
    words[0] = program(words[0]);
    Words more;
    add_depfile(more, step.outputs[0], step.key);
    add_path_maps(plan_, more, "-fmacro-prefix-map");
    words.insert(words.begin() + 1, more.begin(), more.end());
    return words;
  }

  Words inner_command(const Words& recipe, const Words& made_here) const {
    Words words = filled(recipe, made_here, canonical_source());
    words[0] = program(words[0]);
    return words;
  }

  // As nvcc would find it: along the PATH that it sets.
  std::string program(const std::string& word) const {
    if (word.find('/') != std::string::npos) return word;
    for (const auto& [name, value] : recipe_.env)
      if (name == "PATH")
        for (std::string_view folder : text::split(value, ':')) {
          fs::path candidate = fs::path(folder) / word;
          if (plan_.is_program(candidate)) return candidate.lexically_normal().string();
        }
    return word;
  }

  Step front() const {
    Step step = source_step(plan_, facts_, StepKind::Front, source_);
    step.what = "parse " + source_.file.filename().string() + " for the host";
    step.key = source_.key + ".front";
    step.outputs = {source_.key + ".cpp"};
    step.commands = {preprocess_command(recipe_.preprocess, {"ii"}, step),
                     inner_command(recipe_.cudafe, {"ii", "cpp"})};
    step.preprocessed = source_.key + ".ii";
    step.inputs = {in_obj(source_.key + ".module_id")};
    finish(step);
    return step;
  }

  Step device_step(const DeviceRecipe& device) const {
    const std::string& compute = device.compute;
    Step step = source_step(plan_, facts_, StepKind::Device, source_);
    step.what = fmt::format("compile {} for compute_{}", source_.file.filename().string(), compute);
    step.key = fmt::format("{}.compute_{}", source_.key, compute);
    step.arch = compute;
    Words made = {compute + ".ii", compute + ".ptx", compute + ".c", compute + ".gpu", compute + ".stub.c"};
    step.outputs = {fmt::format("{}.{}.ptx", source_.key, compute)};
    for (const Assembly& assembly : device.assemblies) {
      std::string role = fmt::format("{}.sm_{}.cubin", compute, assembly.sm);
      made.push_back(role);
      step.outputs.push_back(source_.key + "." + role);
    }
    if (compute == recipe_.stub_compute) step.outputs.push_back(source_.key + ".stub.c");
    step.commands = {preprocess_command(device.preprocess, made, step), inner_command(device.cicc, made)};
    for (const Assembly& assembly : device.assemblies) {
      Words words = inner_command(assembly.ptxas, made);
      words.insert(words.begin() + 1, "--warn-on-spills");
      step.commands.push_back(std::move(words));
    }
    step.preprocessed = fmt::format("{}.{}.ii", source_.key, compute);
    step.inputs = {in_obj(source_.key + ".module_id")};
    finish(step);
    return step;
  }

  Step object() const {
    Step step = source_step(plan_, facts_, StepKind::Object, source_);
    step.what = "compile " + source_.file.filename().string() + " for the host";
    step.key = source_.key + ".o";
    step.outputs = {source_.key + ".o"};
    Words words = filled(recipe_.compile, {"o"}, canonical_source());
    words[0] = program(words[0]);
    Words more;
    add_depfile(more, step.outputs[0], step.key);
    if (!plan_.roots.empty()) more.push_back(fmt::format("-fdebug-prefix-map={}=.", plan_.build_dir.string()));
    words.insert(words.begin() + 1, more.begin(), more.end());
    step.commands = {std::move(words)};
    for (const char* ending : {".cpp", ".stub.c", ".fatbin.c"}) step.inputs.push_back(in_obj(source_.key + ending));
    finish(step);
    return step;
  }

  Step fat() const {
    Step step = source_step(plan_, facts_, StepKind::Fat, source_);
    step.what = "pack the device code of " + source_.file.filename().string();
    step.key = source_.key + ".fat";
    step.outputs = {source_.key + ".fat.o"};
    step.fat_symbol = symbol();
    Words ptx;
    for (const DeviceRecipe& device : recipe_.devices) {
      ptx.push_back(device.compute + ".ptx");
      step.inputs.push_back(in_obj(fmt::format("{}.{}.ptx", source_.key, device.compute)));
      for (const Assembly& one : device.assemblies)
        step.inputs.push_back(in_obj(fmt::format("{}.{}.sm_{}.cubin", source_.key, device.compute, one.sm)));
    }
    Words words = filled(recipe_.fatbinary, ptx, source_.file.filename().string());
    words[0] = program(words[0]);
    step.commands = {std::move(words)};
    finish(step);
    step.writes_depfile = false;
    // The PTX of a release keeps the canonical paths: it says nothing of the machine that made it.
    if (plan_.release) step.roots.clear();
    return step;
  }

  void finish(Step& step) const {
    step.env = recipe_.env;
    step.roots = plan_.roots;
    step.search = search_list(plan_, facts_.cuda_search, step.commands[0]);
    step.writes_depfile = true;
  }

  const Plan& plan_;
  const Facts& facts_;
  const Source& source_;
  const Recipe& recipe_;
};

// ---- the other steps

void add_whole_files(const Source& source, Words& words) {
  add_depfile(words, source.key + ".o", source.key);
  add(words, {"-o", staged(source.key + ".o"), source.file.string()});
}

Step whole_step(const Plan& plan, const Facts& facts, const Source& source) {
  Step step = source_step(plan, facts, source.cuda ? StepKind::Whole : StepKind::Host, source);
  step.what = "compile " + source.file.filename().string();
  step.key = source.key;
  step.outputs = {source.key + ".o"};
  Words words;
  if (source.cuda) {
    words = nvcc_command(plan, source.facts.extended_lambda, true);
  } else {
    words = plan.host.command;
    add(words, {"-c", language_flag(plan, plan.cflags), "-O3"});
    add(words, host_code_flags(plan));
    add_preprocessor_flags(plan, words);
    add(words, torch_compile_flags(plan, false));
    if (!plan.cuda_include.empty()) words.push_back("-I" + plan.cuda_include.string());
    add(words, without_language(plan.cflags));
    add_path_maps(plan, words, "-ffile-prefix-map");
    step.roots = plan.roots;
  }
  add_whole_files(source, words);
  step.commands = {std::move(words)};
  step.search = search_list(plan, facts.search, step.commands[0]);
  step.writes_depfile = true;
  return step;
}

// By the host compiler and not by nvcc, which would add a device link of 0.1 s that these objects do not need. No CUDA
// and no torch library: the runtime in the archive finds both when it runs.
Step link_step(const Plan& plan, const Facts& facts, const std::vector<Step>& steps) {
  Step step = new_step(plan, facts, StepKind::Link);
  step.key = plan.program ? plan.name : fmt::format("lib{}.so", plan.name);
  step.what = "link " + step.key;
  step.outputs = {step.key};
  for (const Step& made : steps)
    for (const std::string& output : made.outputs)
      if (output.ends_with(".o")) step.inputs.push_back(in_obj(output));
  Words words = plan.host.command;
  if (!plan.program) words.emplace_back("-shared");
  add(words, {"-o", staged(step.key)});
  add(words, step.inputs);
  for (const std::string& word : torch_link_words(plan)) {
    words.push_back(word);
    if (word.starts_with('/')) step.inputs.push_back(word);
  }
  std::string archive = plan.home.runtime_archive().string();
  step.inputs.push_back(archive);
  add(words, {archive, "-Wl,--gc-sections", kRelocations, "-Wl,--as-needed"});
  // The symbol table is 23 of 92 KB for one float op, and only a debugger reads it.
  if (!plan.program && !plan.debug) words.emplace_back("-Wl,-s");
  // Without pages of their own for code and data around it: 4 of 85 KB for one float op on x86_64.
  words.emplace_back("-Wl,-z,noseparate-code");
  // The runtime keeps what a library registered until the process ends.
  if (!plan.program) words.emplace_back("-Wl,-z,nodelete");
  // A program may be linked with several op libraries: each has an entry of its own name.
  if (plan.release && !plan.program)
    add(words, {fmt::format("-Wl,-soname,lib{}.so", plan.name),
                fmt::format("-Wl,--defsym=kiln_library_{}=kiln_library", plan.name)});
  add(words, plan.ldflags);
  // Libraries that flags name are inputs too: the linker tells which files it read.
  if (!plan.ldflags.empty() && !is_clang(plan.host)) {
    words.push_back("-Wl,--dependency-file=" + staged(step.key + ".d"));
    step.writes_depfile = true;
  }
  // A machine may have libstdc++.a alone beside g++; copied in, it would bring 100 KB and a newer glibc.
  if (!is_clang(plan.host)) words.emplace_back("-l:libstdc++.so.6");
  add(words, {"-ldl", "-lpthread"});
  step.commands = {std::move(words)};
  return step;
}

}  // namespace

Words nvcc_command(const Plan& plan, bool extended_lambda, bool with_threads) {
  Words words = plan.nvcc->command;
  add(words, {"-c", language_flag(plan, plan.cuda_flags), "-O3"});
  if (!plan.release) words.emplace_back("-lineinfo");
  words.emplace_back("--expt-relaxed-constexpr");
  if (extended_lambda) words.emplace_back("--expt-extended-lambda");
  if (plan.fast_math) words.emplace_back("--use_fast_math");
  if (plan.host.chosen) add(words, {"-ccbin", compiler_word(plan.host.command)});
  add(words, project::gencode_flags(plan.arch));
  size_t archs = plan.arch.sass.size();
  if (archs > 1 && with_threads) words.push_back(fmt::format("--threads={}", std::min<size_t>(archs, 4)));
  add(words, {"-Xcompiler", fmt::format("{}", fmt::join(host_code_flags(plan), ","))});
  add_preprocessor_flags(plan, words);
  add(words, torch_compile_flags(plan, true));
  add(words, without_language(plan.cuda_flags));
  return words;
}

Graph make_graph(const Plan& plan, const Facts& facts) {
  Graph graph;
  for (const Source& source : plan.sources) {
    auto recipe = source.cuda ? facts.recipes.find(source.facts.extended_lambda) : facts.recipes.end();
    if (recipe == facts.recipes.end())
      graph.steps.push_back(whole_step(plan, facts, source));
    else
      CudaSteps(plan, facts, source, recipe->second).add_to(graph);
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
