// SPDX-License-Identifier: Apache-2.0
// Where is what an edit is compared with, and which steps and headers belong to a source?
#include "build/edit/edit_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kiln::build {

namespace {

using Folders = std::vector<std::string>;  // each ends in '/'

// The length of the innermost of the folders that the file is in; 0: in none.
size_t depth_in(const std::string& file, const Folders& folders) {
  size_t depth = 0;
  for (const std::string& folder : folders)
    if (file.starts_with(folder)) depth = std::max(depth, folder.size());
  return depth;
}

void add(Folders& folders, const sys::Files& files, const fs::path& folder) {
  folders.push_back((folder.lexically_normal() / "").string());
  if (auto real = files.real_path(folder)) folders.push_back((*real / "").string());
}

// The toolkit's, kiln's, and those that the compilers look into by themselves, wherever they are
// installed.
Folders known_folders(const Work& work) {
  Folders folders;
  const sys::Files& files = work.world.files;
  add(folders, files, work.plan.nvcc->path.parent_path().parent_path());
  add(folders, files, work.plan.home.include());
  for (const auto* list : {&work.facts.search, &work.facts.cuda_search})
    for (const std::string& folder : *list) {
      bool users = std::any_of(work.plan.cpath.begin(), work.plan.cpath.end(),
                               [&](const std::string& other) {
                                 return fs::path(other).lexically_normal() == fs::path(folder);
                               });
      if (!users) add(folders, files, folder);
    }
  return folders;
}

// Where the user's are: a project may be in one of those, as a toolkit may in the project's .venv.
Folders own_folders(const Work& work, const Source& source) {
  Folders folders;
  add(folders, work.world.files, source.file.parent_path());
  if (!work.plan.project_dir.empty()) add(folders, work.world.files, work.plan.project_dir);
  return folders;
}

}  // namespace

fs::path in_edit(const Work& work, const std::string& name) {
  return work.in_build_dir("edit") / name;
}

const Step* step_of(const Work& work, const Source& source, StepKind kind) {
  for (const Step& step : work.graph.steps)
    if (step.kind == kind && step.source == source.file.string()) return &step;
  return nullptr;
}

std::vector<const Step*> device_steps(const Work& work, const Source& source) {
  std::vector<const Step*> steps;
  for (const Step& step : work.graph.steps)
    if (step.kind == StepKind::Device && step.source == source.file.string())
      steps.push_back(&step);
  return steps;
}

Result<std::map<std::string, std::string>> users_headers(const Work& work, const Source& source) {
  const Folders known = known_folders(work), own = own_folders(work, source);
  std::map<std::string, std::string> headers;
  std::set<std::string> seen = {source.file.string()};
  for (const Step* step : device_steps(work, source)) {
    auto reads = reads_of(work, *step);
    if (!reads)
      return Error{Fault::Work, fmt::format("cannot determine what {} includes", source.shown),
                   "there is no record of the files that its compiler read", "kiln build --fresh"};
    for (const ReadFile& file : reads->files) {
      const std::string& name = file.path;
      if (!seen.insert(name).second) continue;
      // By its path as written, and as it really is: a compiler names its headers by way of
      // "../lib" and of links.
      std::string path = fs::path(name).lexically_normal().string();
      if (depth_in(path, known) == 0)
        if (auto real = work.world.files.real_path(name)) path = real->string();
      if (depth_in(path, known) > depth_in(path, own)) continue;
      TRY(headers[name], work.world.files.read(name));
    }
  }
  return headers;
}

}  // namespace kiln::build
