// SPDX-License-Identifier: Apache-2.0
// How do 32 lanes multiply 16 x K by K x 8 matrices of 16-bit floats into 16 x 8 f32, fast?
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::engine {

// The registers of the lanes, with fragments laid out as in the manual.
struct SmallProduct {
  const uint32_t* a[4];
  const uint32_t* b[2];
  const float* c[4];
  float* d[4];
};

// K is 8 or 16. Sums with fused multiply-adds in the order of k; a NaN has the bits of a GPU's.
void multiply_f16(const SmallProduct& product, uint32_t k);
void multiply_bf16(const SmallProduct& product, uint32_t k);

// The eight rows of 8 x 16 bits at `rows`, as ldmatrix distributes them to lanes.
void load_rows(const std::byte* const* rows, bool transposed, uint32_t* lanes);

}  // namespace kiln::engine
