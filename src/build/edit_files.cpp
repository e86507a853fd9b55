// SPDX-License-Identifier: Apache-2.0
// Where is what an edit is compared with, and which steps and headers belong to a source?
#include "build/edit_files.h"

#include "build/depfile.h"

namespace kiln::build {

fs::path in_edit(const Work& work, const std::string& name) { return work.in_build_dir("edit") / name; }

const Step* step_of(const Work& work, const Source& source, StepKind kind) {
  for (const Step& step : work.graph.steps)
    if (step.kind == kind && step.source == source.file.string()) return &step;
  return nullptr;
}

std::vector<const Step*> device_steps(const Work& work, const Source& source) {
  std::vector<const Step*> steps;
  for (const Step& step : work.graph.steps)
    if (step.kind == StepKind::Device && step.source == source.file.string()) steps.push_back(&step);
  return steps;
}

Result<std::map<std::string, std::string>> users_headers(const Work& work, const Source& source) {
  std::string toolkit = work.plan.nvcc->path.parent_path().parent_path().string();
  std::map<std::string, std::string> headers;
  for (const Step* step : device_steps(work, source)) {
    TRY(std::string depfile, work.world.files.read(work.in_obj(step->key + ".d")));
    for (const std::string& name : parse_depfile(depfile)) {
      bool known = name.starts_with("/usr/") || name.starts_with(toolkit) || name == source.file.string() ||
                   name.starts_with(work.plan.home.include().string());
      if (known || headers.contains(name)) continue;
      TRY(headers[name], work.world.files.read(name));
    }
  }
  return headers;
}

}  // namespace kiln::build
