// SPDX-License-Identifier: Apache-2.0
// How are the Ops of a function emitted and put in order? (lowering_operands.cpp decides where its
// operands are stored.)
#include "engine/decode/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/decode/branches.h"
#include "engine/decode/control.h"
#include "engine/decode/fuse.h"
#include "engine/decode/hoist.h"
#include "engine/decode/image.h"
#include "engine/decode/spread.h"
#include "engine/decode/watch_ops.h"
#include "engine/machine/fault.h"
#include "engine/numbers/numeric.h"
#include "engine/program/specials.h"
#include "ptx/parser.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kMaxFrameBytes = 256u << 20;
constexpr uint64_t kMaxSharedBytes = 1u << 20;

std::atomic<uint64_t> next_serial{1};

// "add.rn.f32", as in the text.
std::string_view opcode_of(const ptx::Instruction& ins) {
  // The instruction that stands for the index check of a View is not in the text.
  const char* const end = ins.mnemonic.data() + ins.mnemonic.size();
  if (ins.modifiers.empty() || *end != '.') return ins.mnemonic;
  const std::string_view last = ins.modifiers.back();
  return {ins.mnemonic.data(),
          static_cast<size_t>(last.data() + last.size() - ins.mnemonic.data())};
}

}  // namespace

Lowering::Lowering(Image& image, const ptx::Module& module, const ptx::Function& function,
                   Variant variant, Program& program)
    : image_(image), module_(module), function_(function), variant_(variant), program_(program) {
  program_.name = std::string(function.name);
  program_.serial = next_serial.fetch_add(1);
  program_.module = &module;
  program_.function = &function;
  program_.frame_bytes = kScratchBytes;
  program_.narrow_rows = variant.narrow_rows();
}

uint32_t Lowering::allocate(uint32_t bytes, uint32_t align) {
  if (bytes == 8 && align == 8) {  // scalars are next to each other: eight per cache line
    if (scalars_left_ == 0) {
      next_scalar_ = allocate(64, 64);
      scalars_left_ = 8;
    }
    --scalars_left_;
    return next_scalar_ == kScratch ? kScratch : std::exchange(next_scalar_, next_scalar_ + 8);
  }
  uint64_t offset = (uint64_t{program_.frame_bytes} + align - 1) / align * align;
  if (offset + bytes > kMaxFrameBytes) {
    refuse(fmt::format("the function needs more than {} MB of registers per warp",
                       kMaxFrameBytes >> 20));
    return kScratch;
  }
  program_.frame_bytes = static_cast<uint32_t>(offset + bytes);
  return static_cast<uint32_t>(offset);
}

uint32_t Lowering::allocate_constant(const void* bytes, uint32_t size) {
  uint32_t offset = allocate(size, size >= 64 ? 64 : 8);
  if (program_.image.size() < program_.frame_bytes) program_.image.resize(program_.frame_bytes);
  std::memcpy(program_.image.data() + offset, bytes, size);
  return offset;
}

uint32_t Lowering::constant(uint64_t bits) {
  auto found = constants_.find(bits);
  if (found != constants_.end()) return found->second;
  const uint32_t at = constants_[bits] = allocate_constant(&bits, 8);
  numbers_[at] = bits;
  if (bits == 0) program_.zero = at;
  return at;
}

uint32_t Lowering::constant_predicate(bool value) { return constant(value ? ~uint64_t{0} : 0); }

uint32_t Lowering::temporary(uint32_t bytes) { return allocate(bytes * kWarpSize, 64); }
uint32_t Lowering::temporary_predicate() { return allocate(8, 8); }

uint32_t Lowering::special(Special special, bool lanes) {
  auto found = specials_.find(special);
  if (found != specials_.end()) return found->second;
  uint32_t offset = lanes ? allocate(4 * kWarpSize, 64) : allocate(8, 8);
  program_.specials.push_back({special, offset, lanes, false});
  return specials_[special] = offset;
}

bool Lowering::refuse(std::string why) {
  if (refusal_.empty()) refusal_ = std::move(why);
  return false;
}

Error Lowering::error_at(const ptx::Instruction& ins, std::string why) const {
  Site site{ins.source, ins.line, ins.mnemonic, {}};
  Program at;
  at.module = &module_;
  at.sites.push_back(site);
  const bool blackwell = module_.target.starts_with("sm_1");  // sm_100 and later: tcgen05
  return Error{Fault::Work, fmt::format("cannot run {} on the engine", demangled(program_.name)),
               fmt::format("{}, in {}", why, place_of(at, Op{})),
               fmt::format("{}; kiln docs reference/ptx lists what the engine runs",
                           blackwell ? "compile it for sm_90 (wgmma) or sm_80 (mma), or run it on "
                                       "a GPU of its target"
                                     : "run it on a GPU")};
}

Status Lowering::declare() {
  TRY(body_, ptx::parse_body(module_, function_));
  places_.resize(body_.registers.size());
  if (is_kernel()) {
    uint64_t offset = 0;
    for (const ptx::Variable& p : function_.parameters) {
      offset = (offset + p.align - 1) / p.align * p.align;
      parameter_offsets_[p.name] = static_cast<uint32_t>(offset);
      program_.parameter_places.push_back(
          {static_cast<uint32_t>(offset), static_cast<uint32_t>(p.bytes())});
      offset += p.bytes();
      if (offset > 65536) return error_at({}, "its parameters are larger than 64 KB");
    }
    program_.parameter_bytes = static_cast<uint32_t>(offset);
  }
  auto pass = [&](const ptx::Variable& v) -> Passed {
    if (v.bytes() > 65536) {
      refuse("an argument of more than 64 KB");
      return {kScratch, 0};
    }
    uint32_t bytes = (static_cast<uint32_t>(v.bytes()) + v.align - 1) / v.align * v.align;
    Passed passed{allocate(bytes * kWarpSize, 64), bytes};
    passed_[v.name] = passed;
    return passed;
  };
  for (const ptx::Variable& v : function_.results) {
    Passed p = pass(v);
    program_.results.push_back({p.offset, p.bytes});
  }
  if (!is_kernel()) {
    for (const ptx::Variable& v : function_.parameters) {
      Passed p = pass(v);
      program_.arguments.push_back({p.offset, p.bytes});
    }
  }
  uint64_t local = 0, shared_end = 0;
  for (const ptx::Variable& v : body_.variables) {
    switch (v.space) {
      case ptx::Space::Param:
        pass(v);
        break;
      case ptx::Space::Local:
        local = (local + v.align - 1) / v.align * v.align;
        local_[v.name] = local;
        local += v.bytes();
        break;
      case ptx::Space::Shared: {
        if (!is_kernel() && v.unsized)
          return error_at({}, fmt::format("the shared variable '{}' without a size inside a device "
                                          "function",
                                          v.name));
        const uint64_t at =
            is_kernel() ? (std::max(shared_end, image_.common_shared_bytes()) + v.align - 1) /
                              v.align * v.align
                        : image_.shared_offset_in(function_, v.name);
        shared_[v.name] = at;
        program_.shared_variables.push_back({v.name, at, v.bytes()});
        shared_end = std::max(shared_end, at + v.bytes());
        program_.shared_bytes = shared_end;
        if (shared_end > kMaxSharedBytes)
          return error_at({}, "its shared variables are larger than 1 MB");
        break;
      }
      default: {
        CHECK_OK(image_.declare_in_function(function_, v));
      }
    }
  }
  if (local > (1u << 20))
    return error_at({}, "its local variables are larger than 1 MB per thread");
  program_.local_bytes = static_cast<uint32_t>((local + 15) / 16 * 16);
  if (!refusal_.empty()) return error_at({}, refusal_);
  return {};
}

Status Lowering::match_forms() {
  matches_.reserve(body_.instructions.size());
  for (const ptx::Instruction& ins : body_.instructions) {
    auto match = ptx::match_form(ins);
    if (!match) return error_at(ins, ptx::why_unknown(ins));
    matches_.push_back(*match);
    const ptx::Form& form = ptx::forms()[match->form];
    program_.may_wait |= form.has(ptx::kWaits) || ptx::polls(form, ins);
  }
  return {};
}

void Lowering::count_definitions() {
  definitions_.assign(body_.registers.size(), 0);
  auto define = [&](const ptx::Operand& o) {
    if (o.kind == ptx::OperandKind::Register || o.kind == ptx::OperandKind::Predicate)
      ++definitions_[o.reg];
    for (const ptx::Operand& e : o.elements) {
      if (o.kind == ptx::OperandKind::Vector && e.kind == ptx::OperandKind::Register)
        ++definitions_[e.reg];
    }
  };
  for (size_t i = 0; i < body_.instructions.size(); ++i)
    ptx::each_written(form(i), body_.instructions[i], define);
}

Op& Lowering::emit(Handler handler) {
  Op op;
  op.run = handler;
  op.site = program_.sites.empty() ? 0 : static_cast<uint32_t>(program_.sites.size() - 1);
  program_.ops.push_back(op);
  return program_.ops.back();
}

void Lowering::emit_value(const ptx::Operand& operand, uint32_t bytes, bool all_uniform,
                          Handler handler, Source a, Source b, Source c, int64_t imm) {
  if (!handler) {
    refuse("no such type for this instruction");
    return;
  }
  bool scalar = dest_uniform(operand, all_uniform);
  Dest d;
  if (!dest(operand, bytes, scalar, &d)) return;
  Op& op = emit(handler);
  op.a = a.offset;
  op.b = b.offset;
  op.c = c.offset;
  op.imm = imm;
  op.x = static_cast<uint8_t>((a.uniform ? 1 : 0) | (b.uniform ? 2 : 0) | (c.uniform ? 4 : 0));
  if (!all_uniform) {
    op.d = d.offset;
    op.effect = lanes_effect(bytes);
  } else if (scalar) {
    op.d = d.offset;
    op.effect = Effect::Scalar;
  } else {
    uint32_t from = allocate(8, 8);
    op.d = from;
    op.effect = Effect::Scalar;
    Op all = make_spread(from, d.offset, bytes);
    all.site = op.site;
    program_.ops.push_back(all);
  }
}

bool Lowering::lower_unary(Handler (*choose)(ptx::Type type, Source a)) {
  Source a;
  if (!source(operand(1), type(), &a)) return false;
  const Handler handler = choose(type(), a);
  if (!handler) return refuse("no such type for this instruction");
  emit_value(operand(0), ptx::bytes_of(type()), a.uniform, handler, a);
  return true;
}

bool Lowering::lower_binary(Handler (*choose)(ptx::Type type, Source a, Source b)) {
  Source a, b;
  if (!source(operand(1), type(), &a) || !source(operand(2), type(), &b)) return false;
  const Handler handler = choose(type(), a, b);
  if (!handler) return refuse("no such type for this instruction");
  emit_value(operand(0), ptx::bytes_of(type()), a.uniform && b.uniform, handler, a, b);
  return true;
}

bool Lowering::lower_ternary(Handler (*choose)(ptx::Type type, Source a, Source b, Source c)) {
  Source a, b, c;
  if (!source(operand(1), type(), &a) || !source(operand(2), type(), &b) ||
      !source(operand(3), type(), &c))
    return false;
  const Handler handler = choose(type(), a, b, c);
  if (!handler) return refuse("no such type for this instruction");
  const bool uniform = a.uniform && b.uniform && c.uniform;
  emit_value(operand(0), ptx::bytes_of(type()), uniform, handler, a, b, c);
  return true;
}

void Lowering::fix_later(
    size_t op_index,
    std::function<void(Op&, const std::function<const Op*(std::string_view)>&)> fix) {
  fixes_.push_back({op_index, std::move(fix)});
}

void Lowering::branch_to(Op& op, std::string_view label) {
  size_t index = static_cast<size_t>(&op - program_.ops.data());
  fix_later(index, [label](Op& fixed, const std::function<const Op*(std::string_view)>& find) {
    fixed.target = find(label);
  });
}

bool Lowering::alias_affine(const ptx::Operand& operand, ptx::Type type, const ptx::Operand& from) {
  AffineTerm term;
  Source on_lanes;
  if (!affine_dest(operand, ptx::bytes_of(type))) return false;
  if (from.kind != ptx::OperandKind::Register && from.kind != ptx::OperandKind::Special)
    return false;
  if (from.kind == ptx::OperandKind::Special) {
    const auto kept = [&](const SpecialRow& row) {
      return row.name == from.name && special_in_steps(row.special);
    };
    if (std::none_of(std::begin(kSpecials), std::end(kSpecials), kept)) return false;
  }
  if (!affine_term(from, type, &term, &on_lanes) || !term.affine) return false;
  Place& p = places_[operand.reg];
  p.known = true;
  p.affine = true;
  p.offset = term.offset;
  p.defined_at = from.kind == ptx::OperandKind::Register ? places_[from.reg].defined_at : ~0u;
  return true;
}

bool Lowering::alias(const ptx::Operand& operand, Source to, const ptx::Operand& from) {
  if (!dest_uniform(operand, to.uniform)) return false;
  Place& p = places_[operand.reg];
  p.known = true;
  p.uniform = true;
  p.of_stretch = reads_stretch_value_;
  p.offset = to.offset;
  p.defined_at = from.kind == ptx::OperandKind::Register ? places_[from.reg].defined_at : ~0u;
  return true;
}

bool Lowering::parameter(const ptx::Operand& address, ptx::Type type, Source* out) {
  auto found = parameter_offsets_.find(address.name);
  if (found == parameter_offsets_.end()) return false;
  int64_t offset = int64_t{found->second} + address.offset;
  uint32_t bytes = ptx::bytes_of(type);
  if (offset < 0 || offset + bytes > program_.parameter_bytes || bytes > 8) {
    return refuse("a read beyond the kernel's parameters");
  }
  bool sign = ptx::is_signed(type);
  auto key = std::make_pair(static_cast<uint32_t>(offset), static_cast<uint8_t>(bytes * 2 + sign));
  auto [place, added] = parameter_slots_.try_emplace(key, 0);
  if (added) {
    place->second = allocate(8, 8);
    program_.parameters.push_back({place->second, key.first, static_cast<uint8_t>(bytes), sign});
  }
  *out = {place->second, true};
  return true;
}

Status Lowering::lower_instruction(uint32_t index) {
  const ptx::Instruction& ins = body_.instructions[index];
  ins_ = &ins;
  reads_stretch_value_ = false;
  program_.sites.push_back({ins.source, ins.line, ins.mnemonic, opcode_of(ins)});
  match_ = matches_[index];
  const bool in_plain_ptx = !module_.target.ends_with('a') && !module_.target.ends_with('f');
  if (in_plain_ptx && form(index).has(ptx::kVariant)) {
    Error error = error_at(ins, fmt::format("'{}' is not part of {}, which this PTX is for",
                                            ins.text(), module_.target));
    error.fix =
        "build with --arch 9.0a; nvcc -arch=sm_90a also makes plain compute_90 PTX, nvcc "
        "-gencode=arch=compute_90a,code=[sm_90a,compute_90a] does not";
    return error;
  }
  if (variant_.events & kInstructionEvents) announce_instruction(ins);
  if (variant_.events & kStretchEvents) announce_stretch(index);
  events_ = 0;
  if (stretch_of_[index] != groups_stretch_) groups_.clear();
  groups_stretch_ = stretch_of_[index];
  bool own_guard = form(index).has(ptx::kGuarded) || ins.guard == ptx::kNoRegister;
  size_t guard_op = program_.ops.size();
  if (!own_guard) {
    Op& guard = emit(&run_guard_next);
    guard.a = place(ins.guard).offset;
    guard.x = ins.guard_negated;
  }
  if (!lower_function(match_.form)(*this) || !refusal_.empty()) {
    return error_at(
        ins, fmt::format("'{}': {}", ins.text(), refusal_.empty() ? "not supported" : refusal_));
  }
  if (!own_guard) finish_guard(index, guard_op);
  if (!groups_.empty()) close_groups(index);
  return {};
}

void Lowering::finish_guard(uint32_t index, size_t guard_op) {
  const size_t count = program_.ops.size() - guard_op - 1;
  // An instruction that may park needs a branch around it.
  const bool parks = form(index).has(ptx::kParks);
  Op& guard = program_.ops[guard_op];
  if (count == 1 && !parks) return;
  if (count == 1 + events_ && !parks) {
    guard.run = &run_guard_chain;
    guard.imm = static_cast<int64_t>(count);
    return;
  }
  guard.run = &run_branch_around;
  guard.imm = static_cast<int64_t>(index) + 1;  // the instruction to continue with; see finish()
  branches_around_.push_back(static_cast<uint32_t>(guard_op));
}

// Outside the guard: a warp issues the instruction even if no lane's guard holds.
void Lowering::announce_instruction(const ptx::Instruction& ins) {
  const bool guarded = ins.guard != ptx::kNoRegister;
  const uint32_t guard = guarded ? place(ins.guard).offset : 0;
  Op& op = emit(&run_instruction_event);
  op.a = guard;
  op.x = ins.guard_negated;
  op.y = guarded;
}

void Lowering::announce_stretch(uint32_t index) {
  if (stretch_length_[index] == 0) return;
  const ptx::Instruction& ins = body_.instructions[index];
  // An instruction that reads its guard itself is a branch, and has its own event for that.
  const bool guarded = ins.guard != ptx::kNoRegister && !form(index).has(ptx::kGuarded);
  const uint32_t guard = guarded ? place(ins.guard).offset : 0;
  Op& op = emit(&run_stretch_event);
  op.a = guard;
  op.x = ins.guard_negated;
  op.y = guarded;
  op.imm = stretch_length_[index];
}

void Lowering::announce_variable(const Op& op, AccessKind kind, uint32_t bytes) {
  if (!(variant_.events & kVariableEvents)) return;
  const auto space = static_cast<ptx::Space>(op.z);
  if (space != ptx::Space::Shared && space != ptx::Space::Generic) return;
  if (!shared_bases_) {
    shared_bases_.emplace(body_, matches_, [this](std::string_view name) {
      return shared_.contains(name) || image_.shared_variable(name);
    });
  }
  const std::string_view name = shared_bases_->of(*ins_);
  const auto& known = program_.shared_variables;
  const auto found = std::ranges::find(known, name, &SharedVariable::name);
  if (name.empty() || found == known.end()) return;
  Op& event = emit(&run_variable_event);
  event.a = op.a;
  event.imm = op.imm;
  event.x = op.x;
  event.z = op.z;
  event.data = own(VariableSite{*found, kind, bytes});
  ++events_;
}

void Lowering::announce(const Op& op, AccessKind kind, uint32_t bytes, bool async, Source from,
                        uint32_t value_bytes) {
  announce_variable(op, kind, bytes);
  if (!(variant_.events & kAccessEvents)) return;
  const bool atomic = kind == AccessKind::Atomic || kind == AccessKind::Reduction;
  const Order order = order_of(*ins_, atomic);
  AccessSite* site = own(AccessSite{kind, order.strength, order.scope, async, bytes});
  site->value = from.offset;
  site->value_bytes = static_cast<uint8_t>(value_bytes);
  site->same_value = from.uniform;
  const bool weak_load = kind == AccessKind::Load && order.strength == Strength::Weak && !async;
  const bool groups = (variant_.events & kGroupedAccesses) && ins_->guard == ptx::kNoRegister;
  if (!weak_load) groups_.clear();
  if (weak_load && groups && joins_group(op, bytes)) return;
  Op& event = emit(&run_access_event);
  event.a = op.a;
  event.imm = op.imm;
  event.x = op.x;
  event.z = op.z;
  event.data = site;
  ++events_;
  if (weak_load && groups && operand(1).base_is_register)
    groups_.push_back({event, operand(1).reg, ins_->source, site});
}

void Lowering::announce_value(uint32_t offset, uint32_t bytes, bool scalar, uint32_t element) {
  if (!(variant_.events & kValueEvents)) return;
  Op& event = emit(&run_value_event);
  event.imm = element;
  event.a = offset;
  event.x = static_cast<uint8_t>(bytes);
  event.y = scalar;
  ++events_;
}

// The slots that are filled before the first Op, and how long their values stay the same.
std::unordered_map<uint32_t, Tier> Lowering::tiers_of_slots() {
  std::unordered_map<uint32_t, Tier> tiers;
  for (const auto& [bits, offset] : constants_) tiers[offset] = Tier::Launch;
  for (const auto& [bits, offset] : lane_constants_) tiers[offset] = Tier::Launch;
  for (const ParameterSlot& slot : program_.parameters) tiers[slot.offset] = Tier::Launch;
  for (SpecialSlot& slot : program_.specials) {
    slot.tier = tier_of(slot.special, slot.lanes, slot.affine);
    if (!slot.affine) tiers[slot.offset] = slot.tier;
  }
  std::stable_sort(program_.specials.begin(), program_.specials.end(),
                   [](const SpecialSlot& a, const SpecialSlot& b) { return a.tier > b.tier; });
  return tiers;
}

void Lowering::finish() {
  first_op_.push_back(static_cast<uint32_t>(program_.ops.size()));
  if (is_kernel()) announce_exit(*this);
  emit(is_kernel() ? &run_exit : &run_return);
  std::vector<PlacedOp> placed;
  placed.reserve(program_.ops.size() + prologue_.size() + after_.size());
  for (const Op& op : prologue_) placed.push_back({op});
  std::vector<uint32_t> place_of_op(program_.ops.size());
  auto next = after_.begin();
  uint32_t instruction = 0;
  for (uint32_t i = 0; i < program_.ops.size(); ++i) {
    while (instruction < body_.instructions.size() && first_op_[instruction + 1] <= i)
      ++instruction;
    const bool guarded = instruction < body_.instructions.size() &&
                         body_.instructions[instruction].guard != ptx::kNoRegister;
    place_of_op[i] = static_cast<uint32_t>(placed.size());
    placed.push_back({program_.ops[i], guarded});
    for (; next != after_.end() && next->first == i; ++next) placed.push_back({next->second});
  }
  if (is_kernel()) find_tiers(program_, tiers_of_slots(), placed);
  std::vector<Op> ordered;
  ordered.reserve(placed.size());
  std::vector<uint32_t> moved(placed.size()),
      goes_on(placed.size());  // where it moved; and its position among the Ops of each warp
  for (Tier tier : {Tier::Launch, Tier::Block, Tier::Warp}) {
    if (tier == Tier::Block) program_.block_start = static_cast<uint32_t>(ordered.size());
    if (tier == Tier::Warp) program_.warp_start = static_cast<uint32_t>(ordered.size());
    for (size_t i = 0; i < placed.size(); ++i) {
      if (tier == Tier::Warp) goes_on[i] = static_cast<uint32_t>(ordered.size());
      if (placed[i].tier != tier) continue;
      moved[i] = static_cast<uint32_t>(ordered.size());
      ordered.push_back(placed[i].op);
    }
  }
  program_.ops = std::move(ordered);
  auto op_of = [&](uint32_t index) -> const Op* {
    return &program_.ops[goes_on[place_of_op[first_op_[index]]]];
  };
  std::function<const Op*(std::string_view)> find = [&](std::string_view label) -> const Op* {
    auto found = body_.labels.find(label);
    return found == body_.labels.end() ? nullptr : op_of(found->second);
  };
  for (const Fix& fix : fixes_) fix.apply(program_.ops[moved[place_of_op[fix.op]]], find);
  for (uint32_t op : branches_around_) {
    Op& around = program_.ops[moved[place_of_op[op]]];
    around.target = op_of(static_cast<uint32_t>(around.imm));
  }
  std::unordered_set<const Op*> entries;
  for (const auto& [name, at] : body_.labels) entries.insert(op_of(at));
  for (const Op& op : program_.ops) entries.insert(op.target);
  // An event may be between the Ops that would become one.
  if (variant_.events == 0) fuse_checks(program_, entries);
  // Events of grouped loads need not be directly before their load.
  if (variant_.events == 0 || (variant_.events & kGroupedAccesses)) fuse_loads(program_);
  choose_accesses(program_);
  if (!(variant_.events & (kInstructionEvents | kControlEvents))) fuse_branches(program_);
  program_.frame_bytes = (program_.frame_bytes + 63) / 64 * 64;
  program_.image.resize(std::min<size_t>(program_.image.size(), program_.frame_bytes));
}

Status Lowering::run() {
  CHECK_OK(declare());
  program_.inlined_calls = body_.inlined_calls;
  CHECK_OK(match_forms());
  if (variant_.events == 0) {  // watchers see each branch
    join_branches(body_, matches_);
    places_.resize(body_.registers.size());
  }
  count_definitions();
  find_stretches();
  if (variant_.events & kStretchEvents) measure_stretches();
  for (uint32_t i = 0; i < body_.instructions.size(); ++i) {
    first_op_.push_back(static_cast<uint32_t>(program_.ops.size()));
    CHECK_OK(lower_instruction(i));
    free_slots_after(i);
  }
  finish();
  if (!refusal_.empty()) return error_at({}, refusal_);
  return {};
}

}  // namespace kiln::engine
