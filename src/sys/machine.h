// SPDX-License-Identifier: Apache-2.0
// How many processors and how much memory may this process use? Limits of control groups count.
#pragma once

#include <cstdint>

#include "sys/files.h"

namespace kiln::sys {

// The processors this process may run on, no more than its control group's quota.
int usable_cores(const Files& files);
// What can be allocated without pushing others out: MemAvailable, or less where a control group
// says so.
uint64_t available_memory_bytes(const Files& files);
// What the machine has, used or not, or less where a control group says so; 0: unknown.
uint64_t whole_memory_bytes(const Files& files);

}  // namespace kiln::sys
