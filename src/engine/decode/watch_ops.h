// SPDX-License-Identifier: Apache-2.0
// Which Ops does the decoder insert into a watched variant of a program? They deliver what an
// instruction is about to do, and compute nothing.
//
// If the address of an access is base and step, it is delivered as such. A watcher that handles
// such a run at once takes only a few times as long as an unwatched run; lane by lane it would take
// much longer.
#pragma once

#include "engine/machine/events.h"
#include "engine/machine/warp.h"
#include "engine/machine/watching.h"

namespace kiln::engine {

// Op::data is an AccessSite; the address is in a, imm, x, z as in the next Op.
const Op* run_access_event(Warp& warp, const Op* op);
bool is_load_event(const Op& op);  // of a weak load

// Op::data is a VariableSite, the address as above.
const Op* run_variable_event(Warp& warp, const Op* op);

// a: the predicate of the guard, if y is set; x: it is negated.
const Op* run_instruction_event(Warp& warp, const Op* op);

// The same for the `imm` instructions of a stretch.
const Op* run_stretch_event(Warp& warp, const Op* op);

// a: the lanes of the value; x: bytes of each; y: it is a scalar.
const Op* run_value_event(Warp& warp, const Op* op);

// Runs the next `imm` Ops for the lanes whose predicate `a` holds (x: does not hold). Each of them
// must continue with the next one.
const Op* run_guard_chain(Warp& warp, const Op* op);

// The order and scope given by the modifiers of an instruction.
Strength strength_of(const ptx::Instruction& ins);
Scope scope_of(const ptx::Instruction& ins);
// Both, with the defaults of the memory model.
Order order_of(const ptx::Instruction& ins, bool atomic);

// Insert Ops before one that branches or ends lanes, if that is watched.
class Lowering;
// Without a guard all lanes jump.
void announce_branch(Lowering& l, bool guarded, uint32_t predicate, bool negated);
void announce_branch_indexed(Lowering& l, uint32_t index);
void announce_exit(Lowering& l);
// For commit_group, wait_group and fence, which the engine completes at once.
void announce_group(Lowering& l, AsyncKind kind);

}  // namespace kiln::engine
