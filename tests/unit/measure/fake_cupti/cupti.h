// SPDX-License-Identifier: Apache-2.0
// How does a test say what libcupti says? The library has the name of the real one, so that dlopen
// finds it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct FakeRecord {
  uint32_t kind;  // 10: a kernel; 2: a memset
  uint64_t begin, end;
  const char* name;
};

struct FakeCupti {
  int enable_code = 0, flush_code = 0;
  std::vector<FakeRecord> records;
  std::vector<int> enabled;
  bool out_of_memory = false;  // while its records are read
};
FakeCupti& fake_cupti();
