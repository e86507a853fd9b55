// SPDX-License-Identifier: Apache-2.0
// The entry that libFuzzer calls, for PTX.
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln::fuzz::ptx(data, size);
  return 0;
}
