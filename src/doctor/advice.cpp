// SPDX-License-Identifier: Apache-2.0
// What would be right for this machine: how many jobs, which architectures, which driver?
#include "doctor/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace kiln::doctor {

uint64_t usable_memory_bytes(const Machine& machine) {
  return machine.address_space_bytes ? std::min(machine.memory_bytes, *machine.address_space_bytes)
                                     : machine.memory_bytes;
}

int fitting_jobs(const Machine& machine) {
  uint64_t by_memory = usable_memory_bytes(machine) / kJobBytes;
  return static_cast<int>(
      std::clamp<uint64_t>(by_memory, 1, static_cast<uint64_t>(std::max(1, machine.cores))));
}

std::optional<int> asked_jobs(const Variables& variables) {
  auto jobs = text::to_int(text::trim(variables.max_jobs));
  if (!jobs || *jobs < 1 || *jobs > 4096) return std::nullopt;
  return static_cast<int>(*jobs);
}

std::string fitting_arch(const Facts& facts) {
  std::vector<std::string> names;
  for (const project::Arch& arch : facts.gpu.archs) names.push_back(arch.text());
  return names.empty() ? project::kPortableArch.text() : text::join(names, ";");
}

std::optional<AskedArchs> asked_archs(const Facts& facts) {
  bool by_project = facts.project && !facts.project->arch_list.empty();
  const std::string& text = by_project ? facts.project->arch_list : facts.variables.arch_list;
  if (text.empty() || text::lower(text) == "native") return std::nullopt;
  auto list = project::parse_arch_list(text);
  if (!list) return std::nullopt;
  return AskedArchs{std::move(*list), by_project ? "kiln.toml" : "TORCH_CUDA_ARCH_LIST"};
}

int first_driver(int cuda_major) {
  // CUDA Compatibility guide, table "minimum driver versions" of each major.
  switch (cuda_major) {
    case 11:
      return 450;
    case 12:
      return 525;
    case 13:
      return 580;
    default:
      return 0;
  }
}

int major_of(std::string_view version) {
  size_t so = version.rfind(".so.");
  if (so != version.npos) version.remove_prefix(so + 4);
  auto number = text::to_int(version.substr(0, version.find('.')));
  return number && *number > 0 && *number < 100000 ? static_cast<int>(*number) : 0;
}

int threads_in(std::string_view flags) {
  auto words = text::split_any(flags, " \t\n=,");
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "--threads" || words[i] == "-threads" || words[i] == "-t")
      if (auto count = text::to_int(words[i + 1]); count && *count >= 0 && *count < 10000)
        return static_cast<int>(*count);
  return 0;
}

std::string gigabytes(uint64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace kiln::doctor
