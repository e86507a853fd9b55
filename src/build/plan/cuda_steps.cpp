// SPDX-License-Identifier: Apache-2.0
// Which steps compile one .cu by nvcc's own programs, the host's chain and each architecture's side
// by side?
#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "build/plan/graph.h"
#include "build/plan/graph_parts.h"

namespace kiln::build {

namespace {

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

  std::string canonical_source() const {
    return canonical_path(plan_.roots, source_.file.string());
  }

  // What cudafe++ would write from the time and the path: a name that anonymous namespaces get.
  std::string module_id() const {
    std::string name = source_.file.filename().string();
    for (char& c : name)
      if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))) c = '_';
    std::string hash = hash_hex(canonical_source() + "\n" + plan_.name);
    return fmt::format("_{}_{}_{}_{}", hash.substr(0, 8), name.size(), name, hash.substr(8, 8));
  }

  // In the place of the file that fatbinary writes: the host object refers to the fat binary by
  // name, so that it need not wait for it, nor be made anew with it.
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
    if (role == "stub.c" || role == "fatbin.c")
      return name;  // names in an #include next to the including file
    if (role == recipe_.stub_compute + ".stub.c") name = source_.key + ".stub.c";
    if (role == "fatbin") return staged(name);
    bool is_made = std::find(made_here.begin(), made_here.end(), role) != made_here.end();
    return is_made ? staged(name) : in_obj(name);
  }

  // nvcc has mixed the user's words with its own: a word is a path where kiln put one in, or by its
  // option.
  Command filled(const Words& words, const Words& made_here, const std::string& source_word) const {
    Command out;
    for (const std::string& word : words) {
      size_t at = word.find(kFile);
      size_t source_at = word.find(kSource);
      if (at != std::string::npos)
        out.push_back(
            path_word(word.substr(0, at) + file_of(word.substr(at + kFile.size()), made_here)));
      else if (source_at != std::string::npos)
        out.push_back(path_word(word.substr(0, source_at) + source_word));
      else if (out.empty())
        out.push_back(path_word(program(word)));
      else
        out.push_back(compiler_word(out.back().text, word));
    }
    return out;
  }

  Command preprocess_command(const Words& recipe, const Words& made_here, const Step& step) const {
    Command words = filled(recipe, made_here, source_.file.string());
    Command more = depfile_words(step.outputs[0], step.key);
    add(more, path_map_words(plan_, "-fmacro-prefix-map"));
    words.insert(words.begin() + 1, more.begin(), more.end());
    return words;
  }

  Command inner_command(const Words& recipe, const Words& made_here) const {
    return filled(recipe, made_here, canonical_source());
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
    step.inputs.push_back(in_obj(source_.key + ".module_id"));
    finish(step);
    return step;
  }

  Step device_step(const DeviceRecipe& device) const {
    const std::string& compute = device.compute;
    Step step = source_step(plan_, facts_, StepKind::Device, source_);
    step.what = fmt::format("compile {} for compute_{}", source_.file.filename().string(), compute);
    step.key = fmt::format("{}.compute_{}", source_.key, compute);
    step.arch = compute;
    Words made = {compute + ".ii", compute + ".ptx", compute + ".c", compute + ".gpu",
                  compute + ".stub.c"};
    step.outputs = {fmt::format("{}.{}.ptx", source_.key, compute)};
    for (const Assembly& assembly : device.assemblies) {
      std::string role = fmt::format("{}.sm_{}.cubin", compute, assembly.sm);
      made.push_back(role);
      step.outputs.push_back(source_.key + "." + role);
    }
    if (compute == recipe_.stub_compute) step.outputs.push_back(source_.key + ".stub.c");
    step.commands = {preprocess_command(device.preprocess, made, step),
                     inner_command(device.cicc, made)};
    for (const Assembly& assembly : device.assemblies) {
      Command words = inner_command(assembly.ptxas, made);
      words.insert(words.begin() + 1, own("--warn-on-spills"));
      step.commands.push_back(std::move(words));
    }
    step.preprocessed = fmt::format("{}.{}.ii", source_.key, compute);
    step.inputs.push_back(in_obj(source_.key + ".module_id"));
    finish(step);
    return step;
  }

  Step object() const {
    Step step = source_step(plan_, facts_, StepKind::Object, source_);
    step.what = "compile " + source_.file.filename().string() + " for the host";
    step.key = source_.key + ".o";
    step.outputs = {source_.key + ".o"};
    Command words = filled(recipe_.compile, {"o"}, canonical_source());
    Command more = depfile_words(step.outputs[0], step.key);
    if (!is_clang(words[0].text)) add(more, assembler_depfile_words(step));
    if (!plan_.roots.empty())
      more.push_back(path_word(fmt::format("-fdebug-prefix-map={}=.", plan_.build_dir.string())));
    words.insert(words.begin() + 1, more.begin(), more.end());
    step.commands = {std::move(words)};
    for (const char* ending : {".cpp", ".stub.c", ".fatbin.c"})
      step.inputs.push_back(in_obj(source_.key + ending));
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
        step.inputs.push_back(
            in_obj(fmt::format("{}.{}.sm_{}.cubin", source_.key, device.compute, one.sm)));
    }
    step.commands = {filled(recipe_.fatbinary, ptx, source_.file.filename().string())};
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

}  // namespace

void add_cuda_steps(Graph& graph, const Plan& plan, const Facts& facts, const Source& source,
                    const Recipe& recipe) {
  CudaSteps(plan, facts, source, recipe).add_to(graph);
}

}  // namespace kiln::build
