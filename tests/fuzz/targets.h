// SPDX-License-Identifier: Apache-2.0
// What do the fuzzers call? Each takes any bytes and must neither crash nor leak; errors are the expected answer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::fuzz {

// True: the input got through to the end (a kernel was launched, an image unpacked), so that a run can show that it
// tried something.
bool ptx(const uint8_t* data, size_t size);     // parser, matching of forms, decoder; what decodes runs too
bool fatbin(const uint8_t* data, size_t size);  // container, entries, unpacking

}  // namespace kiln::fuzz
