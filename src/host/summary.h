// SPDX-License-Identifier: Apache-2.0
// What does a tensor look like at a glance?
#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include "host/array.h"

namespace kiln::host {

struct Summary {
  int64_t count = 0;
  int64_t nan_count = 0;  // a complex number counts once, whichever part it is
  int64_t infinite_count = 0;
  bool has_range = false;     // some element is finite, and the dtype has an order
  Element least, greatest;    // of the finite ones
  std::complex<double> mean;  // of the finite ones; 0 without one
};

Summary summarise(const Array& array);

// As numpy prints: nested brackets, "..." in place of the middle of a dimension longer than 2 *
// edge (unless the whole has at most `kShowWhole` elements). `indent` goes before each line but the
// first.
inline constexpr int64_t kShowWhole = 16;
std::string elements_text(const Array& array, int64_t edge, const std::string& indent);

}  // namespace kiln::host
