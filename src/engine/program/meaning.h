// SPDX-License-Identifier: Apache-2.0
// What does a handler compute? From this the compiler (compile/) makes machine code with the same
// bits. A handler without a meaning here is always called.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/program.h"

namespace kiln::engine {

enum class Does : uint8_t {
  Copy,
  Spread,  // copies a scalar to 32 lanes
  Add,
  Sub,
  Mul,
  Mad,  // fused for floats
  Divide,
  Min,
  Max,
  Negate,
  Absolute,
  Root,
  Reciprocal,
  ReciprocalRoot,  // computed in f64
  PowerOfTwo,      // the polynomial of numbers/exponential.h
  DivideNearly,    // div.approx
  Rounded,         // Op::imm holds the rounding; the operation is in Meaning::floats, as for Small
  Small,           // f16 and bf16 arithmetic, computed in f32, and conversions to and from them
  CopySign,        // the sign of a, all other bits of b
  Saturate,        // to between 0 and 1; a NaN becomes 0
  Nearest,         // rounds to an integer; the result is f32
  Truncate,
  Floor,
  Ceiling,
  And,
  Or,
  Xor,
  Not,
  ShiftLeft,  // by b, which is 32 bits wide
  ShiftRight,
  FunnelLeft,  // b:a, of which a is the low half, by c modulo 32
  FunnelRight,
  Lookup,     // each bit is looked up in the table Op::imm by the bits of a, b and c
  Cast,       // an integer to an integer or to f32; Op::imm holds WideParts
  Whole,      // f32 to an integer; Op::imm holds WideParts
  Remainder,  // of 32-bit integers
  MulHigh,    // the upper half of the product of 32-bit integers
  PopCount,   // this and the next two work on 32 bits
  LeadingZeros,
  ReverseBits,
  Dot4,  // the sum of c and the products of bytes; Op::imm: bit 0: a is signed, bit 1: b is signed
  MulWide,  // `from` is the type of the factors
  MadWide,
  Convert,
  Compare,
  Select,         // c is a predicate; Op::x, Op::y: a, b are scalars
  Logic,          // Op::x: and, or, xor; Op::y: a is inverted
  CopyPredicate,  // Op::y: inverted
  InvertPredicate,
  Load,
  LoadScalar,  // one value for all lanes
  LoadFused,   // Op::data is the load; the next Op reads the value
  Store,       // Op::y: the value is a scalar
  LoadVector,  // Op::data: Elements
  LoadScalarVector,
  StoreVector,
  // Replaces the old value by what Meaning::combines computes from it and b, in memory that only
  // this thread accesses. In other memory, and for other operations, Meaning::change is called.
  Atomic,
  Branch,
  BranchIf,  // Op::a is a predicate
  BranchUnless,
  BranchIndexed,  // Op::data: the target Ops
  Lanewise,       // anything else that works lane by lane: the handler itself is called
  Warpwide        // lanes exchange values: the handler itself is called, for all lanes at once
};

// Operates on 32 bits, whatever type they have.
constexpr bool is_on_bits(Does does) {
  return does == Does::Lookup || does == Does::PopCount || does == Does::LeadingZeros ||
         does == Does::ReverseBits || does == Does::Dot4;
}

enum class Number : uint8_t { None, U32, S32, U64, S64, F32, F64, U16, S16, U8, S8 };

constexpr uint32_t bytes_of(Number number) {
  return number == Number::None                                                    ? 0
         : number == Number::U64 || number == Number::S64 || number == Number::F64 ? 8
         : number == Number::U16 || number == Number::S16                          ? 2
         : number == Number::U8 || number == Number::S8                            ? 1
                                                                                   : 4;
}

// 8 or 16 bits: a register has 16 bits, memory has either.
constexpr bool is_small(Number number) { return number >= Number::U16; }

constexpr bool is_real(Number number) { return number == Number::F32 || number == Number::F64; }

// 16-bit floats: one in a 16-bit register, or two in a 32-bit register.
enum class Small : uint8_t { None, F16, Bf16, F16x2, Bf16x2 };

constexpr bool is_pair(Small small) { return small == Small::F16x2 || small == Small::Bf16x2; }

// More about float arithmetic.
struct OfFloats {
  Does does = Does::Add;      // for Does::Rounded and Does::Small
  Small small = Small::None;  // for Does::Small
  bool flushes = false;       // f32: subnormal operands and results become 0
  bool saturates = false;     // f32: the result is clamped to between 0 and 1
};

// The names are those of comparisons.h.
enum class Comparison : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

// How the votes of 32 lanes are combined.
enum class Vote : uint8_t { None, Ballot, All, Any, Uniform };

// What a handler of Does::Warpwide reads from and writes to the frame.
struct Touched {
  struct Part {
    uint32_t slot;
    uint32_t bytes;  // of one lane; 0: a predicate
    bool is_scalar = false;
  };
  std::vector<Part> reads, writes;
  // For a shuffle: computes from the distance and the clamp which lane each of the 32 lanes reads,
  // and returns which lanes are in range; the others keep their own value. `reads` are the value,
  // the distance and the clamp; `writes` are the result and whether the lane was in range.
  uint32_t (*sources)(uint32_t by, uint32_t clamp, uint8_t* from) = nullptr;
  Vote vote = Vote::None;  // `reads` are the votes, `writes` is the result, one for all lanes
};

// Meaning::lanes of a handler that accepts any mix of lanes and scalars: bit k of Op::x means that
// operand k is a scalar.
constexpr uint8_t kMixedLanes = 0x80;

// The operands of an atomic, for a function that performs it for the lanes in the mask, in lane
// order.
struct LanesAside {
  alignas(64) std::byte* places[kWarpSize];
  alignas(64) std::byte operands[kWarpSize * 8];
  alignas(64) std::byte results[kWarpSize * 8];
  Warp* warp;
  uint32_t mask;
};
using ChangeLanes = void (*)(LanesAside& lanes, const Op* op);

struct Meaning {
  Does does = Does::Lanewise;
  Number type = Number::None;  // of the result; for a comparison, of its operands
  // Of the operands if it differs; for a load or a store, the type in memory.
  Number from = Number::None;
  uint8_t operands = 0;
  uint8_t lanes = 0;  // bit k: operand k has 32 lanes; otherwise it is a scalar
  Comparison comparison = Comparison::Eq;
  uint8_t headers = 0;        // bit k: operand k is a header (affine.h)
  Does combines = Does::Add;  // for Does::Atomic; Op::y: d receives the old value
  OfFloats floats = {};
  void (*touches)(const Op& op, Touched& out) = nullptr;  // for Does::Warpwide
  ChangeLanes change = nullptr;                           // for Does::Atomic
};

// Two values become one of twice the bits, or one becomes two. Works lane by lane, although it is
// Does::Warpwide.
inline bool is_parts(const Meaning& meaning) {
  return meaning.does == Does::Warpwide && meaning.type != Number::None;
}

// The registers of ld.v4 or st.v4.
constexpr uint32_t kMostElements = 8;
struct Elements {
  uint32_t count = 1;
  uint32_t slots[kMostElements] = {};
  bool uniform[kMostElements] = {};
};

// Returns null if the handler has no meaning.
const Meaning* meaning_of(Handler handler);

}  // namespace kiln::engine
