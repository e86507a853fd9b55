// SPDX-License-Identifier: Apache-2.0
// Which GPUs are known, and what does each run?
#include "inspect/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace kiln::inspect {
namespace {

using binary::ImageKind;

constexpr uint32_t KB = 1024;
constexpr GpuLimits kGpus[] = {
    // arch, GPUs, warps, blocks, shared per SM, per block, unit, reserved
    {70, "V100", 64, 32, 96 * KB, 96 * KB, 256, 0},
    {75, "T4, RTX 20", 32, 16, 64 * KB, 64 * KB, 256, 0},
    {80, "A100, A30", 64, 32, 164 * KB, 163 * KB, 128, KB},
    {86, "A10, A40, RTX 30", 48, 16, 100 * KB, 99 * KB, 128, KB},
    {87, "Jetson Orin", 48, 16, 164 * KB, 163 * KB, 128, KB},
    {89, "L4, L40, RTX 40", 48, 24, 100 * KB, 99 * KB, 128, KB},
    {90, "H100, H200, GH200", 64, 32, 228 * KB, 227 * KB, 128, KB},
    {100, "B200, GB200", 64, 32, 228 * KB, 227 * KB, 128, KB},
    {103, "B300, GB300", 64, 32, 228 * KB, 227 * KB, 128, KB},
    {110, "Jetson Thor", 48, 24, 228 * KB, 227 * KB, 128, KB},
    {120, "RTX 50, RTX PRO", 48, 24, 100 * KB, 99 * KB, 128, KB},
    {121, "DGX Spark", 48, 24, 100 * KB, 99 * KB, 128, KB},
};

// Release notes of each CUDA, table "minimum required driver version"; PTX ISA manual, table of
// release notes.
struct PtxRelease {
  uint16_t major, minor;
  std::string_view cuda;
  int driver;
};
constexpr PtxRelease kPtxReleases[] = {
    {7, 0, "11.0", 450}, {7, 1, "11.1", 455}, {7, 2, "11.2", 460}, {7, 3, "11.3", 465},
    {7, 4, "11.4", 470}, {7, 5, "11.5", 495}, {7, 6, "11.6", 510}, {7, 7, "11.7", 515},
    {7, 8, "11.8", 520}, {8, 0, "12.0", 525}, {8, 1, "12.1", 530}, {8, 2, "12.2", 535},
    {8, 3, "12.3", 545}, {8, 4, "12.4", 550}, {8, 5, "12.5", 555}, {8, 6, "12.7", 565},
    {8, 7, "12.8", 570}, {8, 8, "12.9", 575}, {9, 0, "13.0", 580}, {9, 1, "13.1", 590},
    {9, 2, "13.2", 595},
};
struct MajorDriver {
  std::string_view major;
  int driver;
};
constexpr MajorDriver kMajorDrivers[] = {{"11", 450}, {"12", 525}, {"13", 580}};

bool runs_natively(const binary::FatbinEntry& entry, uint32_t arch) {
  if (entry.arch / 10 != arch / 10 || entry.arch > arch) return false;
  if (entry.variant == 'a') return entry.arch == arch;
  // A family is the GPUs of one major that the manual names together; within 10.x and 12.x it is
  // the major.
  return true;
}

bool can_jit(const binary::FatbinEntry& entry, uint32_t arch) {
  if (entry.arch > arch) return false;
  if (entry.variant == 'a') return entry.arch == arch;
  if (entry.variant == 'f') return entry.arch / 10 == arch / 10;
  return true;
}

}  // namespace

std::span<const GpuLimits> known_gpus() { return kGpus; }

const GpuLimits* limits_of(uint32_t arch) {
  for (const GpuLimits& gpu : kGpus)
    if (gpu.arch == arch) return &gpu;
  return nullptr;
}

Served service_for(const std::vector<Image>& images, uint32_t arch) {
  // The driver chooses within each fat binary by itself.
  struct Choice {
    Service service = Service::None;
    uint32_t rank = 0;
    const Image* image = nullptr;
  };
  std::map<size_t, Choice> choices;
  for (const Image& image : images) {
    bool native = image.is(ImageKind::Elf) && runs_natively(image.entry, arch);
    bool jit = image.is(ImageKind::Ptx) && can_jit(image.entry, arch);
    if (!native && !jit) continue;
    Service service = native ? Service::Native : Service::Jit;
    uint32_t rank = image.entry.arch * 2 + (image.entry.variant != 0);
    Choice& best = choices[image.container];
    if (service < best.service || (service == best.service && rank > best.rank))
      best = {service, rank, &image};
  }
  Served served{limits_of(arch), Service::None, "", 0};
  for (const auto& [container, choice] : choices)
    served.service = std::min(served.service, choice.service);
  std::map<std::string, size_t> counts;
  for (const auto& [container, choice] : choices) {
    if (choice.service == served.service)
      counts[choice.image->label()] += 1;
    else
      served.jit_containers += 1;
  }
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [label, count] : counts) order.emplace_back(count, label);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [count, label] : order) served.by += (served.by.empty() ? "" : ", ") + label;
  return served;
}

std::vector<Served> served_gpus(const std::vector<Image>& images) {
  std::vector<Served> out;
  for (const GpuLimits& gpu : kGpus) out.push_back(service_for(images, gpu.arch));
  return out;
}

DriverFloor driver_floor(const std::vector<Image>& images, std::string_view compiler_release) {
  DriverFloor floor;
  for (const MajorDriver& row : kMajorDrivers) {
    if (!compiler_release.starts_with(row.major) ||
        compiler_release.substr(row.major.size()).substr(0, 1) != ".")
      continue;
    floor.sass = row.driver;
    floor.why_sass = fmt::format("CUDA {}", compiler_release);
  }
  for (const Image& image : images) {
    if (!image.is(ImageKind::Ptx)) continue;
    for (const PtxRelease& row : kPtxReleases) {
      if (row.major != image.entry.version_major || row.minor != image.entry.version_minor ||
          row.driver <= floor.ptx)
        continue;
      floor.ptx = row.driver;
      floor.why_ptx = fmt::format("PTX ISA {}.{} (CUDA {})", row.major, row.minor, row.cuda);
    }
  }
  return floor;
}

}  // namespace kiln::inspect
