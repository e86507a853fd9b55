// SPDX-License-Identifier: Apache-2.0
// What does the decoder turn a function into? A flat list of Ops whose operands are byte offsets
// into a frame.
//
// A frame holds the registers of 32 lanes as a structure of arrays. A value that is the same for
// the whole warp while it lives (immediates, parameters, %ctaid and what registers written once
// compute from them) is stored once, as a scalar of 8 bytes; all others have 32 lanes of their
// width. A predicate is a 32-bit mask.
#pragma once

#include <bit>
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
// Returns the next Op of this split, or null if the warp's scheduler must look at Warp::event.
using Handler = const Op* (*)(Warp&, const Op*);

// How a masked execution treats the destination.
enum class Effect : uint8_t {
  MaskAware,  // the handler applies Warp::mask itself
  Scalar,     // the result is the same for all lanes; it is written whatever the mask is
  Lanes2,  // writes 32 lanes of 2, 4, 8 or 1 bytes at `d` and nothing else; the caller blends them
  Lanes4,
  Lanes8,
  Lanes1
};

struct Op {
  Handler run = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0;  // offsets in the frame
  int64_t imm = 0;
  const void* data = nullptr;  // private to the handlers; owned by the Program
  const Op* target = nullptr;  // of a branch
  uint32_t site = 0;           // index into Program::sites
  Effect effect = Effect::MaskAware;
  uint8_t x = 0, y = 0, z = 0;
};

// Where an Op comes from; for messages.
struct Site {
  ptx::SourceLine source;
  uint32_t ptx_line = 0;
  std::string_view mnemonic;
  std::string_view opcode;  // with the modifiers: "add.rn.f32"
};

// A register that the hardware fills.
enum class Special : uint8_t {
#define SPECIAL(name, ptx, tier, value) name,
#define LANES(name, ptx, tier, lane_value, value) name,
#define ALSO(ptx, name)
#define CHANGING(name) name,
#include "engine/program/specials.def"
};

// How long a value stays the same (hoist.h).
enum class Tier : uint8_t { Launch, Block, Warp };

struct SpecialSlot {
  Special special;
  uint32_t offset;
  bool lanes;   // 32 lanes of 4 bytes; otherwise a scalar
  bool affine;  // kept as base and step (affine.h)
  Tier tier = Tier::Warp;
};

// A value of base and step that increases from warp to warp.
struct Advance {
  uint32_t offset;  // of the header
  uint8_t check;  // kCheckSigned or kCheckUnsigned (machine/advance.h): another value extends it to
                  // 64 bits
};

// A value that the Ops of a block compute and that increases by a fixed amount from block to block
// along x, in one row of the grid: where it is, and what the amount is made of. The first is
// %ctaid.x, a scalar; the others are base and step.
struct BlockStep {
  uint32_t offset = 0;
  bool check = false;  // another value extends it to 64 bits
  struct Part {
    uint32_t from = 0;    // index of another step
    uint32_t factor = 0;  // a scalar, and its size; 0: none
    uint8_t factor_bytes = 0;
    bool is_signed = false;  // of the factor
    bool widens = false, negative = false, shifts = false;
  };
  uint32_t count = 0;  // of parts; 0: the amount is 1
  Part parts[3];
};

// A variable of shared memory that a function uses; for messages.
struct SharedVariable {
  std::string_view name;  // mangled
  uint64_t offset = 0;
  uint64_t bytes = 0;  // 0: `extern`; begins where the launch's dynamic memory does
};

// Where a declared parameter of a kernel is in its parameter block.
struct ParameterPlace {
  uint32_t offset;
  uint32_t bytes;
};

// A scalar that is filled from a kernel parameter at launch.
struct ParameterSlot {
  uint32_t offset;            // in the frame
  uint32_t parameter_offset;  // in the parameter block
  uint8_t bytes;
  bool sign_extend;
};

// The ways in which a function can be decoded.
struct Variant {
  // The lanes of a warp have consecutive %tid.x and the same %tid.y and %tid.z. Such a program runs
  // only with blocks for which this holds.
  bool rows_fill_warps = false;
  uint8_t events = 0;  // bits of kDecodedEvents (machine/events.h): events that the Ops deliver
  // A warp consists of whole rows of 1, 2, 4, 8, 16 or 32 threads, all with the same %tid.z. 0: it
  // does not. The Ops are the same for all lengths, but machine code is for one of them.
  uint8_t row_lanes = 0;

  bool narrow_rows() const { return row_lanes != 0; }

  static constexpr size_t kCount = 2048;
  static constexpr size_t kPlain = 8;  // variants without events come first
  size_t index() const {
    const auto rows = static_cast<size_t>(std::bit_width(row_lanes));
    return size_t{events} << 3 | (rows_fill_warps ? 7u : rows);
  }
};

struct Program {
  std::string name;
  uint64_t serial = 0;  // unique in the process, because addresses are reused
  const ptx::Module* module = nullptr;
  const ptx::Function* function = nullptr;
  std::vector<Op> ops;
  // A kernel begins with the Ops that run once per launch. From `block_start` on are those that run
  // once per block, and from `warp_start` on all others.
  uint32_t block_start = 0, warp_start = 0;
  std::vector<Advance> advances;
  std::vector<BlockStep> block_steps;  // empty: the Ops of a block run for each block
  bool steps_differ_by_row = false;    // a factor of block_steps depends on %ctaid.y or %ctaid.z
  bool narrow_rows = false;            // Variant::narrow_rows
  std::vector<Site> sites;
  std::vector<ptx::InlinedCall> inlined_calls;  // ptx::SourceLine::call
  uint32_t frame_bytes = 0;
  uint32_t zero = ~uint32_t{0};  // offset of a scalar that is always 0, if there is one
  // The first bytes of a new frame (scratch, constants); the rest of it is zero.
  std::vector<std::byte> image;
  std::vector<SpecialSlot> specials;
  std::vector<ParameterSlot> parameters;
  // Device functions: the arguments and results in the frame, one lane after the other.
  struct Passed {
    uint32_t offset;
    uint32_t bytes;  // of one lane
  };
  std::vector<Passed> arguments;
  std::vector<Passed> results;
  uint32_t parameter_bytes = 0;  // of a kernel
  std::vector<ParameterPlace> parameter_places;
  uint32_t local_bytes = 0;   // per lane, for this function alone
  uint64_t shared_bytes = 0;  // static: the end of the last variable that this function uses
  std::vector<SharedVariable> shared_variables;
  bool has_barrier = false;
  bool has_calls = false;
  bool may_wait = false;                     // for writes of another block
  std::vector<std::shared_ptr<void>> owned;  // what Op::data points to
  std::vector<const Program*> callees;
  std::shared_ptr<Tiering> tiering;  // null: always interpreted
};

// Offset 0 of every frame: masked execution writes results here before it blends them.
constexpr uint32_t kScratch = 0;
constexpr uint32_t kScratchBytes = 256;

}  // namespace kiln::engine
