// SPDX-License-Identifier: Apache-2.0
// Do the limits of control groups count?
#include "sys/machine.h"

#include <gtest/gtest.h>

#include "sys/fake_files.h"

namespace kiln::sys {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

FakeFiles machine_with_16_gib() {
  FakeFiles files;
  files.add("/proc/meminfo",
            "MemTotal:       33554432 kB\nMemFree:  100 kB\nMemAvailable:   16777216 kB\n");
  return files;
}

TEST(Memory, IsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(available_memory_bytes(machine_with_16_gib()), 16 * kGiB);
}

TEST(Memory, TheTightestGroupOfVersion2Holds) {
  FakeFiles files = machine_with_16_gib();
  files.add("/proc/self/cgroup", "0::/jobs/one\n");
  files.add("/sys/fs/cgroup/jobs/one/memory.max", "max\n")
      .add("/sys/fs/cgroup/jobs/one/memory.current", "5\n");
  files.add("/sys/fs/cgroup/jobs/memory.max", std::to_string(8 * kGiB) + "\n");
  files.add("/sys/fs/cgroup/jobs/memory.current", std::to_string(6 * kGiB) + "\n");
  EXPECT_EQ(available_memory_bytes(files), 2 * kGiB);
}

TEST(Memory, AContainerSeesItsGroupAsTheRoot) {
  FakeFiles files = machine_with_16_gib();
  files.add("/proc/self/cgroup", "0::/\n");
  files.add("/sys/fs/cgroup/memory.max", std::to_string(4 * kGiB) + "\n");
  files.add("/sys/fs/cgroup/memory.current", std::to_string(5 * kGiB) + "\n");
  EXPECT_EQ(available_memory_bytes(files), 0u);
}

TEST(Memory, GroupsOfVersion1HoldToo) {
  FakeFiles files = machine_with_16_gib();
  files.add("/proc/self/cgroup", "5:cpu:/\n3:memory:/box\n");
  files.add("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(3 * kGiB));
  files.add("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(1 * kGiB));
  EXPECT_EQ(available_memory_bytes(files), 2 * kGiB);
}

TEST(Cores, AQuotaOfOneAllowsOne) {
  FakeFiles files;
  files.add("/proc/self/cgroup", "0::/\n").add("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(usable_cores(files), 1);
  EXPECT_GE(usable_cores(FakeFiles()), 1);
}

}  // namespace
}  // namespace kiln::sys
