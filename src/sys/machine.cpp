// SPDX-License-Identifier: Apache-2.0
// How many processors and how much memory may this process use?
#include "sys/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.h"

namespace kiln::sys {

namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

std::optional<uint64_t> number_in(const Files& files, const fs::path& path) {
  auto content = files.read(path);
  if (!content) return std::nullopt;
  auto value = text::to_int(text::trim(*content));
  if (!value || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

// The folder of this process's group and every one above it; the tightest limit of them holds.
std::vector<fs::path> group_folders(const Files& files, std::string_view controller,
                                    const fs::path& root) {
  std::vector<fs::path> folders;
  auto content = files.read("/proc/self/cgroup");
  if (!content) return {root};
  for (std::string_view line : text::lines(*content)) {
    auto parts = text::split(line, ':');
    if (parts.size() < 3) continue;
    bool matches =
        controller.empty() ? parts[1].empty() : parts[1].find(controller) != std::string_view::npos;
    if (!matches) continue;
    fs::path group(parts[2]);
    for (fs::path at = group.relative_path(); !at.empty(); at = at.parent_path())
      folders.push_back(root / at);
  }
  folders.push_back(root);  // inside a container the group's own folder is mounted as the root
  return folders;
}

uint64_t group_memory_left(const Files& files) {
  uint64_t left = kUnlimited;
  auto apply = [&](const fs::path& limit_file, const fs::path& usage_file) {
    auto limit = number_in(files, limit_file);  // "max" is not a number
    auto used = number_in(files, usage_file);
    if (limit && used) left = std::min(left, *limit > *used ? *limit - *used : 0);
  };
  for (const fs::path& folder : group_folders(files, "", "/sys/fs/cgroup"))
    apply(folder / "memory.max", folder / "memory.current");
  for (const fs::path& folder : group_folders(files, "memory", "/sys/fs/cgroup/memory"))
    apply(folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes");
  return left;
}

// "MemTotal:       24597184 kB"
uint64_t memory_row(const Files& files, std::string_view name) {
  auto content = files.read("/proc/meminfo");
  if (!content) return kUnlimited;
  for (std::string_view line : text::lines(*content)) {
    if (!line.starts_with(name)) continue;
    auto words = text::split_any(line, " ");
    if (words.size() < 2) continue;
    if (auto kib = text::to_int(words[1])) return static_cast<uint64_t>(*kib) * 1024;
  }
  return kUnlimited;
}

int group_cores(const Files& files) {
  double cores = std::numeric_limits<int>::max();
  for (const fs::path& folder : group_folders(files, "", "/sys/fs/cgroup")) {
    auto content = files.read(folder / "cpu.max");  // "200000 100000" or "max 100000"
    if (!content) continue;
    auto words = text::split_any(*content, " \n");
    if (words.size() != 2) continue;
    auto quota = text::to_int(words[0]), period = text::to_int(words[1]);
    if (quota && period && *period > 0)
      cores = std::min(cores, static_cast<double>(*quota) / *period);
  }
  return std::max(1, static_cast<int>(std::lround(cores)));
}

}  // namespace

int usable_cores(const Files& files) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = ::sched_getaffinity(0, sizeof set, &set) == 0
                  ? CPU_COUNT(&set)
                  : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, std::min(count, group_cores(files)));
}

uint64_t available_memory_bytes(const Files& files) {
  return std::min(memory_row(files, "MemAvailable:"), group_memory_left(files));
}

uint64_t whole_memory_bytes(const Files& files) {
  uint64_t bytes = memory_row(files, "MemTotal:");
  for (const fs::path& folder : group_folders(files, "", "/sys/fs/cgroup"))
    if (auto limit = number_in(files, folder / "memory.max")) bytes = std::min(bytes, *limit);
  for (const fs::path& folder : group_folders(files, "memory", "/sys/fs/cgroup/memory"))
    if (auto limit = number_in(files, folder / "memory.limit_in_bytes"))
      bytes = std::min(bytes, *limit);
  return bytes == kUnlimited ? 0 : bytes;
}

}  // namespace kiln::sys
