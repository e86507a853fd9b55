// SPDX-License-Identifier: Apache-2.0
// What the fake libtorch holds: tensors, lists and strings that somebody has to delete.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct FakeTensor {
  bool refuses;  // to tell its dimensions, as a sparse one does
};
using FakeBoxed = void (*)(uint64_t* stack, uint64_t arguments, uint64_t results);

struct TorchLog {
  int tensors, lists, strings;  // that are alive
  FakeBoxed boxed[8];           // kernels for the CPU, in the order of registration
  int boxed_count;
};

struct FakeTorch {
  TorchLog log;
  void* (*new_tensor)(bool refuses);
  void* (*new_list)(const uint64_t* items, size_t count);
  void* (*new_string)(const char* text);
  int (*delete_tensor)(void* tensor);
};
