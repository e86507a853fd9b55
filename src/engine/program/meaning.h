// SPDX-License-Identifier: Apache-2.0
// What does a handler compute? The compiler (compile/) makes machine code from this, with the same
// bits; a handler that has no meaning here is always called.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/program.h"

namespace kiln::engine {

enum class Does : uint8_t {
  Copy,
  Spread,  // a scalar to 32 lanes
  Add,
  Sub,
  Mul,
  Mad,  // of floats: fused
  Divide,
  Min,
  Max,
  Negate,
  Absolute,
  Root,
  Reciprocal,
  ReciprocalRoot,  // computed in f64
  PowerOfTwo,      // as numbers/exponential.h has it
  DivideNearly,    // div.approx
  Rounded,         // Op::imm says how; what is done is in Meaning::floats, and so on for Small:
  Small,           // arithmetic of f16 and bf16, by way of f32, and conversions to and from those
  CopySign,        // the sign of a, the rest of b
  Saturate,        // to 0 and 1; a NaN is 0
  Nearest,         // integers of f32
  Truncate,
  Floor,
  Ceiling,
  And,
  Or,
  Xor,
  Not,
  ShiftLeft,  // by b, which has 32 bits
  ShiftRight,
  FunnelLeft,  // of b and a, which is the low half; by c, modulo 32
  FunnelRight,
  Lookup,     // each bit by a table of those of a, b and c, in Op::imm
  Cast,       // an integer to another one or to f32, as WideParts in Op::imm say
  Whole,      // f32 to an integer: the same
  Remainder,  // of integers of 32 bits
  MulHigh,    // the same: the upper half of the product
  PopCount,   // bits of 32: how many are set,
  LeadingZeros,
  ReverseBits,
  Dot4,     // the sum of c and the products of bytes; Op::imm: bit 0: a's are signed, bit 1: b's
  MulWide,  // `from` is what is multiplied
  MadWide,
  Convert,
  Compare,
  Select,         // c is a predicate; Op::x and y: a and b are scalars
  Logic,          // Op::x: and, or, xor; y: of the inverse of a
  CopyPredicate,  // Op::y: inverted
  InvertPredicate,
  Load,
  LoadScalar,  // one value for all lanes
  LoadFused,   // Op::data is the load; the Op behind it reads the value
  Store,       // Op::y: the value is a scalar
  LoadVector,  // Op::data: Elements
  LoadScalarVector,
  StoreVector,
  // The old value and b become what Meaning::combines makes of them: in memory that only this
  // thread accesses. Elsewhere, and for other operations, Meaning::change is called.
  Atomic,
  Branch,
  BranchIf,  // Op::a is a predicate
  BranchUnless,
  BranchIndexed,  // Op::data names the Ops
  Lanewise,       // whatever it is, lane by lane: the handler itself is called
  Warpwide        // lanes exchange values: the handler itself is called, for all of them at once
};

// Bits of 32, whatever number they are.
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

// Of 8 or 16 bits: a register has 16, memory either.
constexpr bool is_small(Number number) { return number >= Number::U16; }

constexpr bool is_real(Number number) { return number == Number::F32 || number == Number::F64; }

// Floats of 16 bits: one in a register of 16, or two in one of 32.
enum class Small : uint8_t { None, F16, Bf16, F16x2, Bf16x2 };

constexpr bool is_pair(Small small) { return small == Small::F16x2 || small == Small::Bf16x2; }

// What else is to be known of arithmetic of floats.
struct OfFloats {
  Does does = Does::Add;      // of Does::Rounded and Does::Small
  Small small = Small::None;  // of Does::Small
  bool flushes = false;       // of f32: what is subnormal is 0, as an operand and as a result
  bool saturates = false;     // the same: the result is between 0 and 1
};

// As comparisons.h names them.
enum class Comparison : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

// What becomes of the votes of 32 lanes.
enum class Vote : uint8_t { None, Ballot, All, Any, Uniform };

// What a handler of Does::Warpwide reads and writes of the frame.
struct Touched {
  struct Part {
    uint32_t slot;
    uint32_t bytes;  // of a lane; 0: a predicate
    bool is_scalar = false;
  };
  std::vector<Part> reads, writes;
  // Of a shuffle: which lane each of the 32 reads, by the distance and the clamp, and which lanes
  // are in range; the others keep their own value. Reads are the value, the distance and the clamp;
  // writes are the result and whether the lane was in range.
  uint32_t (*sources)(uint32_t by, uint32_t clamp, uint8_t* from) = nullptr;
  Vote vote = Vote::None;  // reads are the votes, writes the result, which is one for all
};

// Meaning::lanes of a handler that serves every mix of lanes and scalars: bit k of Op::x says that
// operand k is a scalar.
constexpr uint8_t kMixedLanes = 0x80;

// The lanes of an atomic, for a function that does it for those in the mask, in lane order.
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
  Number type = Number::None;  // of the result; of a comparison, of what is compared
  // Of the operands, where they differ; of what a load or a store has in memory.
  Number from = Number::None;
  uint8_t operands = 0;
  uint8_t lanes = 0;  // bit k: operand k is 32 lanes, else a scalar
  Comparison comparison = Comparison::Eq;
  uint8_t headers = 0;        // bit k: operand k is a header of affine.h
  Does combines = Does::Add;  // of Does::Atomic; Op::y: d is what was there before
  OfFloats floats = {};
  void (*touches)(const Op& op, Touched& out) = nullptr;  // of Does::Warpwide
  ChangeLanes change = nullptr;                           // of Does::Atomic
};

// Two values become one of twice the bits, or the other way: lane by lane, in spite of its name.
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

// Null: not known.
const Meaning* meaning_of(Handler handler);

}  // namespace kiln::engine
