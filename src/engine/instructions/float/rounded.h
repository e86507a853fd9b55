// SPDX-License-Identifier: Apache-2.0
// Which floating-point instructions round other than to nearest, and how are they lowered?
#pragma once

#include <type_traits>

#include "engine/decode/lowering.h"
#include "engine/instructions/lowerings.h"

namespace kiln::engine {

// FE_TONEAREST, or the mode for .rz, .rm or .rp.
int rounding_of(Lowering& l);

// The operations for which the manual has .rz, .rm and .rp, for f32 and f64.
template <class F>
constexpr bool kRoundsAsAsked =
    std::is_same_v<F, FloatAdd> || std::is_same_v<F, FloatSub> || std::is_same_v<F, FloatMul> ||
    std::is_same_v<F, FloatDiv> || std::is_same_v<F, Reciprocal> || std::is_same_v<F, SquareRoot> ||
    std::is_same_v<F, Fma>;

template <class F>
requires kRoundsAsAsked<F>
bool lower_rounded(Lowering& l, int rounding);
template <class F>
requires(!kRoundsAsAsked<F>) bool lower_rounded(Lowering& l, int) {
  return l.refuse("unsupported rounding for this instruction");
}

}  // namespace kiln::engine
