// SPDX-License-Identifier: Apache-2.0
// What do the fuzzers of PTX call? Each takes any bytes and must neither crash nor leak; errors are
// the expected answer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grammar.h"

namespace kiln::fuzz {

// Parser, matching of forms, decoder; what decodes runs too. True: a kernel was launched, so that a
// run can show that it tried something.
bool ptx(const uint8_t* data, size_t size);

// PTX that the bytes generate. It is parsed, printed, parsed and printed again: both prints must be
// equal. What decodes runs, compiled as it was written and interpreted as it was printed, and both
// must leave the same bytes; else the process aborts.
struct Tried {
  bool parsed = false;
  uint32_t launched = 0;  // kernels
  uint32_t compiled = 0;  // of these: machine code of them ran
  bool compared = false;
};
Tried generated(const uint8_t* data, size_t size, const Recipes& recipes, const Knobs& knobs);
// The same for libFuzzer, with the recipes of tests/ptx; KILN_FUZZ_PRINT=1 prints the text.
bool grammar(const uint8_t* data, size_t size);

}  // namespace kiln::fuzz
