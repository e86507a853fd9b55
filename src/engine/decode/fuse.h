// SPDX-License-Identifier: Apache-2.0
// Which neighbouring Ops run as one? A load whose value is read by only one Op: that Op then reads
// memory itself, and 32 lanes are neither written to the frame nor read from it.
//
// The reading Op stays in place. The handler that replaces the load does both and continues after
// both Ops. If the lanes are not neighbours in memory, or not all active, it only loads, and the
// reading Op runs by itself.
#pragma once

#include <array>
#include <span>
#include <unordered_set>

#include "engine/machine/affine.h"

namespace kiln::engine {

struct LoadFusion {
  Handler reader;
  uint32_t position;  // the operand of the reader that is loaded: 0 is a, 1 is b
  Handler both;
  Handler both_shared;  // for addresses of .shared
  Handler both_global;  // for 64-bit addresses of global memory
};

std::span<const LoadFusion> float_load_fusions();
Handler plain_load_32();                  // 32 lanes of 4 bytes
bool is_scalar_load_32(Handler handler);  // one value of 4 bytes
bool is_index_check(Handler handler);     // of a View
// Do both check one index, against sizes that are scalars?
bool check_same_index(const Op& one, const Op& other);

// Bit of Op::y of a load: one Op of the same stretch reads the value, and no other Op does.
constexpr uint8_t kReadOnce = 1;

// The handler for an Op whose address is base and step and whose memory is global: it tries this
// case before all others. Null: none.
Handler global_access(const Op& op);
// The same for an address with steps along a row and from row to row.
Handler rows_access(const Op& op);

// A comparison of base and step with a scalar. Usually all lanes agree, which also decides a
// forward branch after it.
bool is_compare_affine(Handler handler);
std::array<AffineTerm, 2> compared(const Op& op);
bool is_branch_if(const Op& op, bool* negated);
void fuse_branches(Program& program);

// a(i) + b(i): moves checks of the same index together; the first one covers all while the index is
// below the smallest size. `entries`: Ops to which control may jump; there must be none between two
// checks.
void fuse_checks(Program& program, const std::unordered_set<const Op*>& entries);

// Moves fused loads to where they are read.
void fuse_loads(Program& program);
// Selects special handlers for accesses, see global_access().
void choose_accesses(Program& program);

}  // namespace kiln::engine
