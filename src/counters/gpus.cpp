// SPDX-License-Identifier: Apache-2.0
#include "counters/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace kiln::counters {
namespace {

constexpr Gpu kGpus[] = {
#define GPU(...) {__VA_ARGS__},
#include "counters/gpus.def"
};

bool equal(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

std::string Gpu::arch_text() const { return fmt::format("{}.{}", arch / 10, arch % 10); }

std::span<const Gpu> gpus() { return kGpus; }

Result<const Gpu*> find_gpu(std::string_view name) {
  std::string known;
  for (const Gpu& gpu : kGpus) {
    if (equal(gpu.name, name)) return &gpu;
    known += (known.empty() ? "" : ", ") + std::string(gpu.name);
  }
  return Error{Fault::Usage, fmt::format("unknown GPU '{}'", name), "known GPUs: " + known,
               "give one of them to --gpu"};
}

}  // namespace kiln::counters
