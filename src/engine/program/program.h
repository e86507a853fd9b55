// SPDX-License-Identifier: Apache-2.0
// What does the decoder make of a function? A flat list of Ops whose operands are byte offsets into
// a frame.
//
// A frame holds the registers of 32 lanes as a structure of arrays. A value that is the same for
// the whole warp for as long as it lives (immediates, parameters, %ctaid and what is computed from
// them by registers written once) is kept once, as a scalar of 8 bytes; the others have 32 lanes of
// their width. A predicate is a mask of 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cuda/limits.h"
#include "engine/program/tiering.h"
#include "ptx/module.h"

namespace kiln::engine {

struct Warp;
struct Op;
// Returns the next Op of this split; null: the warp's scheduler has to look at Warp::event.
using Handler = const Op* (*)(Warp&, const Op*);

// How a masked execution treats the destination.
enum class Effect : uint8_t {
  MaskAware,  // the handler itself looks at Warp::mask
  Scalar,     // the result is the same for every lane: written whatever the mask is
  Lanes2,     // writes 32 lanes of 2, 4 or 8 bytes at `d` and nothing else: blended from outside
  Lanes4,
  Lanes8,
  Lanes1
};

struct Op {
  Handler run = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0;  // offsets in the frame
  int64_t imm = 0;
  const void* data = nullptr;  // what a family of handlers keeps for itself; owned by the Program
  const Op* target = nullptr;  // of a branch
  uint32_t site = 0;           // index into Program::sites
  Effect effect = Effect::MaskAware;
  uint8_t x = 0, y = 0, z = 0;
};

// Where an Op comes from, for messages.
struct Site {
  ptx::SourceLine source;
  uint32_t ptx_line = 0;
  std::string_view mnemonic;
  std::string_view opcode;  // with the modifiers: "add.rn.f32"
};

// A register that the hardware fills in.
enum class Special : uint8_t {
#define SPECIAL(name, ptx, tier, value) name,
#define LANES(name, ptx, tier, lane_value, value) name,
#define ALSO(ptx, name)
#define CHANGING(name) name,
#include "engine/program/specials.def"
};

// How long a value holds (hoist.h).
enum class Tier : uint8_t { Launch, Block, Warp };

struct SpecialSlot {
  Special special;
  uint32_t offset;
  bool lanes;   // 32 lanes of 4 bytes, else a scalar
  bool affine;  // kept as base and step (affine.h)
  Tier tier = Tier::Warp;
};

// A value of base and step that rises from warp to warp.
struct Advance {
  uint32_t offset;  // of the header
  uint8_t check;    // whether other values widen it
};

// A value of the Ops of a block that rises by one number from block to block along x: where it is,
// and what that number is made of. The first is %ctaid.x, a scalar; the others have base and step.
struct BlockStep {
  uint32_t offset = 0;
  bool check = false;  // other values widen it
  struct Part {
    uint32_t from = 0;    // another step
    uint32_t factor = 0;  // a scalar, and its bytes; 0: none
    uint8_t factor_bytes = 0;
    bool is_signed = false;  // the factor
    bool widens = false, negative = false, shifts = false;
  };
  uint32_t count = 0;  // of its parts; none: 1
  Part parts[3];
};

// A variable of shared memory that a function names. For messages.
struct SharedVariable {
  std::string_view name;  // mangled
  uint64_t offset = 0;
  uint64_t bytes = 0;  // 0: `extern`, it begins where the launch's dynamic memory does
};

// Where a declared parameter of a kernel is in its parameter block.
struct ParameterPlace {
  uint32_t offset;
  uint32_t bytes;
};

// A scalar that a kernel parameter fills at launch.
struct ParameterSlot {
  uint32_t offset;            // in the frame
  uint32_t parameter_offset;  // in the parameter block
  uint8_t bytes;
  bool sign_extend;
};

// The ways in which a function can be decoded.
struct Variant {
  // The lanes of a warp have neighbouring %tid.x and one %tid.y and %tid.z: such a program runs
  // only with blocks for which that holds.
  bool rows_fill_warps = false;
  uint8_t events = 0;  // bits of kDecodedEvents (machine/events.h): Ops deliver these
  // The lanes of a warp are in whole rows of 1, 2, 4, 8, 16 or 32 threads and have one %tid.z.
  bool narrow_rows = false;

  static constexpr size_t kCount = 1024;
  static constexpr size_t kPlain = 4;  // those without events come first
  size_t index() const {
    return size_t{events} << 2 | (narrow_rows ? 2u : 0u) | (rows_fill_warps ? 1u : 0u);
  }
};

struct Program {
  std::string name;
  uint64_t serial = 0;  // of its own, in the process: an address can come back
  const ptx::Module* module = nullptr;
  const ptx::Function* function = nullptr;
  std::vector<Op> ops;
  // A kernel begins with Ops that hold for a launch, then such that hold for a block; the first of
  // the others.
  uint32_t block_start = 0, warp_start = 0;
  std::vector<Advance> advances;
  std::vector<BlockStep> block_steps;  // empty: the Ops of a block run for each
  bool narrow_rows = false;            // Variant::narrow_rows
  std::vector<Site> sites;
  std::vector<ptx::InlinedCall> inlined_calls;  // ptx::SourceLine::call
  uint32_t frame_bytes = 0;
  uint32_t zero = ~uint32_t{0};  // a scalar that is always 0, where there is one
  // What a new frame starts with: bytes at offset 0 (scratch, constants); everything beyond is
  // zero.
  std::vector<std::byte> image;
  std::vector<SpecialSlot> specials;
  std::vector<ParameterSlot> parameters;
  // Device functions: where arguments and results are in the frame, one lane after the other.
  struct Passed {
    uint32_t offset;
    uint32_t bytes;  // of one lane
  };
  std::vector<Passed> arguments;
  std::vector<Passed> results;
  uint32_t parameter_bytes = 0;  // of a kernel
  std::vector<ParameterPlace> parameter_places;
  uint32_t local_bytes = 0;   // of one lane, in this function alone
  uint64_t shared_bytes = 0;  // static; the end of the last variable that this function names
  std::vector<SharedVariable> shared_variables;
  bool has_barrier = false;
  bool has_calls = false;
  bool may_wait = false;                     // for what another block writes
  std::vector<std::shared_ptr<void>> owned;  // what Op::data points to
  std::vector<const Program*> callees;
  std::shared_ptr<Tiering> tiering;  // null: it is interpreted and no more
};

// Offset 0 of every frame: where masked execution puts what it will blend.
constexpr uint32_t kScratch = 0;
constexpr uint32_t kScratchBytes = 256;

}  // namespace kiln::engine
