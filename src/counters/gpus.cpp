// SPDX-License-Identifier: Apache-2.0
#include "counters/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"

namespace kiln::counters {
namespace {

constexpr Gpu kGpus[] = {
#define GPU(...) {__VA_ARGS__},
#include "counters/gpus.def"
};

// Lower case, with a blank for each other sign: " h100 pcie ".
std::string words_of(std::string_view name) {
  std::string out = " " + text::lower(name) + " ";
  for (char& c : out) {
    const bool part = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!part) c = ' ';
  }
  return out;
}

}  // namespace

std::string Gpu::arch_text() const { return fmt::format("{}.{}", arch / 10, arch % 10); }

std::span<const Gpu> gpus() { return kGpus; }

Result<const Gpu*> find_gpu(std::string_view name) {
  const std::string wanted = text::lower(name);
  std::vector<std::string> known, names;
  for (const Gpu& gpu : kGpus) {
    names.emplace_back(gpu.name);
    known.push_back(text::lower(gpu.name));
    if (known.back() == wanted) return &gpu;
  }
  std::optional<std::string> meant = text::closest(wanted, known);
  if (meant) meant = names[static_cast<size_t>(std::ranges::find(known, *meant) - known.begin())];
  return Error{Fault::Usage, fmt::format("unknown GPU '{}'", name),
               "known GPUs: " + text::join(names, ", "),
               meant ? fmt::format("did you mean {}? kiln counters --gpus describes them", *meant)
                     : "use the one that is most like it; kiln counters --gpus describes them"};
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
