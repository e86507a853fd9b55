// SPDX-License-Identifier: Apache-2.0
// How does a .cu become its device code alone?
#include "cli/device_code.h"

#include <fmt/format.h>

#include "base/text.h"
#include "build/plan/plan.h"
#include "inspect/artifact.h"

namespace kiln::cli {
namespace {

using std::filesystem::path;

bool includes_torch(const std::string& text) {
  for (std::string_view line : text::lines(text)) {
    line = text::trim(line);
    if (!line.starts_with('#') || line.find("include") == line.npos) continue;
    for (std::string_view folder :
         {"<torch/", "\"torch/", "<ATen/", "\"ATen/", "<c10/", "\"c10/", "<pybind11/"})
      if (line.find(folder) != line.npos) return true;
  }
  return false;
}

// Python.h is needed by torch/extension.h.
Status add_torch_folders(const Context& context, std::vector<std::string>& words) {
  TRY(path torch,
      inspect::find_package(sys::real_files(), sys::real_processes(), context.env, "torch"));
  // As the system's: their warnings are none of the author's.
  words.insert(words.end(), {"-isystem", (torch / "include").string()});
  words.insert(words.end(), {"-isystem", (torch / "include/torch/csrc/api/include").string()});
  path python = sys::find_program(sys::real_files(), "python3",
                                  context.env.get("PATH").value_or("/usr/bin:/bin"));
  sys::ProcessSpec spec;
  spec.arguments = {python.string(), "-c",
                    "import sysconfig; print(sysconfig.get_paths()['include'])"};
  TRY(auto answer, sys::real_processes().run(spec));
  words.insert(words.end(), {"-isystem", std::string(text::trim(answer.out))});
  words.push_back("-DTORCH_API_INCLUDE_EXTENSION_H");
  words.push_back("-DTORCH_EXTENSION_NAME=extension");
  return {};
}

}  // namespace

Result<DeviceCode> compile_device_code(Context& context, build::Request request) {
  request.directory = context.directory;
  build::World world{sys::real_files(), sys::real_processes(), context.env, {}, {}, {}};
  TRY(build::Plan plan, build::make_plan(request, world));
  const build::Source& source = plan.sources.front();
  TRY(std::string content, sys::real_files().read(source.file));
  DeviceCode out;
  out.source = source.file.string();
  TRY(out.folder, sys::make_temporary_folder("kiln-inspect"));
  out.fatbin = out.folder / (source.file.stem().string() + ".fatbin");
  std::vector<std::string> words = plan.nvcc->command;
  // As a build takes it: a program that does not include kiln's headers is nvcc's C++17.
  const bool of_others = source.facts.defines_main && !source.facts.kiln_header;
  const char* language = of_others ? "-std=c++17" : "-std=c++20";
  for (const char* word : {"-fatbin", language, "-O3", "-lineinfo", "--expt-relaxed-constexpr"})
    words.emplace_back(word);
  if (source.facts.extended_lambda) words.emplace_back("--expt-extended-lambda");
  if (plan.fast_math) words.emplace_back("--use_fast_math");
  for (const std::string& flag : project::gencode_flags(plan.arch)) words.push_back(flag);
  words.push_back("-DKILN_NAMESPACE=" + plan.name);
  for (const std::string& define : plan.defines) words.push_back("-D" + define);
  for (const path& folder : plan.includes) words.push_back("-I" + folder.string());
  words.push_back("-I" + plan.home.include().string());
  if (includes_torch(content)) CHECK_OK(add_torch_folders(context, words));
  words.insert(words.end(), plan.cuda_flags.begin(), plan.cuda_flags.end());
  words.insert(words.end(), {"-o", out.fatbin.string(), source.file.string()});
  if (context.verbose) context.note("+ " + text::join(words, " "));
  sys::ProcessSpec spec;
  spec.arguments = words;
  auto result = sys::real_processes().run(spec);
  if (result && result->exit_code == 0) {
    if (!result->out.empty()) context.note(text::trim(result->out));
    return out;
  }
  std::error_code ignored;
  std::filesystem::remove_all(out.folder, ignored);
  if (!result) return std::move(result.error());
  return Error{Fault::Work, fmt::format("cannot compile {}", source.shown), result->out,
               "fix the source; kiln inspect -v prints the command line"};
}

}  // namespace kiln::cli
