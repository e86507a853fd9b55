// SPDX-License-Identifier: Apache-2.0
// Is a result what was expected, within the tolerance of its dtype, and if not, where does it first
// differ?
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/array.h"

namespace kiln::host {

struct Tolerance {
  double rtol = 0, atol = 0;
};

// By the less precise of the two dtypes, as torch.testing.assert_close has it. One that is given
// stands for itself; the other one then is 0.
Tolerance tolerance_for(const DType& seen, const DType& wanted, std::optional<double> rtol,
                        std::optional<double> atol);

struct Comparison {
  bool equal = false;
  std::string unlike;  // not comparable at all: "shape 4x5, wanted 5x4"; else ""
  std::string note;    // "compared f32 with f64"; else ""
  int64_t count = 0;
  int64_t mismatches = 0;
  Dims first;  // coordinate of the first mismatch
  std::string first_seen, first_wanted;
  double max_absolute = 0,
         max_relative = 0;  // over all finite pairs; relative to the wanted value where it is not 0
};

// |seen - wanted| <= atol + rtol |wanted|; infinities must be equal, NaN equals NaN. Dtypes may
// differ within a kind (numpy saves f64 where the op gives f32). Where `seen` has a dtype that
// numpy lacks, unsigned integers of its size are taken as its bits.
Comparison compare(const Array& seen, const Array& wanted, Tolerance tolerance);

// "(2, 5)", "()" for a scalar.
std::string coordinate_text(const Dims& index);

}  // namespace kiln::host
