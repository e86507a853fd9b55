// SPDX-License-Identifier: Apache-2.0
// What do findings come to, by area, and which facts are worth showing?
#include "doctor/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/advice.h"

namespace kiln::doctor {

namespace {

constexpr Area kAreas[] = {Area::Tools,  Area::Cuda,    Area::Torch,   Area::Gpu,  Area::Memory,
                           Area::Caches, Area::Library, Area::Project, Area::Timed};

std::string program_text(const char* name, const Program& program) {
  if (!program.found()) return fmt::format("no {}", name);
  return program.version.empty() ? std::string(name) : fmt::format("{} {}", name, program.version);
}

std::string library_summary(const Facts& facts) {
  std::vector<std::string> names;
  for (const Library& library : facts.libraries) names.push_back(library.name);
  if (names.size() > 3) return fmt::format("{} and {} more", names[0], names.size() - 1);
  if (names.empty()) return facts.wheel ? facts.wheel->name : "";
  const Library& one = facts.libraries[0];
  std::string images = one.images.empty() ? "" : ": " + text::join(one.images, ", ");
  return text::join(names, ", ") + (names.size() == 1 ? images : "");
}

std::string project_summary(const Project& project) {
  const char* kind = project.kiln       ? "kiln project"
                     : project.setup_py ? "setup.py project"
                     : project.jit      ? "cpp_extension.load"
                                        : "project";
  return fmt::format("{}, {} source{}", kind, project.sources.size(),
                     project.sources.size() == 1 ? "" : "s");
}

std::string summary_of(Area area, const Facts& facts) {
  switch (area) {
    case Area::Tools:
      return fmt::format(
          "{}, {}{}", program_text("ninja", facts.ninja),
          program_text(facts.host.clang ? "clang" : "g++", facts.host.program),
          facts.ccache.program.found() ? ", " + program_text("ccache", facts.ccache.program) : "");
    case Area::Cuda:
      return fmt::format(
          "{}{}, {}", program_text("nvcc", facts.toolkit.nvcc),
          facts.toolkit.home.empty() ? "" : " in " + facts.toolkit.home,
          facts.nvdisasm.found() ? "nvdisasm" : "no nvdisasm (kiln inspect --sass needs it)");
    case Area::Torch:
      return fmt::format("{}, {}", program_text("Python", facts.python.program),
                         facts.torch.found() ? "torch " + facts.torch.version : "no torch");
    case Area::Gpu:
      if (facts.gpu.archs.empty()) return "no GPU: kernels run on the engine";
      return fmt::format("GPU {}, driver {}", fitting_arch(facts), facts.gpu.driver);
    case Area::Memory:
      return fmt::format("{} cores, {} usable, {}", facts.machine.cores,
                         gigabytes(usable_memory_bytes(facts.machine)),
                         facts.variables.max_jobs.empty()
                             ? fmt::format("{} jobs fit", fitting_jobs(facts.machine))
                             : fmt::format("MAX_JOBS={}", facts.variables.max_jobs));
    case Area::Caches:
      return facts.cache.folder.empty() ? "kiln's cache is off" : facts.cache.folder;
    case Area::Library:
      return library_summary(facts);
    case Area::Project:
      return facts.project ? project_summary(*facts.project) : "";
    case Area::Timed:
      if (!facts.timed || !facts.timed->trouble.empty()) return "";
      return check_timed_compile(facts).reason;
  }
  return "";
}

Verdict verdict_of(Area area, const std::vector<CheckResult>& results) {
  Verdict verdict = Verdict::Skip;
  for (const CheckResult& result : results)
    if (result.check->area == area) verdict = std::max(verdict, result.finding.verdict);
  return verdict;
}

}  // namespace

results::DoctorReport report_of(const Facts& facts, const std::vector<CheckResult>& found) {
  results::DoctorReport report;
  report.verdict = name_of(worst(found));
  for (Area area : kAreas) {
    const Verdict verdict = verdict_of(area, found);
    if (verdict == Verdict::Skip) continue;
    report.areas.push_back(
        {std::string(name_of(area)), std::string(name_of(verdict)), summary_of(area, facts)});
  }
  for (const CheckResult& one : found)
    report.checks.push_back({one.check->number, std::string(one.check->name),
                             std::string(name_of(one.check->area)),
                             std::string(name_of(one.finding.verdict)), one.finding.reason,
                             one.finding.fix, one.finding.cure != Cure::None});
  report.facts = list_facts(facts);
  return report;
}

std::vector<std::pair<std::string, std::string>> list_facts(const Facts& facts) {
  std::vector<std::pair<std::string, std::string>> out;
  auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out.emplace_back(name, value);
  };
  auto add_program = [&](const char* name, const Program& program) {
    if (!program.found()) {
      add(name, "not found");
      return;
    }
    add(name, fmt::format("{}{}{}{}{}", program.version, program.version.empty() ? "" : " at ",
                          program.path, program.on_path ? "" : " (not on PATH)",
                          program.trouble.empty() ? "" : ": " + program.trouble));
  };
  add("cpu", facts.machine.cpu);
  add("cores", std::to_string(facts.machine.cores));
  add("memory", gigabytes(facts.machine.memory_bytes));
  if (facts.machine.address_space_bytes)
    add("ulimit -v", gigabytes(*facts.machine.address_space_bytes));
  add("load", fmt::format("{:.0f}", facts.machine.load));
  add_program("ninja", facts.ninja);
  add_program("nvcc", facts.toolkit.nvcc);
  add("toolkit", facts.toolkit.home);
  std::vector<std::string> archs;
  for (const project::Arch& arch : facts.toolkit.archs) archs.push_back(arch.text());
  add("nvcc compiles for", text::join(archs, " "));
  if (facts.toolkit.newest_gcc)
    add("nvcc supports gcc up to", std::to_string(facts.toolkit.newest_gcc));
  add(facts.host.clang ? "clang" : "g++",
      facts.host.program.found()
          ? fmt::format("{} at {}", facts.host.program.version, facts.host.program.path)
          : "not found");
  add_program("nvdisasm", facts.nvdisasm);
  add_program("ccache", facts.ccache.program);
  add_program("python", facts.python.program);
  add("torch", facts.torch.found()
                   ? fmt::format("{} in {}", facts.torch.version, facts.torch.folder)
                   : "not found");
  add("torch's CUDA", facts.torch.cuda);
  add("GPU", facts.gpu.archs.empty() ? "none" : fitting_arch(facts));
  add("driver", facts.gpu.driver);
  add("libcuda.so.1", facts.gpu.libcuda);
  add("TORCH_CUDA_ARCH_LIST", facts.variables.arch_list);
  add("MAX_JOBS", facts.variables.max_jobs);
  add("CUDA_HOME", facts.toolkit.cuda_home);
  add("LD_LIBRARY_PATH", facts.variables.library_path);
  add("NVCC", facts.variables.nvcc);
  if (!text::trim(facts.variables.nvcc_flags).empty())
    add("nvcc's flags", std::string(text::trim(facts.variables.nvcc_flags)));
  add("cache", facts.cache.folder.empty()
                   ? "off"
                   : fmt::format("{} on {}, {} free, {} hits, {} misses", facts.cache.folder,
                                 facts.cache.file_system, gigabytes(facts.cache.free_bytes),
                                 facts.cache.hits, facts.cache.misses));
  for (const Cudart& one : facts.cudarts)
    add("libcudart", fmt::format("{} ({})", one.path, one.from));
  for (const Library& library : facts.libraries) {
    add("library", library.name);
    add("  for", library.machine);
    add("  GPU code", text::join(library.images, " "));
    add("  needs glibc", library.glibc);
    add("  needs GLIBCXX", library.glibcxx);
    add("  symbols of torch", library.built_for_torch);
    if (library.driver_sass || library.driver_ptx)
      add("  driver from", std::to_string(std::max(library.driver_sass, library.driver_ptx)));
  }
  if (facts.project)
    for (const PastStep& step : facts.project->steps)
      add("last build", fmt::format("{} {}", text::duration(step.seconds), step.output));
  return out;
}

}  // namespace kiln::doctor
