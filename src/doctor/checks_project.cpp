// SPDX-License-Identifier: Apache-2.0
// Why does the build of this project fail, or take long?
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/advice.h"
#include "doctor/check.h"

namespace kiln::doctor {

namespace {

constexpr size_t kManyArchs = 3;

std::string seconds(double value) { return text::duration(value); }

bool is_classic(const Project& project) {
  return !project.kiln && (project.setup_py || project.jit);
}

// Architectures that code is generated for, as far as is known.
std::vector<std::string> compiled_archs(const Facts& facts) {
  std::vector<std::string> names = facts.project->gencodes;
  if (!names.empty()) return names;
  if (auto asked = asked_archs(facts))
    for (const project::Arch& arch : asked->list.sass) names.push_back("sm_" + arch.number());
  return names;
}

}  // namespace

Finding check_arch_variant(const Facts& facts) {
  if (!facts.project) return skip("no project was named");
  if (facts.project->kiln) return ok("kiln uses the a variant where a source needs it");
  auto asked = asked_archs(facts);
  for (const SourceFile& source : facts.project->sources) {
    if (source.variant_instruction.empty()) continue;
    std::vector<std::string> plain;
    auto look = [&](const project::Arch& arch) {
      if (arch.major >= 9 && !arch.variant) plain.push_back(arch.text());
    };
    if (asked)
      for (const project::Arch& arch : asked->list.sass) look(arch);
    else
      for (const project::Arch& arch : facts.gpu.archs) look(arch);
    for (const std::string& name : facts.project->gencodes)
      if (name.starts_with("sm_") && !name.ends_with('a') && !name.ends_with('f') &&
          text::to_int(name.substr(3)).value_or(0) >= 90)
        plain.push_back(name);
    if (plain.empty()) continue;
    std::string by = asked ? asked->by : "the GPU here";
    return fail(fmt::format("{} uses {}, which only the a variant of sm_90 has; {} requests {}",
                            source.name, source.variant_instruction,
                            facts.project->gencodes.empty() ? by : "setup.py", plain[0]),
                fmt::format("export TORCH_CUDA_ARCH_LIST={}a",
                            plain[0].starts_with("sm_") ? "9.0" : plain[0]));
  }
  return ok("every variant that a source needs is requested");
}

Finding check_isolated_build(const Facts& facts) {
  if (!facts.project || !facts.project->setup_py) return skip("no setup.py");
  if (!facts.project->imports_torch) return ok("setup.py does not import torch");
  if (facts.project->requires_torch) return ok("build-system.requires names torch");
  return warn(
      "setup.py imports torch, and build-system.requires does not name it: pip install . fails "
      "with "
      "\"No module named 'torch'\"",
      "pip install --no-build-isolation .");
}

Finding check_torch_headers(const Facts& facts) {
  if (!facts.project) return skip("no project was named");
  if (facts.project->kiln) return ok("kiln's own headers replace torch's");
  std::vector<const SourceFile*> heavy;
  for (const SourceFile& source : facts.project->sources)
    if (source.cuda && !source.heavy.empty()) heavy.push_back(&source);
  if (heavy.empty()) return ok("no .cu includes torch's headers");
  return warn(
      fmt::format(
          "{} includes {}: nvcc reads torch's headers twice for each architecture, a minute for a "
          "one-line kernel{}",
          heavy[0]->name, heavy[0]->heavy[0],
          heavy.size() > 1 ? fmt::format(" (and {} more files)", heavy.size() - 1) : ""),
      "build it with kiln, whose headers replace torch's, include kiln/op.h, or keep torch's "
      "headers in a .cpp");
}

Finding check_slow_archs(const Facts& facts) {
  if (!facts.project) return skip("no project was named");
  std::vector<std::string> archs = compiled_archs(facts);
  if (archs.empty() && is_classic(*facts.project) && facts.gpu.archs.empty())
    return warn(
        "no architecture is set and there is no GPU: cpp_extension fails, or compiles for every "
        "architecture it knows",
        fmt::format("export TORCH_CUDA_ARCH_LIST='{}'", fitting_arch(facts)), Cure::Environment);
  if (archs.size() <= kManyArchs)
    return ok(archs.empty() ? "the architecture of the GPU here" : text::join(archs, ", "));
  return warn(
      fmt::format("every kernel is compiled for {} architectures: {}", archs.size(),
                  text::join(archs, ", ")),
      facts.project->gencodes.empty()
          ? fmt::format("export TORCH_CUDA_ARCH_LIST='{}' while you develop", fitting_arch(facts))
          : "remove the -gencode flags from setup.py and use TORCH_CUDA_ARCH_LIST");
}

Finding check_slow_serial(const Facts& facts) {
  if (!facts.project) return skip("no project was named");
  const Project& project = *facts.project;
  int fits = fitting_jobs(facts.machine);
  if (project.no_ninja)
    return warn(
        "setup.py says use_ninja=False: one file after another, and all of them after each edit",
        "remove use_ninja=False from setup.py");
  if (is_classic(project) && !facts.ninja.found())
    return warn(
        "without ninja setup.py compiles one file after another, all of them after each edit",
        "kiln setup", Cure::Ninja);
  auto asked = asked_jobs(facts.variables);
  if (asked && *asked < fits && project.sources.size() > static_cast<size_t>(*asked))
    return warn(fmt::format("MAX_JOBS={} for {} sources; {} cores and {} allow {}", *asked,
                            project.sources.size(), facts.machine.cores,
                            gigabytes(usable_memory_bytes(facts.machine)), fits),
                fmt::format("export MAX_JOBS={}", fits), Cure::Environment);
  return ok(fmt::format("{} sources, {} at a time", project.sources.size(), asked.value_or(fits)));
}

Finding check_slow_uncached(const Facts& facts) {
  if (!facts.project) return skip("no project was named");
  if (facts.project->kiln) return ok("kiln's own cache");
  if (!is_classic(*facts.project)) return skip("nothing to compile here");
  if (facts.ccache.for_nvcc) return ok("nvcc runs through ccache");
  return warn(
      facts.ccache.program.found()
          ? fmt::format("ccache {} is installed, but nvcc does not run through it",
                        facts.ccache.program.version)
          : "no compiler cache: a new build folder, which pip makes each time, compiles everything",
      facts.ccache.program.found()
          ? "export PYTORCH_NVCC='ccache nvcc' CCACHE_DEPEND=1, or kiln.CUDAExtension"
          : "kiln.CUDAExtension, or apt install ccache and export PYTORCH_NVCC='ccache nvcc' "
            "CCACHE_DEPEND=1");
}

Finding check_slow_steps(const Facts& facts) {
  if (!facts.project) return skip("no project was named");
  const Project& project = *facts.project;
  if (project.steps.empty()) return skip("no earlier build with ninja here");
  const PastStep& slowest = project.steps.front();
  double side_by_side = project.wall_s > 0 ? project.work_s / project.wall_s : 1;
  std::string last = fmt::format("last build: {} for {} of work, {:.1f} at a time; slowest: {} {}",
                                 seconds(project.wall_s), seconds(project.work_s), side_by_side,
                                 slowest.output, seconds(slowest.seconds));
  bool holds_up = project.steps.size() > 1 && slowest.seconds > 0.6 * project.wall_s &&
                  slowest.seconds > 20 && slowest.seconds > 2 * project.steps[1].seconds;
  if (!holds_up) return ok(last);
  return warn(last, fmt::format("split the source of {}: the others wait for it", slowest.output));
}

}  // namespace kiln::doctor
