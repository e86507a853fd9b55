// SPDX-License-Identifier: Apache-2.0
#include "counters/resources.h"

#include <fmt/format.h>

#include "counters/follow_sass.h"
#include "counters/sass.h"
#include "inspect/analysis.h"

namespace kiln::counters {

struct CubinReader::File {
  std::optional<inspect::Analysis> analysis;
  std::string why;  // there is none
  std::map<std::string, SassOfKernel> sass;
};

CubinReader::File& CubinReader::open(const std::string& path) {
  std::shared_ptr<File>& file = files_[path];
  if (file) return *file;
  file = std::make_shared<File>();
  if (path.empty()) {
    file->why = "the engine does not know which file holds the kernel";
    return *file;
  }
  auto found = inspect::open_file(path, path);
  if (!found || found->empty()) {
    file->why = "cannot read " + path;
    return *file;
  }
  auto analysis = inspect::analyse(std::move(found->front()), {});
  if (analysis)
    file->analysis = std::move(*analysis);
  else
    file->why = analysis.error().why;
  return *file;
}

namespace {

// The cubin that the GPU would run: of its generation, and the newest that is not newer.
const inspect::KernelRow* row_for(const inspect::Analysis& analysis, const std::string& mangled,
                                  uint32_t arch) {
  const inspect::KernelRow* best = nullptr;
  for (const inspect::KernelRow& row : analysis.kernels.rows) {
    if (row.name != mangled || row.arch / 10 != arch / 10 || row.arch > arch) continue;
    if (!best || row.arch > best->arch || (row.arch == best->arch && row.variant)) best = &row;
  }
  return best;
}

}  // namespace

void CubinReader::add_resources(const results::CounterProgram* program,
                                results::CounterLaunch* counted, results::LaunchReport* report) {
  const results::CounterLaunch& launch = *counted;
  File& file = open(launch.file);
  if (!file.analysis) {
    report->no_resources = file.why;
    return;
  }
  const inspect::KernelRow* row = row_for(*file.analysis, launch.mangled, gpu_.arch);
  if (!row) {
    report->no_resources = fmt::format("{} has no cubin for {} (sm_{}); build with --arch {}",
                                       launch.file, gpu_.name, gpu_.arch, gpu_.arch_text());
    return;
  }
  if (program) {
    auto [sass, added] = file.sass.try_emplace(launch.mangled);
    if (added) sass->second = read_sass(*file.analysis, *row);
    report->sass = follow_sass(sass->second, *program, counted);
  }
  results::KernelResources out;
  out.arch = row->arch_text();
  out.registers = row->resources.registers;
  out.static_shared_bytes = row->user_shared_bytes();
  out.stack_bytes = row->resources.stack_bytes;
  out.spill_store_bytes = row->resources.spill_store_bytes;
  out.spill_load_bytes = row->resources.spill_load_bytes;
  const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  if (const inspect::GpuLimits* limits = inspect::limits_of(gpu_.arch)) {
    const inspect::Occupancy occupancy = inspect::occupancy(
        *limits, {threads, out.registers, out.static_shared_bytes + launch.dynamic_shared_bytes});
    out.blocks = occupancy.blocks;
    out.occupancy = occupancy.fraction;
    out.limiter = inspect::name_of(occupancy.limiter);
  }
  report->resources = std::move(out);
}

}  // namespace kiln::counters
