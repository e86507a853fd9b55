// SPDX-License-Identifier: Apache-2.0
// What do the fuzzers call? Each takes any bytes and must neither crash nor leak; errors are the expected answer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::fuzz {

void ptx(const uint8_t* data, size_t size);     // parser, matching of forms, decoder; kernels without loops run too
void fatbin(const uint8_t* data, size_t size);  // container, entries, unpacking

}  // namespace kiln::fuzz
