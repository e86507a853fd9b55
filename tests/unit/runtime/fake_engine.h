// SPDX-License-Identifier: Apache-2.0
// What the fake engine saw last.
#pragma once

#include <stddef.h>

#include "kiln/engine_abi.h"

struct FakeEngineLog {
  int images, launches, next_error, argument;
  char function[64], variable[64];
  uint64_t variable_bytes;
  uint32_t variable_flags, flags, check_memory, region_count;
  KilnDim3 grid, block, cluster;
  uint64_t shared;
  KilnRegion regions[4];
  char region_names[4][32];
  size_t malloc_bytes;
  int attribute, attribute_value;
};
