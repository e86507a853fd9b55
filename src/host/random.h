// SPDX-License-Identifier: Apache-2.0
// What is the n-th random number of a seed? A pure function of both: the same on every machine, in
// any order.
#pragma once

#include <cstdint>

namespace kiln::host {

// 64 bits, uniform. Two rounds of the SplitMix64 finaliser over a Weyl sequence.
uint64_t random_bits(uint64_t seed, uint64_t index);

// In [0, 1), a multiple of 2^-bits: it never rounds up to 1 in a format with `bits` bits of
// mantissa. bits <= 53.
double uniform(uint64_t random, int bits);

// Mean 0, variance 1: the inverse of the normal distribution function at a uniform number, by basic
// arithmetic alone (the libm functions differ in the last bit between machines).
double normal(uint64_t random);

// In [low, high), without bias worth naming (below 2^-32 for ranges under 2^32).
int64_t random_integer(uint64_t random, int64_t low, int64_t high);

// A seed for the n-th tensor of a call: tensors of one call must not be equal.
uint64_t seed_for_argument(uint64_t seed, uint64_t argument);

}  // namespace kiln::host
