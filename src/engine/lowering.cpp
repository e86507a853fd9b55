// SPDX-License-Identifier: Apache-2.0
// Where do registers live, and how are the Ops of a function put in order?
#include "engine/lowering.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "engine/control.h"
#include "engine/fault.h"
#include "engine/image.h"
#include "engine/numeric.h"
#include "ptx/parser.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kMaxFrameBytes = 256u << 20;
constexpr uint64_t kMaxSharedBytes = 1u << 20;

struct SpecialRow {
  std::string_view name;
  Special special;
  bool lanes;
};
constexpr SpecialRow kSpecials[] = {
    {"tid.x", Special::TidX, true},
    {"tid.y", Special::TidY, true},
    {"tid.z", Special::TidZ, true},
    {"ntid.x", Special::NtidX, false},
    {"ntid.y", Special::NtidY, false},
    {"ntid.z", Special::NtidZ, false},
    {"ctaid.x", Special::CtaidX, false},
    {"ctaid.y", Special::CtaidY, false},
    {"ctaid.z", Special::CtaidZ, false},
    {"nctaid.x", Special::NctaidX, false},
    {"nctaid.y", Special::NctaidY, false},
    {"nctaid.z", Special::NctaidZ, false},
    {"laneid", Special::LaneId, true},
    {"warpid", Special::WarpId, false},
    {"nwarpid", Special::NwarpId, false},
    {"smid", Special::SmId, false},
    {"nsmid", Special::NsmId, false},
    {"gridid", Special::GridId, false},
    {"lanemask_eq", Special::LanemaskEq, true},
    {"lanemask_le", Special::LanemaskLe, true},
    {"lanemask_lt", Special::LanemaskLt, true},
    {"lanemask_ge", Special::LanemaskGe, true},
    {"lanemask_gt", Special::LanemaskGt, true},
    {"dynamic_smem_size", Special::DynamicSharedBytes, false},
    {"total_smem_size", Special::TotalSharedBytes, false},
    {"clusterid.x", Special::ClusterIdX, false},
    {"clusterid.y", Special::ClusterIdY, false},
    {"clusterid.z", Special::ClusterIdZ, false},
    {"nclusterid.x", Special::NclusterIdX, false},
    {"nclusterid.y", Special::NclusterIdY, false},
    {"nclusterid.z", Special::NclusterIdZ, false},
    {"cluster_ctaid.x", Special::ClusterCtaidX, false},
    {"cluster_ctaid.y", Special::ClusterCtaidY, false},
    {"cluster_ctaid.z", Special::ClusterCtaidZ, false},
    {"cluster_nctaid.x", Special::ClusterNctaidX, false},
    {"cluster_nctaid.y", Special::ClusterNctaidY, false},
    {"cluster_nctaid.z", Special::ClusterNctaidZ, false},
    {"cluster_ctarank", Special::ClusterCtarank, false},
    {"cluster_nctarank", Special::ClusterNctarank, false},
    {"is_explicit_cluster", Special::IsExplicitCluster, false},
};

// These may park the split, or change what it runs: a guard before them becomes a branch around them.
constexpr std::string_view kParks[] = {"brx",   "call",      "ret",      "exit", "trap",     "brkpt",
                                       "bar",   "barrier",   "shfl",     "vote", "match",    "redux",
                                       "elect", "nanosleep", "mbarrier", "mma",  "ldmatrix", "stmatrix"};

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

Effect lanes_effect(uint32_t bytes) {
  return bytes == 8 ? Effect::Lanes8 : bytes == 4 ? Effect::Lanes4 : bytes == 2 ? Effect::Lanes2 : Effect::Lanes1;
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

std::atomic<uint64_t> next_serial{1};

}  // namespace

Lowering::Lowering(Image& image, const ptx::Module& module, const ptx::Function& function, bool rows_fill_warps,
                   Program& program)
    : image_(image), module_(module), function_(function), rows_fill_warps_(rows_fill_warps), program_(program) {
  program_.name = std::string(function.name);
  program_.serial = next_serial.fetch_add(1);
  program_.module = &module;
  program_.function = &function;
  program_.frame_bytes = kScratchBytes;
}

uint32_t Lowering::allocate(uint32_t bytes, uint32_t align) {
  uint64_t offset = (uint64_t{program_.frame_bytes} + align - 1) / align * align;
  if (offset + bytes > kMaxFrameBytes) {
    refuse(fmt::format("the function needs more than {} MB of registers a warp", kMaxFrameBytes >> 20));
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
  return constants_[bits] = allocate_constant(&bits, 8);
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
  Site site{ins.source, ins.line, ins.mnemonic};
  Program at;
  at.module = &module_;
  at.sites.push_back(site);
  return Error{Fault::Work, fmt::format("cannot run {} on the engine", demangled(program_.name)),
               fmt::format("{}, in {}", why, place_of(at, Op{})), ""};
}

Status Lowering::declare() {
  TRY(body_, ptx::parse_body(module_, function_));
  places_.resize(body_.registers.size());
  if (is_kernel()) {
    uint64_t offset = 0;
    for (const ptx::Variable& p : function_.parameters) {
      offset = (offset + p.align - 1) / p.align * p.align;
      parameter_offsets_[p.name] = static_cast<uint32_t>(offset);
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
        if (!is_kernel())
          return error_at({}, fmt::format("the shared variable '{}' inside of a device function", v.name));
        shared_end = (std::max(shared_end, image_.common_shared_bytes()) + v.align - 1) / v.align * v.align;
        shared_[v.name] = shared_end;
        shared_end += v.bytes();
        program_.shared_bytes = shared_end;
        if (shared_end > kMaxSharedBytes) return error_at({}, "its shared variables are larger than 1 MB");
        break;
      }
      default: {
        TRY(uint64_t address, image_.declare_variable(v));
        (void)address;
      }
    }
  }
  if (local > (1u << 20)) return error_at({}, "its local variables are larger than 1 MB a thread");
  program_.local_bytes = static_cast<uint32_t>((local + 15) / 16 * 16);
  if (!refusal_.empty()) return error_at({}, refusal_);
  return {};
}

void Lowering::count_definitions() {
  definitions_.assign(body_.registers.size(), 0);
  auto define = [&](const ptx::Operand& o) {
    if (o.kind == ptx::OperandKind::Register || o.kind == ptx::OperandKind::Predicate) ++definitions_[o.reg];
    for (const ptx::Operand& e : o.elements) {
      if (o.kind == ptx::OperandKind::Vector && e.kind == ptx::OperandKind::Register) ++definitions_[e.reg];
    }
  };
  for (const ptx::Instruction& ins : body_.instructions) {
    // Every operand that a form may write stands first; a second one (d|p) may follow. Counting a register that is only
    // read costs speed and no correctness, so that no list of exceptions is needed here beyond the stores.
    if (ins.operands.empty() || ins.mnemonic == "st" || ins.mnemonic == "call" || ins.mnemonic == "red") {
      for (const ptx::Operand& o : ins.operands) {
        if (ins.mnemonic == "call") define(o);
      }
      continue;
    }
    define(ins.operands[0]);
    // d|p and p|q: a second result is always a predicate.
    if (ins.operands.size() > 1 && ins.operands[1].kind == ptx::OperandKind::Predicate) define(ins.operands[1]);
  }
}

Lowering::Place& Lowering::place(uint32_t reg) {
  Place& p = places_[reg];
  if (!p.known) {
    ptx::Type type = body_.registers[reg].type;
    p.known = true;
    p.offset = type == ptx::Type::pred ? allocate(8, 8) : allocate(ptx::bytes_of(type) * kWarpSize, 64);
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
  if (operand.wide && ptx::bytes_of(type) == 4) return as_bits(static_cast<float>(std::bit_cast<double>(operand.bits)));
  if (!operand.wide && type == ptx::Type::f64) {
    return std::bit_cast<uint64_t>(static_cast<double>(as_float(static_cast<uint32_t>(operand.bits))));
  }
  return operand.bits;
}

const Lowering::Passed* Lowering::passed(std::string_view name) const {
  auto found = passed_.find(name);
  return found == passed_.end() ? nullptr : &found->second;
}

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
  if (auto parameter = parameter_offsets_.find(operand.name); parameter != parameter_offsets_.end()) {
    return based(Special::ParamBase, parameter->second + extra);
  }
  if (passed(operand.name)) return refuse(fmt::format("the address of the argument '{}' is taken", operand.name));
  if (const ptx::Variable* shared = image_.shared_variable(operand.name)) {
    if (shared->unsized || shared->is_extern) return based(Special::SharedDynamicBase, extra);
    uint64_t at = image_.shared_variable_offset(operand.name);
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
    bool in_rows = rows_fill_warps_ && (row.special == Special::TidY || row.special == Special::TidZ);
    if (rows_fill_warps_ && (row.special == Special::TidX || row.special == Special::LaneId)) {
      uint32_t header = affine_special(row.special);
      materialize_after(header, ~0u);
      *out = {header + kAffineLanes, false};
      return true;
    }
    out->offset = special(row.special, row.lanes && !in_rows);
    out->uniform = !row.lanes || in_rows;
    return true;
  }
  return refuse(fmt::format("the register '%{}' is not known", operand.name));
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
  *out = {p.offset, p.uniform};
  return true;
}

uint32_t Lowering::affine_special(Special special) {
  auto found = specials_.find(special);
  if (found != specials_.end()) return found->second;
  uint32_t header = allocate(kAffineLanes + 4 * kWarpSize, 64);
  program_.specials.push_back({special, header, true, true});
  return specials_[special] = header;
}

void Lowering::materialize_after(uint32_t header, uint32_t defined_at) {
  if (!materialized_.insert(header).second) return;
  Op op;
  op.run = &run_materialize;
  op.d = header;
  op.effect = Effect::Scalar;
  if (defined_at == ~0u) {
    prologue_.push_back(op);
  } else {
    op.site = program_.ops[defined_at].site;
    after_.emplace(defined_at, op);
  }
}

bool Lowering::affine_term(const ptx::Operand& operand, ptx::Type type, AffineTerm* term, Source* on_lanes) {
  uint32_t header = 0;
  if (operand.kind == ptx::OperandKind::Register) {
    const Place& p = places_[operand.reg];
    if (!p.known || (!p.uniform && !p.affine) || register_bytes(operand) != ptx::bytes_of(type)) return false;
    if (p.affine) header = p.offset;
  } else if (operand.kind == ptx::OperandKind::Special && rows_fill_warps_ && ptx::bytes_of(type) == 4 &&
             (operand.name == "tid.x" || operand.name == "laneid")) {
    header = affine_special(operand.name == "tid.x" ? Special::TidX : Special::LaneId);
  }
  if (header) {
    *term = {header, true};
    *on_lanes = {header + kAffineLanes, false};
    return true;
  }
  if (operand.kind == ptx::OperandKind::Special) {
    for (const SpecialRow& row : kSpecials) {
      if (row.name == operand.name && row.lanes && !(rows_fill_warps_ && row.special != Special::TidX)) return false;
    }
  }
  if (!source(operand, type, on_lanes) || !on_lanes->uniform) return false;
  *term = {on_lanes->offset, false};
  return true;
}

bool Lowering::affine_dest(const ptx::Operand& operand, uint32_t bytes) const {
  return rows_fill_warps_ && dest_uniform(operand, true) && register_bytes(operand) == bytes;
}

bool Lowering::emit_affine(AffineKind kind, uint32_t operand_bytes, uint32_t result_bytes, const AffineTerm (&terms)[3],
                           Handler on_lanes, const Source (&lane_sources)[3]) {
  const ptx::Operand& to = operand(0);
  Place& p = places_[to.reg];
  p.known = true;
  p.affine = true;
  p.offset = allocate(kAffineLanes + result_bytes * kWarpSize, 64);
  p.defined_at = static_cast<uint32_t>(program_.ops.size());
  AffineOp how;
  for (int i = 0; i < 3; ++i) how.terms[i] = terms[i];
  how.on_lanes.run = on_lanes;
  how.on_lanes.d = p.offset + kAffineLanes;
  how.on_lanes.a = lane_sources[0].offset;
  how.on_lanes.b = lane_sources[1].offset;
  how.on_lanes.c = lane_sources[2].offset;
  Op& op = emit(affine_handler(kind, operand_bytes));
  op.d = p.offset;
  op.effect = Effect::Scalar;
  op.data = own(how);
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
        return refuse(fmt::format("the register {} has not the width of .{}", body_.registers[operand.reg].name(),
                                  ptx::name_of(type)));
      }
      return register_source(operand.reg, out);
    case ptx::OperandKind::Special:
      return special_operand(operand, out);
    case ptx::OperandKind::Symbol:
      return symbol(operand, out);
    default:
      return refuse("an operand of a kind that does not fit here");
  }
}

uint32_t Lowering::spread(Source source, uint32_t bytes, Place* of) {
  if (of && of->lanes_copy) return of->lanes_copy;
  uint32_t to = temporary(bytes);
  Op op = make_spread(source.offset, to, bytes);
  op.effect = Effect::Scalar;  // made once, it must hold for lanes that are not active at the time too
  if (of && of->defined_at != ~0u) {
    op.site = program_.ops[of->defined_at].site;
    after_.emplace(of->defined_at, op);
  } else {
    prologue_.push_back(op);
  }
  if (of) of->lanes_copy = to;
  return to;
}

bool Lowering::lanes(const ptx::Operand& operand, ptx::Type type, uint32_t* offset) {
  uint32_t bytes = ptx::bytes_of(type);
  if (operand.kind == ptx::OperandKind::Integer || operand.kind == ptx::OperandKind::Float) {
    uint64_t bits = immediate_bits(operand, type);
    auto [place, added] = lane_constants_.try_emplace({bits, bytes}, 0);
    if (added) {
      std::vector<std::byte> all(size_t{bytes} * kWarpSize);
      for (uint32_t i = 0; i < kWarpSize; ++i) std::memcpy(all.data() + size_t{i} * bytes, &bits, bytes);
      place->second = allocate_constant(all.data(), static_cast<uint32_t>(all.size()));
    }
    *offset = place->second;
    return true;
  }
  Source from;
  if (!source(operand, type, &from)) return false;
  if (!from.uniform) {
    *offset = from.offset;
    return true;
  }
  Place* of = operand.kind == ptx::OperandKind::Register ? &places_[operand.reg] : nullptr;
  *offset = spread(from, bytes, of);
  return true;
}

bool Lowering::predicate(const ptx::Operand& operand, uint32_t* offset) {
  if (operand.kind == ptx::OperandKind::Integer) {
    *offset = constant_predicate(operand.bits != 0);
    return true;
  }
  if (operand.kind != ptx::OperandKind::Predicate) return refuse("a predicate is wanted here");
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

bool Lowering::address(const ptx::Operand& operand, Source* base, uint32_t* base_bytes, int64_t* offset,
                       ptx::Space* space) {
  *offset = operand.offset;
  if (operand.base_is_register) {
    if (body_.registers[operand.reg].type == ptx::Type::pred) return refuse("a predicate is no address");
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
  // A constant address of shared memory wants no tag; that of a variable in generic form does.
  if (*space == ptx::Space::Generic) {
    if (shared_.count(operand.name) || image_.shared_variable(operand.name)) *space = ptx::Space::Shared;
    if (local_.count(operand.name)) *space = ptx::Space::Local;
  }
  return symbol(name, base);
}

bool Lowering::dest_uniform(const ptx::Operand& operand, bool all_uniform) const {
  return all_uniform && operand.kind == ptx::OperandKind::Register && definitions_[operand.reg] == 1 &&
         ins_->guard == ptx::kNoRegister && !places_[operand.reg].known;
}

bool Lowering::dest(const ptx::Operand& operand, uint32_t bytes, bool uniform, Dest* out) {
  if (operand.kind == ptx::OperandKind::Sink) {
    *out = {temporary(bytes), false};
    return true;
  }
  if (operand.kind != ptx::OperandKind::Register) return refuse("a register is wanted here");
  if (bytes && register_bytes(operand) != bytes) {
    return refuse(fmt::format("the register {} has not the width of the result", body_.registers[operand.reg].name()));
  }
  if (uniform) {
    Place& p = places_[operand.reg];
    p.known = true;
    p.uniform = true;
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
  if (operand.kind != ptx::OperandKind::Predicate) return refuse("a predicate is wanted here");
  *offset = place(operand.reg).offset;
  return true;
}

Op& Lowering::emit(Handler handler) {
  Op op;
  op.run = handler;
  op.site = program_.sites.empty() ? 0 : static_cast<uint32_t>(program_.sites.size() - 1);
  program_.ops.push_back(op);
  return program_.ops.back();
}

void Lowering::emit_value(const ptx::Operand& operand, uint32_t bytes, bool all_uniform, Handler handler, Source a,
                          Source b, Source c, int64_t imm) {
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

void Lowering::fix_later(size_t op_index,
                         std::function<void(Op&, const std::function<const Op*(std::string_view)>&)> fix) {
  fixes_.push_back({op_index, std::move(fix)});
}

void Lowering::branch_to(Op& op, std::string_view label) {
  size_t index = static_cast<size_t>(&op - program_.ops.data());
  fix_later(index,
            [label](Op& fixed, const std::function<const Op*(std::string_view)>& find) { fixed.target = find(label); });
}

bool Lowering::alias_affine(const ptx::Operand& operand, ptx::Type type, const ptx::Operand& from) {
  AffineTerm term;
  Source on_lanes;
  if (!affine_dest(operand, ptx::bytes_of(type))) return false;
  if (from.kind != ptx::OperandKind::Register && from.kind != ptx::OperandKind::Special) return false;
  if (from.kind == ptx::OperandKind::Special && from.name != "tid.x" && from.name != "laneid") return false;
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
  program_.sites.push_back({ins.source, ins.line, ins.mnemonic});
  auto match = ptx::match_form(ins);
  if (!match) return error_at(ins, ptx::why_unknown(ins));
  match_ = *match;
  bool own_guard = ins.mnemonic == "bra" || ins.guard == ptx::kNoRegister;
  size_t guard_op = program_.ops.size();
  if (!own_guard) {
    Op& guard = emit(&run_guard_next);
    guard.a = place(ins.guard).offset;
    guard.x = ins.guard_negated;
  }
  if (!lower_function(match->form)(*this) || !refusal_.empty()) {
    return error_at(ins, fmt::format("'{}': {}", ins.text(), refusal_.empty() ? "not supported" : refusal_));
  }
  if (own_guard) return {};
  size_t count = program_.ops.size() - guard_op - 1;
  bool parks = false;
  for (std::string_view mnemonic : kParks) parks |= mnemonic == ins.mnemonic;
  if (count != 1 || parks) {
    program_.ops[guard_op].run = &run_branch_around;
    program_.ops[guard_op].imm = static_cast<int64_t>(index) + 1;  // the instruction to go on with; see finish()
    branches_around_.push_back(static_cast<uint32_t>(guard_op));
  }
  return {};
}

void Lowering::finish() {
  emit(is_kernel() ? &run_exit : &run_return);
  std::vector<Op> ordered;
  ordered.reserve(program_.ops.size() + prologue_.size() + after_.size());
  ordered.insert(ordered.end(), prologue_.begin(), prologue_.end());
  std::vector<uint32_t> moved(program_.ops.size());
  auto next = after_.begin();
  for (uint32_t i = 0; i < program_.ops.size(); ++i) {
    moved[i] = static_cast<uint32_t>(ordered.size());
    ordered.push_back(program_.ops[i]);
    for (; next != after_.end() && next->first == i; ++next) ordered.push_back(next->second);
  }
  program_.ops = std::move(ordered);
  first_op_.push_back(static_cast<uint32_t>(moved.size() - 1));
  auto op_of = [&](uint32_t instruction) -> const Op* { return &program_.ops[moved[first_op_[instruction]]]; };
  std::function<const Op*(std::string_view)> find = [&](std::string_view label) -> const Op* {
    auto found = body_.labels.find(label);
    return found == body_.labels.end() ? nullptr : op_of(found->second);
  };
  for (const Fix& fix : fixes_) fix.apply(program_.ops[moved[fix.op]], find);
  for (uint32_t op : branches_around_) {
    Op& around = program_.ops[moved[op]];
    around.target = op_of(static_cast<uint32_t>(around.imm));
  }
  program_.frame_bytes = (program_.frame_bytes + 63) / 64 * 64;
  program_.image.resize(std::min<size_t>(program_.image.size(), program_.frame_bytes));
}

Status Lowering::run() {
  CHECK_OK(declare());
  count_definitions();
  for (uint32_t i = 0; i < body_.instructions.size(); ++i) {
    first_op_.push_back(static_cast<uint32_t>(program_.ops.size()));
    CHECK_OK(lower_instruction(i));
  }
  finish();
  if (!refusal_.empty()) return error_at({}, refusal_);
  return {};
}

}  // namespace kiln::engine
