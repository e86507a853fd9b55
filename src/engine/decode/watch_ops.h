// SPDX-License-Identifier: Apache-2.0
// Which Ops does the decoder put into a watched variant of a program? They deliver what an
// instruction is about to do, and compute nothing.
//
// An access whose address is of base and step is delivered as base and step: a watcher that handles
// such runs at once stays within a few times of the unwatched speed, lane by lane it would not.
#pragma once

#include "engine/machine/events.h"
#include "engine/machine/warp.h"
#include "engine/machine/watching.h"

namespace kiln::engine {

// Op::data is an AccessSite; the address is in a, imm, x, z as in the Op that follows.
const Op* run_access_event(Warp& warp, const Op* op);
bool is_load_event(const Op& op);  // of a weak one

// Op::data is a VariableSite, the address as above.
const Op* run_variable_event(Warp& warp, const Op* op);

// a: the predicate of the guard, where y is set; x: it is negated.
const Op* run_instruction_event(Warp& warp, const Op* op);

// The same for the `imm` instructions of a stretch.
const Op* run_stretch_event(Warp& warp, const Op* op);

// a: the lanes of the result, x: bytes of each; y: it is a scalar.
const Op* run_value_event(Warp& warp, const Op* op);

// Runs the `imm` Ops behind it for the lanes whose predicate `a` holds (x: does not hold). Each of
// them must go on with the next.
const Op* run_guard_chain(Warp& warp, const Op* op);

// What the modifiers of an instruction say of its order and scope.
Strength strength_of(const ptx::Instruction& ins);
Scope scope_of(const ptx::Instruction& ins);
// Both, as the memory model completes them.
Order order_of(const ptx::Instruction& ins, bool atomic);

// Ops before one that branches or ends lanes; nothing where that is not watched.
class Lowering;
// Without a guard all lanes jump.
void announce_branch(Lowering& l, bool guarded, uint32_t predicate, bool negated);
void announce_branch_indexed(Lowering& l, uint32_t index);
void announce_exit(Lowering& l);
// commit_group, wait_group and fence of what the engine does at once.
void announce_group(Lowering& l, AsyncKind kind);

}  // namespace kiln::engine
