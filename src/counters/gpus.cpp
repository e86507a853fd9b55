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

// Lower case, with one blank between words: "h100 pcie".
std::string words_of(std::string_view name) {
  std::string out;
  for (const unsigned char c : name)
    out += std::isalnum(c) ? static_cast<char>(std::tolower(c)) : ' ';
  return " " + out + " ";
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

Result<const Gpu*> gpu_of_device(std::string_view device) {
  const std::string words = words_of(device);
  const Gpu* best = nullptr;
  for (const Gpu& gpu : kGpus) {
    if (words.find(words_of(gpu.name)) == words.npos) continue;
    if (!best || gpu.name.size() > best->name.size()) best = &gpu;
  }
  if (best) return best;
  return Error{Fault::Usage, fmt::format("no bound for {}", device),
               "the rates of this GPU are not known", "name a similar one: --gpu H200"};
}

}  // namespace kiln::counters
