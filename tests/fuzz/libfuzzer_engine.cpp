// SPDX-License-Identifier: Apache-2.0
// The entry that libFuzzer calls, for the target of targets.h that KILN_FUZZ_TARGET names.
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln::fuzz::KILN_FUZZ_TARGET(data, size);
  return 0;
}
