// SPDX-License-Identifier: Apache-2.0
// What does a project compile, with which flags, and how long did it take last time? Read, never
// run: setup.py may do anything.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/ascii.h"
#include "base/text.h"
#include "build/plan/source_scan.h"
#include "doctor/advice.h"
#include "doctor/gather.h"
#include "project/manifest.h"

namespace kiln::doctor {

namespace {

using sys::fs::path;

constexpr size_t kMostSources = 400;
constexpr size_t kMostShown = 5;
constexpr int kDepth = 5;
// Headers that bring ATen, the dispatcher or pybind with them.
constexpr std::string_view kHeavyHeaders[] = {
    "torch/extension.h", "torch/torch.h", "torch/all.h",   "torch/script.h", "torch/library.h",
    "torch/types.h",     "ATen/ATen.h",   "ATen/Tensor.h", "pybind11/"};
bool is_source(std::string_view name) {
  for (std::string_view end : {".cu", ".cpp", ".cc", ".cxx", ".cuh", ".c"})
    if (name.ends_with(end)) return true;
  return false;
}

bool is_left_out(std::string_view name) {
  for (std::string_view one :
       {"build", "dist", "node_modules", "third_party", "site-packages", "venv", "tests"})
    if (name == one) return true;
  return name.starts_with(".") || name.ends_with(".egg-info");
}

void collect(const Outside& outside, const path& folder, const path& root, int depth,
             Project& project, std::vector<path>& logs) {
  for (const std::string& name : outside.files.list(folder)) {
    path file = folder / name;
    if (outside.files.state(file).is_directory) {
      bool build = name == "build" || name.starts_with("temp.") || name.starts_with("bdist") ||
                   folder.filename() == "build";
      if (depth > 0 && (build || !is_left_out(name)))
        collect(outside, file, root, depth - 1, project, logs);
      continue;
    }
    if (name == ".ninja_log") logs.push_back(file);
    if (!is_source(name) || project.sources.size() >= kMostSources) continue;
    if (file.lexically_relative(root).begin()->string() == "build") continue;  // what a build made
    if (auto text = outside.files.read(file))
      project.sources.push_back(scan_project_source(file.lexically_relative(root).string(), *text));
  }
}

// Comments hold code that is not compiled: "// #include <torch/extension.h>".
std::string_view without_line_comment(std::string_view line) {
  return line.substr(0, line.find("//"));
}

bool names_torch(std::string_view requires_line) {
  for (std::string_view word : text::split_any(requires_line, " \t\"'[],=<>~!;"))
    if (word == "torch") return true;
  return false;
}

}  // namespace

SourceFile scan_project_source(std::string_view name, std::string_view text) {
  SourceFile source;
  source.name = std::string(name);
  source.cuda = name.ends_with(".cu") || name.ends_with(".cuh");
  for (std::string_view full : text::lines(text)) {
    std::string_view line = text::trim(without_line_comment(full));
    if (line.starts_with("#") && line.find("include") != line.npos) {
      size_t begin = line.find_first_of("<\"");
      if (begin == line.npos) continue;
      std::string_view header = line.substr(begin + 1);
      header = header.substr(0, header.find_first_of(">\""));
      for (std::string_view heavy : kHeavyHeaders)
        if (header == heavy || (heavy.ends_with("/") && header.starts_with(heavy)))
          source.heavy.emplace_back(header);
    }
  }
  build::SourceFacts scanned = build::scan_text(text);
  source.variant_instruction =
      scanned.hopper_only.empty() ? scanned.blackwell_only : scanned.hopper_only;
  return source;
}

void scan_setup_py(std::string_view text, Project& project) {
  std::string code;
  for (std::string_view line : text::lines(text))
    code += std::string(line.substr(0, line.find('#'))) + "\n";
  bool imports_kiln = false;
  for (std::string_view line : text::lines(code)) {
    std::string_view trimmed = text::trim(line);
    for (std::string_view begin : {"from kiln ", "from kiln.", "import kiln ", "import kiln."})
      imports_kiln |= (std::string(trimmed) + " ").starts_with(begin);
    if (trimmed.starts_with("import torch") || trimmed.starts_with("from torch"))
      project.imports_torch = true;
  }
  std::string dense;
  for (char c : code)
    if (!is_blank(c)) dense += c;
  // kiln's classes under torch's names: kiln builds it, with its own headers, ninja and cache.
  project.kiln |= imports_kiln && (code.find("torch.utils.cpp_extension") == code.npos ||
                                   code.find("patch_torch") != code.npos);
  project.no_ninja |= dense.find("use_ninja=False") != dense.npos;
  for (std::string_view word : text::split_any(code, " \t\n\"',()[]{}")) {
    if (!word.starts_with("-") && !word.starts_with("arch=")) continue;
    project.flags += std::string(word) + " ";
  }
  // -gencode=arch=compute_90,code=sm_90 is cut at its comma above: the architectures are read from
  // the whole text.
  for (size_t at = code.find("code="); at != code.npos; at = code.find("code=", at + 1)) {
    std::string_view rest = std::string_view(code).substr(at + 5);
    size_t end = rest.find_first_of(" \t\n\"',]");
    std::string arch(rest.substr(0, end));
    if (arch.starts_with("[")) arch.erase(0, 1);
    if (arch.starts_with("sm_") &&
        std::find(project.gencodes.begin(), project.gencodes.end(), arch) == project.gencodes.end())
      project.gencodes.push_back(arch);
  }
  std::string flags = code;
  for (char& c : flags)
    if (c == '"' || c == '\'' || c == ',' || c == '(' || c == ')' || c == '[' || c == ']') c = ' ';
  project.nvcc_threads = std::max(project.nvcc_threads, threads_in(flags));
}

void read_ninja_log(std::string_view text, Project& project) {
  struct Run {
    double begin_ms, end_ms;
  };
  // Times count from the start of each ninja; the last run of an output stands last. A build that
  // began anew after the last line with a smaller end is a later one.
  std::vector<std::pair<std::string, Run>> runs;
  double before = 0;
  for (std::string_view line : text::lines(text)) {
    if (line.starts_with("#")) continue;
    auto words = text::split(line, '\t');
    if (words.size() < 4) continue;
    auto begin = text::to_int(words[0]), end = text::to_int(words[1]);
    if (!begin || !end || *end < *begin) continue;
    if (static_cast<double>(*end) < before) runs.clear();  // ends ascend within one build
    before = static_cast<double>(*end);
    runs.emplace_back(std::string(words[3]),
                      Run{static_cast<double>(*begin), static_cast<double>(*end)});
  }
  if (runs.empty()) return;
  double first = runs.front().second.begin_ms, last = 0, work = 0;
  std::vector<PastStep> steps;
  for (const auto& [output, run] : runs) {
    first = std::min(first, run.begin_ms);
    last = std::max(last, run.end_ms);
    work += run.end_ms - run.begin_ms;
    steps.push_back({output.substr(output.rfind('/') + 1), (run.end_ms - run.begin_ms) / 1000});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const PastStep& a, const PastStep& b) { return a.seconds > b.seconds; });
  if (steps.size() > kMostShown) steps.resize(kMostShown);
  project.steps = std::move(steps);
  project.wall_s = (last - first) / 1000;
  project.work_s = work / 1000;
  project.has_build = true;
}

Status gather_project(const Outside& outside, const path& folder, const std::string& shown,
                      Facts& facts) {
  Project project;
  project.folder = folder.string();
  if (!outside.files.state(folder).is_directory)
    return Error{Fault::Usage, fmt::format("cannot examine {}", shown), "there is no such folder",
                 "kiln doctor path/to/project"};
  if (outside.files.state(folder / project::kManifestName).is_file()) {
    project.kiln = true;
    TRY(project::Manifest manifest,
        project::read_manifest(outside.files, folder / project::kManifestName));
    project.arch_list = manifest.arch;
    project.flags = text::join(manifest.cuda_flags, " ") + " " + text::join(manifest.cflags, " ");
    project.nvcc_threads = threads_in(project.flags);
  }
  if (auto text = outside.files.read(folder / "setup.py")) {
    project.setup_py = true;
    scan_setup_py(*text, project);
  }
  if (auto text = outside.files.read(folder / "pyproject.toml")) {
    project.pyproject = true;
    size_t at = text->find("requires");
    size_t open = at == text->npos ? at : text->find('[', at);
    if (open != text->npos)
      project.requires_torch =
          names_torch(std::string_view(*text).substr(open, text->find(']', open) - open));
  }
  for (const std::string& name : outside.files.list(folder)) {
    if (!name.ends_with(".py") || name == "setup.py") continue;
    auto text = outside.files.read(folder / name);
    if (!text || text->find("cpp_extension") == text->npos || text->find("load") == text->npos)
      continue;
    project.jit = true;
    // The same words as in setup.py: flags and architectures. That it imports torch does no harm
    // where nothing is packed.
    bool imports_torch = project.imports_torch;
    if (!project.kiln) scan_setup_py(*text, project);
    project.imports_torch = imports_torch;
  }
  if (!project.kiln && !project.setup_py && !project.pyproject && !project.jit)
    return Error{Fault::Usage, fmt::format("cannot examine {}", shown),
                 "it has no kiln.toml, no setup.py, no pyproject.toml and no cpp_extension.load",
                 "name a project's folder"};
  std::vector<path> logs;
  collect(outside, folder, folder, kDepth, project, logs);
  // The newest of them tells of the last build.
  std::sort(logs.begin(), logs.end(), [&](const path& a, const path& b) {
    return outside.files.state(a).mtime_ns > outside.files.state(b).mtime_ns;
  });
  if (!logs.empty())
    if (auto text = outside.files.read(logs[0])) {
      project.log = logs[0].string();
      read_ninja_log(*text, project);
    }
  facts.project = std::move(project);
  return {};
}

}  // namespace kiln::doctor
