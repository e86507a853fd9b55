// SPDX-License-Identifier: Apache-2.0
// Which functions may the first column of instructions.def name? Each decodes one family of forms.
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

struct Add;
struct Sub;
struct AddSaturating;
struct SubSaturating;
struct MulLow;
struct MulHigh;
struct MadLow;
struct MadHigh;
struct MadHighSaturating;
struct Mul24Low;
struct Mul24High;
struct Mad24Low;
struct Sad;
struct Div;
struct Rem;
struct Abs;
struct Neg;
struct Min;
struct Max;
struct MinNan;
struct MaxNan;
struct PopCount;
struct LeadingZeros;
struct FindMost;
struct FindMostShift;
struct ReverseBits;
struct And;
struct Or;
struct Xor;
struct Not;
struct LogicalNot;
struct ShiftLeft;
struct ShiftRight;
struct Fma;
struct Reciprocal;
struct SquareRoot;
struct ReciprocalRoot;
struct Sine;
struct Cosine;
struct Log2;
struct Exp2;
struct Tanh;
struct FloatAdd;
struct FloatSub;
struct FloatMul;
struct FloatDiv;
struct FloatAbs;
struct FloatNeg;
struct FloatMin;
struct FloatMax;

// integer/integer.cpp
template <class F>
bool unary(Lowering&);
template <class F>
bool binary(Lowering&);
template <class F>
bool ternary(Lowering&);
template <class F>
bool count(Lowering&);
template <class F>
bool shift(Lowering&);
bool add_carry(Lowering&);
bool add_with_carry(Lowering&);
bool sub_carry(Lowering&);
bool sub_with_borrow(Lowering&);
bool mad_carry(Lowering&);
bool mad_with_carry(Lowering&);
bool mul_wide(Lowering&);
bool mad_wide(Lowering&);
// integer/bits.cpp
bool find_nth_set(Lowering&);
bool bit_extract(Lowering&);
bool bit_insert(Lowering&);
bool bit_mask(Lowering&);
bool shift_extend(Lowering&);
bool dot_product4(Lowering&);
bool dot_product2(Lowering&);
bool lop3(Lowering&);
bool funnel_shift(Lowering&);
bool permute(Lowering&);
// float/float.cpp
template <class F>
bool unary_float(Lowering&);
template <class F>
bool binary_float(Lowering&);
template <class F>
bool ternary_float(Lowering&);
bool test_property(Lowering&);
bool copy_sign(Lowering&);
// compare/compare.cpp, compare/compare_pair.cpp, compare/select.cpp
bool compare(Lowering&);
bool compare_pair(Lowering&);
bool compare_set(Lowering&);
bool compare_set_pair(Lowering&);
bool select(Lowering&);
bool select_by_sign(Lowering&);
template <class F>
bool predicate_logic(Lowering&);
bool predicate_not(Lowering&);
bool predicate_move(Lowering&);
// memory/move.cpp
bool move(Lowering&);
bool pack(Lowering&);
bool unpack(Lowering&);
bool convert_address(Lowering&);
bool test_space(Lowering&);
// convert/convert.cpp
bool convert(Lowering&);
// convert/convert_small.cpp
bool convert_small(Lowering&);
bool convert_pair(Lowering&);
bool convert_tf32(Lowering&);
bool convert_tiny_from_f32(Lowering&);
bool convert_tiny_from_f16(Lowering&);
bool convert_tiny_to_f16(Lowering&);
bool convert_scale_from_f32(Lowering&);
bool convert_scale_from_bf16(Lowering&);
bool convert_scale_to_bf16(Lowering&);
// memory/memory.cpp
bool load(Lowering&);
bool load_uniform(Lowering&);
bool store(Lowering&);
bool nothing(Lowering&);
bool copy_async(Lowering&);
bool copy_async_commit(Lowering&);
bool copy_async_wait(Lowering&);
void emit_copy_land(Lowering&);  // completes all copies of the thread
// memory/atomic.cpp
bool atomic(Lowering&);
bool reduction(Lowering&);
bool fence(Lowering&);
bool fence_sequential(Lowering&);
// control/control.cpp
bool branch(Lowering&);
bool branch_indexed(Lowering&);
bool leave_function(Lowering&);
bool leave_kernel(Lowering&);
bool trap(Lowering&);
bool yield_warp(Lowering&);
bool barrier(Lowering&);
bool barrier_aligned(Lowering&);
bool barrier_reduce(Lowering&);
bool barrier_reduce_aligned(Lowering&);
bool warp_barrier(Lowering&);
// memory/view_check.cpp
bool check_bounds(Lowering&);
// control/call.cpp
bool call(Lowering&);
// warp/warp.cpp
bool shuffle(Lowering&);
bool vote(Lowering&);
bool vote_ballot(Lowering&);
bool match_any(Lowering&);
bool match_all(Lowering&);
bool active_mask(Lowering&);
bool reduce_lanes(Lowering&);
bool elect_lane(Lowering&);

}  // namespace kiln::engine
