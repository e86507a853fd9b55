// SPDX-License-Identifier: Apache-2.0
// What the fake libcudart saw last.
#pragma once

#include <stddef.h>

struct CudartLog {
  int images, functions, ends, lookups, launches, launches_by_host, next_error, last_error_reads;
  char function[64];
  unsigned grid[3], block[3];
  size_t shared, malloc_bytes;
  const void* kernel;
  int argument, attribute_value;
  void *malloc_stream, *free_stream, *event_stream, *waiting_stream;
  int frees, events;
};
