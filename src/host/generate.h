// SPDX-License-Identifier: Apache-2.0
// Which values does the tensor of a spec hold? The same on every machine, whatever the number of
// threads.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "host/array.h"
#include "host/tensor_spec.h"

namespace kiln::host {

// Reads the file or fills the memory. `seed` is used unless the spec has its own.
Result<Array> make_array(const TensorSpec& spec, uint64_t seed);

// NaN in floats, the bytes 0xA5 in integers, true in bool: what no op may read.
void fill_with_poison(Array& array);

}  // namespace kiln::host
