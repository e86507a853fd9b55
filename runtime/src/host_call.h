// SPDX-License-Identifier: Apache-2.0
// How is an op called with values of the C ABI? Both functions throw.
#pragma once

#include "kiln/abi.h"
#include "kiln/register.h"

namespace kiln::detail {

void call_op(OpRecord* op, const KilnValue* values, uint32_t count, KilnValue* results);

// The same, with memory of the caller for each result that is a tensor, in their order; these have
// KILN_TYPE_NONE in `results`.
void call_op_into(OpRecord* op, const KilnValue* values, uint32_t count, KilnValue* results,
                  const KilnTensor* buffers, int buffer_count);

// The text of last_error() of this thread.
void set_error(const char* text);

}  // namespace kiln::detail
