// SPDX-License-Identifier: Apache-2.0
// Where does a call go that opens one of NVIDIA's GPU libraries (cuBLAS, cuFFT, ...)?
#pragma once

#include "front_entry.h"
#include "text.h"

namespace kiln::detail {

// The library's own function: after this library in the loader's order, or of the newest library
// that the loader finds. Null if there is none; then `why` is the whole message.
void* function_of_library(const KilnFrontEntry* entry, Text& why);

// Why the engine refuses the call, and what to do instead.
void add_library_refusal(Text& text, const KilnFrontEntry* entry);

}  // namespace kiln::detail
