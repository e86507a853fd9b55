// SPDX-License-Identifier: Apache-2.0
// Is a result what was expected, within the tolerance of its dtype, and if not, where does it first
// differ?
//
// There is one rule, for kiln call, bench, tune and, through libkiln_measure, kiln.test and
// kiln.bench. Both sides are taken as f64, and a result is right where
//
//   |seen - wanted| <= atol + rtol |wanted|
//
// rtol is that of the less precise dtype. atol is rtol times the scale of the wanted values,
// because where terms cancel, an error has the size of the terms and not of the small result. One
// that is given replaces its part of the rule. Integers and booleans are equal, or within a given
// atol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/array.h"

namespace kiln::host {

struct Tolerance {
  double rtol = 0, atol = 0;
};

// How large the finite values of a tensor are.
struct Scale {
  double root_mean_square = 0;
  double median = 0;  // of the magnitudes that are not 0; of two in the middle the larger one

  // The root mean square, unless a few values are so large that it says nothing about the others
  // (-1e9 of a mask): then ten times the median. For normally distributed values that is 6.7 times
  // their root mean square, so the limit is not reached.
  double value() const;
};
Scale scale_of(const Array& values);

Tolerance tolerance_for(const DType& seen, const DType& wanted, const Scale& scale,
                        std::optional<double> rtol, std::optional<double> atol);
// With the scale of `wanted`.
Tolerance tolerance_for(const Array& seen, const Array& wanted, std::optional<double> rtol,
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

// Infinities must be equal, NaN equals NaN. Dtypes may differ within a kind (numpy saves f64 where
// the op gives f32). Where `seen` has a dtype that numpy lacks, unsigned integers of its size are
// taken as its bits.
Comparison compare(const Array& seen, const Array& wanted, Tolerance tolerance);

// "(2, 5)", "()" for a scalar.
std::string coordinate_text(const Dims& index);

}  // namespace kiln::host
