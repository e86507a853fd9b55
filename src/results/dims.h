// SPDX-License-Identifier: Apache-2.0
// How is a grid or a block written in JSON? As three numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::results {

template <class Fields>
void describe_dims(Fields& field, const char* name, std::array<uint32_t, 3>& of) {
  std::vector<uint32_t> values(of.begin(), of.end());
  field(name, values);
  // A reader adds to what is there.
  for (size_t i = 0; i < of.size(); ++i) of[i] = values[values.size() - of.size() + i];
}

}  // namespace kiln::results
