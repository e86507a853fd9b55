// SPDX-License-Identifier: Apache-2.0
// Which functions decode the rarer forms? Video instructions, 128 bits, vector atomics, the stack,
// three operands.
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

// video/video.cpp
enum class VideoVerb : uint8_t {
  Add,
  Sub,
  AbsDiff,
  Min,
  Max,
  Average,
  ShiftLeft,
  ShiftRight,
  Mad,
  Set
};
template <VideoVerb>
bool video(Lowering&);
template <VideoVerb>
bool video2(Lowering&);
template <VideoVerb>
bool video4(Lowering&);
// memory/wide.cpp
bool wide_load(Lowering&);
bool wide_store(Lowering&);
bool wide_move(Lowering&);
bool wide_pack(Lowering&);
bool wide_unpack(Lowering&);
bool wide_atomic(Lowering&);
// memory/atomic_vector.cpp
bool vector_atomic(Lowering&);
bool vector_reduction(Lowering&);
// memory/stack.cpp
bool take_stack(Lowering&);
bool save_stack(Lowering&);
bool restore_stack(Lowering&);
// float/extra.cpp
template <class F>
bool sign_of_both(Lowering&);
template <class F>
bool of_three(Lowering&);
template <class F>
bool integer_relu(Lowering&);
template <class F>
bool packed_float(Lowering&);
template <class F>
bool mixed_float(Lowering&);
bool lop3_predicate(Lowering&);
bool convert_pack(Lowering&);
bool reduce_floats(Lowering&);
bool make_policy(Lowering&);
bool mad24_high(Lowering&);

}  // namespace kiln::engine
