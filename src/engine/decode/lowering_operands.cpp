// SPDX-License-Identifier: Apache-2.0
// Where is an operand stored: as one value, as 32 lanes, as base and step, or as a constant?
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/decode/control.h"
#include "engine/decode/image.h"
#include "engine/decode/lowering.h"
#include "engine/decode/spread.h"
#include "engine/machine/fault.h"
#include "engine/numbers/numeric.h"
#include "engine/program/specials.h"
#include "ptx/parser.h"

namespace kiln::engine {
namespace {

template <class T>
const Op* run_spread(Warp& warp, const Op* op) {
  T value = *warp.lanes<T>(op->a);
  T* d = warp.lanes<T>(op->d);
  for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = value;
  return op + 1;
}

const Op* run_scalar_add(Warp& warp, const Op* op) {
  *warp.lanes<uint64_t>(op->d) = *warp.lanes<uint64_t>(op->a) + static_cast<uint64_t>(op->imm);
  return op + 1;
}

}  // namespace

Effect lanes_effect(uint32_t bytes) {
  return bytes == 8   ? Effect::Lanes8
         : bytes == 4 ? Effect::Lanes4
         : bytes == 2 ? Effect::Lanes2
                      : Effect::Lanes1;
}

Op make_spread(uint32_t from, uint32_t to, uint32_t bytes) {
  Op op;
  op.run = bytes == 8   ? &run_spread<uint64_t>
           : bytes == 4 ? &run_spread<uint32_t>
           : bytes == 2 ? &run_spread<uint16_t>
                        : &run_spread<uint8_t>;
  op.a = from;
  op.d = to;
  op.effect = lanes_effect(bytes);
  return op;
}

Lowering::Place& Lowering::place(uint32_t reg) {
  Place& p = places_[reg];
  if (!p.known) {
    ptx::Type type = body_.registers[reg].type;
    p.known = true;
    auto& free_slots = free_slots_[ptx::bytes_of(type)];
    if (type == ptx::Type::pred) {
      p.offset = allocate(8, 8);
    } else if (in_stretch_[reg] && !free_slots.empty()) {
      p.offset = free_slots.back();
      free_slots.pop_back();
    } else {
      p.offset = allocate(ptx::bytes_of(type) * kWarpSize, 64);
    }
  }
  return p;
}

uint64_t Lowering::immediate_bits(const ptx::Operand& operand, ptx::Type type) const {
  if (operand.kind != ptx::OperandKind::Float) {
    if (type == ptx::Type::f32 || type == ptx::Type::f64) {
      // `mov.f32 %f1, 1` means the number 1.
      double value = static_cast<double>(static_cast<int64_t>(operand.bits));
      if (type == ptx::Type::f64) return std::bit_cast<uint64_t>(value);
      return as_bits(static_cast<float>(value));
    }
    return operand.bits;
  }
  if (operand.wide && ptx::bytes_of(type) == 4)
    return as_bits(static_cast<float>(std::bit_cast<double>(operand.bits)));
  if (!operand.wide && type == ptx::Type::f64) {
    return std::bit_cast<uint64_t>(
        static_cast<double>(as_float(static_cast<uint32_t>(operand.bits))));
  }
  return operand.bits;
}

const Lowering::Passed* Lowering::passed(std::string_view name) const {
  auto found = passed_.find(name);
  return found == passed_.end() ? nullptr : &found->second;
}

// Addresses of shared, local and parameter memory differ from block to block, so they are a base
// that the machine fills plus a constant. Addresses of global memory are known now.
bool Lowering::symbol(const ptx::Operand& operand, Source* out) {
  out->uniform = true;
  auto based = [&](Special base, uint64_t offset) {
    uint32_t from = special(base, false);
    if (offset == 0) {
      out->offset = from;
      return true;
    }
    Op op;
    op.run = &run_scalar_add;
    op.effect = Effect::Scalar;
    op.a = from;
    op.d = out->offset = allocate(8, 8);
    op.imm = static_cast<int64_t>(offset);
    prologue_.push_back(op);
    return true;
  };
  uint64_t extra = static_cast<uint64_t>(operand.offset);
  if (auto shared = shared_.find(operand.name); shared != shared_.end()) {
    out->offset = constant(shared->second + extra);
    return true;
  }
  if (auto local = local_.find(operand.name); local != local_.end()) {
    return based(Special::LocalBase, local->second + extra);
  }
  if (auto parameter = parameter_offsets_.find(operand.name);
      parameter != parameter_offsets_.end()) {
    return based(Special::ParamBase, parameter->second + extra);
  }
  if (passed(operand.name))
    return refuse(fmt::format("the address of the argument '{}' is taken", operand.name));
  if (auto inside = image_.function_variable(function_, operand.name)) {
    out->offset = constant(*inside + extra);
    return true;
  }
  if (const ptx::Variable* shared = image_.shared_variable(operand.name)) {
    const bool dynamic = shared->unsized || shared->is_extern;
    const uint64_t at = dynamic ? 0 : image_.shared_variable_offset(operand.name);
    auto& known = program_.shared_variables;
    if (std::ranges::find(known, shared->name, &SharedVariable::name) == known.end())
      known.push_back({shared->name, at, dynamic ? 0 : shared->bytes()});
    if (dynamic) return based(Special::SharedDynamicBase, extra);
    program_.shared_bytes = std::max(program_.shared_bytes, at + shared->bytes());
    out->offset = constant(at + extra);
    return true;
  }
  auto address = image_.symbol_address(operand.name);
  if (!address) return refuse(address.error().why);
  out->offset = constant(*address + extra);
  return true;
}

bool Lowering::special_operand(const ptx::Operand& operand, Source* out) {
  for (const SpecialRow& row : kSpecials) {
    if (row.name != operand.name) continue;
    bool in_rows = special_shared(row.special);
    if (special_in_steps(row.special)) {
      uint32_t header = affine_special(row.special);
      materialize_after(header, ~0u);
      *out = {header + kAffineLanes, false};
      return true;
    }
    out->offset = special(row.special, row.lanes && !in_rows);
    out->uniform = !row.lanes || in_rows;
    return true;
  }
  return refuse(fmt::format("unknown register '%{}'", operand.name));
}

uint32_t Lowering::register_bytes(const ptx::Operand& operand) const {
  if (operand.kind != ptx::OperandKind::Register) return 0;
  return ptx::bytes_of(body_.registers[operand.reg].type);
}

bool Lowering::register_source(uint32_t reg, Source* out) {
  Place& p = place(reg);
  if (p.affine) {
    materialize_after(p.offset, p.defined_at);
    *out = {p.offset + kAffineLanes, false};
    return true;
  }
  reads_stretch_value_ |= p.of_stretch;
  *out = {p.offset, p.uniform};
  return true;
}

bool Lowering::source(const ptx::Operand& operand, ptx::Type type, Source* out) {
  switch (operand.kind) {
    case ptx::OperandKind::Integer:
    case ptx::OperandKind::Float:
      *out = {constant(immediate_bits(operand, type)), true};
      return true;
    case ptx::OperandKind::Register:
      if (register_bytes(operand) != ptx::bytes_of(type)) {
        return refuse(fmt::format("the width of register {} differs from that of .{}",
                                  body_.registers[operand.reg].name(), ptx::name_of(type)));
      }
      return register_source(operand.reg, out);
    case ptx::OperandKind::Special:
      return special_operand(operand, out);
    case ptx::OperandKind::Symbol:
      return symbol(operand, out);
    default:
      return refuse("invalid kind of operand");
  }
}

uint32_t Lowering::spread(Source source, uint32_t bytes, Place* of) {
  if (of && of->lanes_copy) return of->lanes_copy;
  uint32_t to = temporary(bytes);
  Op op = make_spread(source.offset, to, bytes);
  op.effect =
      Effect::Scalar;  // made once, so it must also be valid for lanes that are inactive now
  if (of && of->defined_at != ~0u) {
    op.site = program_.ops[of->defined_at].site;
    after_.emplace(of->defined_at, op);
  } else {
    prologue_.push_back(op);
  }
  if (of) of->lanes_copy = to;
  return to;
}

uint32_t Lowering::lane_constant(uint64_t bits, uint32_t bytes) {
  auto [place, added] = lane_constants_.try_emplace({bits, bytes}, 0);
  if (added) {
    std::vector<std::byte> all(size_t{bytes} * kWarpSize);
    for (uint32_t i = 0; i < kWarpSize; ++i)
      std::memcpy(all.data() + size_t{i} * bytes, &bits, bytes);
    place->second = allocate_constant(all.data(), static_cast<uint32_t>(all.size()));
  }
  return place->second;
}

bool Lowering::lanes(const ptx::Operand& operand, ptx::Type type, uint32_t* offset) {
  uint32_t bytes = ptx::bytes_of(type);
  if (operand.kind == ptx::OperandKind::Integer || operand.kind == ptx::OperandKind::Float) {
    *offset = lane_constant(immediate_bits(operand, type), bytes);
    return true;
  }
  Source from;
  if (!source(operand, type, &from)) return false;
  if (!from.uniform) {
    *offset = from.offset;
    return true;
  }
  // For a register that is another name of a number, no Op has to write the lanes.
  if (auto number = numbers_.find(from.offset); number != numbers_.end()) {
    uint64_t bits = 0;
    std::memcpy(&bits, &number->second, bytes);
    *offset = lane_constant(bits, bytes);
    return true;
  }
  Place* of = operand.kind == ptx::OperandKind::Register ? &places_[operand.reg] : nullptr;
  *offset = spread(from, bytes, of);
  return true;
}

std::optional<uint64_t> Lowering::number_of(const ptx::Operand& operand) const {
  if (operand.kind == ptx::OperandKind::Integer) return operand.bits;
  if (operand.kind != ptx::OperandKind::Register || operand.negated) return std::nullopt;
  const Place& at = places_[operand.reg];
  if (!at.known || !at.uniform) return std::nullopt;
  const auto number = numbers_.find(at.offset);
  if (number == numbers_.end()) return std::nullopt;
  const bool is_wide = ptx::bytes_of(body_.registers[operand.reg].type) == 8;
  return is_wide ? number->second : number->second & 0xffffffffu;
}

bool Lowering::predicate(const ptx::Operand& operand, uint32_t* offset) {
  if (operand.kind == ptx::OperandKind::Integer) {
    *offset = constant_predicate(operand.bits != 0);
    return true;
  }
  if (operand.kind != ptx::OperandKind::Predicate) return refuse("expected a predicate");
  uint32_t from = place(operand.reg).offset;
  if (!operand.negated) {
    *offset = from;
    return true;
  }
  *offset = temporary_predicate();
  Op& op = emit(&run_predicate_invert);
  op.d = *offset;
  op.a = from;
  return true;
}

bool Lowering::address(const ptx::Operand& operand, Source* base, uint32_t* base_bytes,
                       int64_t* offset, ptx::Space* space) {
  *offset = operand.offset;
  if (operand.base_is_register) {
    if (body_.registers[operand.reg].type == ptx::Type::pred)
      return refuse("a predicate is not an address");
    *base_bytes = ptx::bytes_of(body_.registers[operand.reg].type);
    if (*base_bytes < 4) return refuse("an address of less than 32 bits");
    if (const Place& p = places_[operand.reg]; p.known && p.affine) {
      *base = {p.offset, false, true};
      return true;
    }
    return register_source(operand.reg, base);
  }
  *base_bytes = 8;
  if (operand.name.empty()) {
    *base = {constant(0), true};
    return true;
  }
  ptx::Operand name;
  name.kind = ptx::OperandKind::Symbol;
  name.name = operand.name;
  // A constant address of shared memory needs no tag; that of a variable in generic form does.
  if (*space == ptx::Space::Generic) {
    if (shared_.count(operand.name) || (!image_.function_variable(function_, operand.name) &&
                                        image_.shared_variable(operand.name)))
      *space = ptx::Space::Shared;
    if (local_.count(operand.name)) *space = ptx::Space::Local;
  }
  return symbol(name, base);
}

bool Lowering::dest_uniform(const ptx::Operand& operand, bool all_uniform) const {
  return all_uniform && operand.kind == ptx::OperandKind::Register &&
         definitions_[operand.reg] == 1 && ins_->guard == ptx::kNoRegister &&
         !places_[operand.reg].known && (!reads_stretch_value_ || in_stretch_[operand.reg]);
}

bool Lowering::dest(const ptx::Operand& operand, uint32_t bytes, bool uniform, Dest* out) {
  if (operand.kind == ptx::OperandKind::Sink) {
    *out = {temporary(bytes), false};
    return true;
  }
  if (operand.kind != ptx::OperandKind::Register) return refuse("expected a register");
  if (bytes && register_bytes(operand) != bytes) {
    return refuse(fmt::format("the width of register {} differs from that of the result",
                              body_.registers[operand.reg].name()));
  }
  if (uniform) {
    Place& p = places_[operand.reg];
    p.known = true;
    p.uniform = true;
    p.of_stretch = reads_stretch_value_;
    p.offset = allocate(8, 8);
    p.defined_at = static_cast<uint32_t>(program_.ops.size());
    *out = {p.offset, true};
    return true;
  }
  *out = {place(operand.reg).offset, false};
  return true;
}

bool Lowering::dest_predicate(const ptx::Operand& operand, uint32_t* offset) {
  if (operand.kind == ptx::OperandKind::Sink) {
    *offset = temporary_predicate();
    return true;
  }
  if (operand.kind != ptx::OperandKind::Predicate) return refuse("expected a predicate");
  *offset = place(operand.reg).offset;
  return true;
}

}  // namespace kiln::engine
