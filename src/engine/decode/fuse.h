// SPDX-License-Identifier: Apache-2.0
// Which neighbouring Ops run as one? A load whose value is read by one Op alone: that Op then reads
// memory itself, and 32 lanes are neither written to the frame nor read from it again.
//
// The Op that reads stays where it is. What runs in place of the load does both and goes on behind
// them; when the lanes are not neighbours in memory, or not all active, it loads as ever and the
// other Op runs by itself.
#pragma once

#include <array>
#include <span>
#include <unordered_set>

#include "engine/machine/affine.h"

namespace kiln::engine {

struct LoadFusion {
  Handler reader;
  uint32_t position;  // the operand of the reader that was loaded: 0 a, 1 b
  Handler both;
  Handler both_shared;  // for addresses of .shared
  Handler both_global;  // for addresses of 64 bits of global memory
};

std::span<const LoadFusion> float_load_fusions();
Handler plain_load_32();                  // 32 lanes of 4 bytes
bool is_scalar_load_32(Handler handler);  // one value of 4 bytes
bool is_index_check(Handler handler);     // of a View
// One index against sizes that are scalars.
bool check_same_index(const Op& one, const Op& other);

// Bit of Op::y on a load: one Op of the same stretch reads the value and nothing else does.
constexpr uint8_t kReadOnce = 1;

// What runs in place of an Op whose address is of base and step and whose memory is global: no
// other case is looked for before its own has failed. Null: nothing.
Handler global_access(const Op& op);
// The same for an address with steps along and from row to row.
Handler rows_access(const Op& op);

// A comparison of base and step with a scalar: mostly all lanes agree, and a forward branch behind
// it is decided.
bool is_compare_affine(Handler handler);
std::array<AffineTerm, 2> compared(const Op& op);
bool is_branch_if(const Op& op, bool* negated);
void fuse_branches(Program& program);

// a(i) + b(i): checks of one index are brought together, and the first does for all while the index
// is inside the smallest size. `entries`: Ops that others may go on with; what is between two
// checks must have none.
void fuse_checks(Program& program, const std::unordered_set<const Op*>& entries);

// Moves such loads to where they are read, and fuses them.
void fuse_loads(Program& program);
// Gives accesses handlers of their own, see global_access().
void choose_accesses(Program& program);

}  // namespace kiln::engine
