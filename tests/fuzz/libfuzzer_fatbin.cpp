// SPDX-License-Identifier: Apache-2.0
// The entry that libFuzzer calls, for fat binaries.
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln::fuzz::fatbin(data, size);
  return 0;
}
