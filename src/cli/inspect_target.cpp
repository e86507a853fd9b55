// SPDX-License-Identifier: Apache-2.0
// Which binaries does a word on the command line stand for?
#include "cli/inspect_target.h"

#include <fmt/format.h>

#include "cli/build_options.h"
#include "cli/commands/bench/bench_process.h"
#include "cli/device_code.h"
#include "project/gpu.h"
#include "project/home.h"
#include "project/manifest.h"

namespace kiln::cli {
namespace {

using std::filesystem::path;

Result<Target> open_source(Context& context, build::Request request, const std::string& word) {
  request.targets = {word};
  TRY(DeviceCode code, compile_device_code(context, request));
  auto files = inspect::open_file(code.fatbin, word);
  // The mapping outlives the name.
  std::error_code ignored;
  std::filesystem::remove_all(code.folder, ignored);
  if (!files) return std::move(files.error());
  return Target{std::move(*files), true, code.source, path(code.source).parent_path()};
}

Result<Target> open_folder(Context& context, build::Request request, const std::string& word,
                           const path& folder) {
  if (!sys::real_files().state(folder / project::kManifestName).is_file()) {
    return Error{Fault::Usage, fmt::format("cannot inspect {}", word),
                 "it is a directory without a kiln.toml", "name a file in it, or a project"};
  }
  request.targets = {word};
  TRY(build::Outcome outcome, build_for(context, request));
  TRY(auto files, inspect::open_file(outcome.file, outcome.file.filename().string()));
  return Target{std::move(files), true, "", folder};
}

// "file.py:kernel": a Triton kernel of a script, as the script launches it.
bool names_triton_kernel(const std::string& word) {
  const size_t colon = word.rfind(':');
  return colon != std::string::npos && word.substr(0, colon).ends_with(".py");
}

// The script runs on the engine until it launches the kernel, since arguments decide what Triton
// compiles.
Result<Target> open_triton_kernel(Context& context, const build::Request& request,
                                  const std::string& word) {
  const size_t colon = word.rfind(':');
  const std::string what = "cannot inspect " + word;
  const path script = context.directory / word.substr(0, colon);
  const std::string kernel = word.substr(colon + 1);
  if (!sys::real_files().state(script).is_file())
    return Error{Fault::Usage, what, "there is no file " + script.string(), "check the path"};
  TRY(const Python python, python_with_torch(context, what));
  TRY(const path folder, sys::make_temporary_folder("kiln-inspect"));
  const path file = folder / (kernel + ".cubin");
  const Json ask{{"script", script.string()},
                 {"kernel", kernel},
                 {"arch", request.arch},
                 {"file", file.string()}};
  context.doing("running " + word.substr(0, colon));
  auto answer = ask_python(python, "kiln._processes.triton_kernel", ask, 0, what, false, context);
  Result<std::vector<inspect::Artifact>> files = std::vector<inspect::Artifact>();
  if (answer)
    files = inspect::open_file(file, word);
  else
    files = std::move(answer.error());
  // The mapping outlives the name.
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!files) return std::move(files.error());
  return Target{std::move(*files), true, script.string(), script.parent_path()};
}

// The folder of the project that this one belongs to; empty where there is none.
path project_above(path folder) {
  for (folder = folder.lexically_normal(); !folder.empty(); folder = folder.parent_path()) {
    if (sys::real_files().state(folder / project::kManifestName).is_file()) return folder;
    if (folder == folder.parent_path()) break;
  }
  return {};
}

}  // namespace

inspect::SourceScope source_scope(const Target& target, const build::Request& request,
                                  const std::vector<std::string>& named, const Context& context) {
  inspect::SourceScope scope;
  for (const path& place : {target.place, context.directory})
    if (path project = place.empty() ? path() : project_above(place); !project.empty())
      scope.projects.push_back(project);
  if (target.compiled && !target.place.empty()) scope.projects.push_back(target.place);
  // kiln's own headers are nobody's secret.
  if (auto home = project::find_home(context.env)) scope.projects.push_back(home->include());
  for (const auto* folders : {&request.includes, &named})
    for (const std::string& folder : *folders) scope.named.push_back(context.directory / folder);
  return scope;
}

Result<Target> open_target(Context& context, build::Request request, const std::string& word,
                           const std::string& member) {
  path file = context.directory / word;
  sys::FileState state = sys::real_files().state(file);
  Target target;
  if (!state.exists && names_triton_kernel(word)) {
    TRY(target, open_triton_kernel(context, request, word));
  } else if (state.is_directory) {
    TRY(target, open_folder(context, std::move(request), word, file));
  } else if (state.exists && (word.ends_with(".cu") || word.ends_with(".cpp"))) {
    TRY(target, open_source(context, std::move(request), word));
  } else if (state.exists || word.find('/') != word.npos || word.find('.') != word.npos) {
    TRY(target.files, inspect::open_file(file, word));
    target.place = file.parent_path();
  } else {
    TRY(path folder,
        inspect::find_package(sys::real_files(), sys::real_processes(), context.env, word));
    TRY(target.files, inspect::open_package(sys::real_files(), folder));
  }
  if (member.empty()) return target;
  std::erase_if(target.files, [&](const inspect::Artifact& one) {
    return one.name.find(member) == one.name.npos;
  });
  if (target.files.empty())
    return Error{Fault::Usage, fmt::format("cannot inspect {}", word),
                 fmt::format("it has no binary with '{}' in its name", member),
                 fmt::format("kiln inspect {}", word)};
  return target;
}

std::vector<uint32_t> gpus_here(const Context& context) {
  std::vector<uint32_t> out;
  for (const project::Arch& arch :
       project::gpu_archs(sys::real_files(), sys::real_processes(), context.env))
    out.push_back(static_cast<uint32_t>(arch.major * 10 + arch.minor));
  return out;
}

}  // namespace kiln::cli
