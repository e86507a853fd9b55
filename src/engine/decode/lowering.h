// SPDX-License-Identifier: Apache-2.0
// How does one PTX function become a Program? A Lowering knows where each register is stored; the
// functions named in instructions.def get operands from it and emit Ops.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/decode/shared_bases.h"
#include "engine/machine/affine.h"
#include "engine/machine/events.h"
#include "engine/program/program.h"
#include "ptx/forms.h"
#include "ptx/module.h"

namespace kiln::engine {

struct AccessSite;

class Image;

// A value that an Op reads: a scalar of 8 bytes, or 32 lanes.
struct Source {
  uint32_t offset = 0;
  bool uniform = false;
  bool affine = false;  // only addresses: `offset` is that of the header (affine.h)
};

// A register that an Op writes.
struct Dest {
  uint32_t offset = 0;
  bool uniform = false;
};

class Lowering {
 public:
  Lowering(Image& image, const ptx::Module& module, const ptx::Function& function, Variant variant,
           Program& program);

  Status run();

  // For lowering functions.
  const ptx::Instruction& ins() const { return *ins_; }
  const ptx::Operand& operand(size_t index) const { return ins_->operands[index]; }
  // The row of instructions.def that matches an instruction of the body.
  const ptx::Form& form(size_t index) const { return ptx::forms()[matches_[index].form]; }
  ptx::Type type() const { return *match_.type; }
  ptx::Type other_type() const { return *match_.other_type; }
  bool has(std::string_view modifier) const { return ins_->has(modifier); }

  // Reads. Fails if the width of a register is not that of the type. Float immediates become the
  // bits of `type`.
  bool source(const ptx::Operand& operand, ptx::Type type, Source* out);
  // The same as 32 lanes of the type's width, spread if necessary.
  bool lanes(const ptx::Operand& operand, ptx::Type type, uint32_t* offset);
  // The value of an operand that is an immediate, or a register that only ever holds one number.
  std::optional<uint64_t> number_of(const ptx::Operand& operand) const;
  // Does the slot hold this number in all lanes?
  bool is_lane_constant(uint32_t offset, uint64_t bits, uint32_t bytes) const {
    const auto found = lane_constants_.find({bits, bytes});
    return found != lane_constants_.end() && found->second == offset;
  }
  bool predicate(const ptx::Operand& operand, uint32_t* offset);
  // The width of the register; 0 for immediates.
  uint32_t register_bytes(const ptx::Operand& operand) const;
  // Any register, as it is stored.
  bool register_source(uint32_t reg, Source* out);
  bool address(const ptx::Operand& operand, Source* base, uint32_t* base_bytes, int64_t* offset,
               ptx::Space* space);

  // Writes. `all_uniform`: every source is a scalar, so the result may be one.
  bool dest_uniform(const ptx::Operand& operand, bool all_uniform) const;
  bool dest(const ptx::Operand& operand, uint32_t bytes, bool uniform, Dest* out);
  bool dest_predicate(const ptx::Operand& operand, uint32_t* offset);  // `_` goes to scratch
  // A scalar that is valid from here to its last use, in one stretch of a basic block: for a load
  // from one address.
  bool dest_in_stretch(const ptx::Operand& operand) const;
  bool dest_of_stretch(const ptx::Operand& operand, uint32_t bytes, Dest* out);
  // Written here, and read by only one Op, in the same stretch.
  bool read_once(const ptx::Operand& operand) const;
  uint32_t temporary(uint32_t bytes);  // 32 lanes
  uint32_t temporary_predicate();
  uint32_t constant(uint64_t bits);  // a scalar
  uint32_t constant_predicate(bool value);
  uint32_t special(Special special, bool lanes);

  // Makes the register another name of a scalar if possible; then no Op is needed.
  bool alias(const ptx::Operand& operand, Source to, const ptx::Operand& from);
  // The same for a value of base and step.
  bool alias_affine(const ptx::Operand& operand, ptx::Type type, const ptx::Operand& from);
  // A scalar that is filled at launch from the kernel parameter at this address. Returns false if
  // there is no parameter at the address.
  bool parameter(const ptx::Operand& address, ptx::Type type, Source* out);

  // Emits an Op that computes `dest`, with a handler for scalars or for lanes. A scalar result for
  // a register with lanes is spread.
  Op& emit(Handler handler);
  void emit_value(const ptx::Operand& operand, uint32_t bytes, bool all_uniform, Handler handler,
                  Source a, Source b = {}, Source c = {}, int64_t imm = 0);
  // d = f(a), f(a, b) or f(a, b, c), all of the instruction's type, with the handler that `choose`
  // returns. Not templates, because there is one function f for each of some hundred instructions.
  bool lower_unary(Handler (*choose)(ptx::Type type, Source a));
  bool lower_binary(Handler (*choose)(ptx::Type type, Source a, Source b));
  bool lower_ternary(Handler (*choose)(ptx::Type type, Source a, Source b, Source c));
  template <class T>
  T* own(T value) {
    auto kept = std::make_shared<T>(std::move(value));
    program_.owned.push_back(kept);
    return kept.get();
  }

  // A scalar or a value of base and step, as it is; false: neither. `on_lanes` is the same for an
  // ordinary handler.
  bool affine_term(const ptx::Operand& operand, ptx::Type type, AffineTerm* term, Source* on_lanes);
  // Emits an Op that computes base and step of the result. `on_lanes` runs when that is impossible.
  bool emit_affine(AffineKind kind, uint32_t operand_bytes, uint32_t result_bytes,
                   const AffineTerm (&terms)[3], Handler on_lanes, const Source (&lane_sources)[3]);
  // May the result of this instruction be stored as base and step?
  bool affine_dest(const ptx::Operand& operand, uint32_t bytes) const;

  bool refuse(std::string why);
  void branch_to(Op& op, std::string_view label);  // sets Op::target when all Ops are known
  void fix_later(size_t op_index,
                 std::function<void(Op&, const std::function<const Op*(std::string_view)>&)> fix);

  Program& program() { return program_; }
  Image& image() { return image_; }
  const ptx::Module& module() const { return module_; }
  const ptx::Function& function() const { return function_; }
  const ptx::Body& body() const { return body_; }
  bool is_kernel() const { return function_.is_entry; }
  // Some values are stored as base and step (affine.h).
  bool keeps_steps() const { return variant_.rows_fill_warps || variant_.narrow_rows(); }
  // Special registers that are stored as base and step, and those that the lanes of a warp then
  // share.
  bool special_in_steps(Special special) const;
  bool special_shared(Special special) const;
  Variant variant() const { return variant_; }

  // Announces to a watcher that the instruction accesses `bytes` per lane at the address of `op`.
  // Call it before emitting the Op that does it. Does nothing if accesses are not watched.
  void announce(const Op& op, AccessKind kind, uint32_t bytes, bool async = false) {
    announce(op, kind, bytes, async, {}, 0);
  }
  // For a store of one register: `from`, of `value_bytes` bytes.
  void announce_store(const Op& op, uint32_t bytes, Source from, uint32_t value_bytes) {
    announce(op, AccessKind::Store, bytes, false, from, value_bytes);
  }
  // The value that a strong load or an atomic has read (call it afterwards), or that a store will
  // write (call it before).
  void announce_value(uint32_t offset, uint32_t bytes, bool scalar, uint32_t element = 0);

  // `.param` variables of this function and of its calls, one lane after the other.
  struct Passed {
    uint32_t offset;
    uint32_t bytes;
  };
  const Passed* passed(std::string_view name) const;
  size_t op_count() const { return program_.ops.size(); }

 private:
  struct Place {
    uint32_t offset = 0;
    bool known = false;
    bool uniform = false;
    bool affine = false;  // `offset` is that of the header
    bool of_stretch =
        false;  // uniform, but only from its definition to its last use (lowering_blocks.cpp)
    uint32_t lanes_copy = 0;  // of a uniform value that some Op reads as lanes; 0: none
    uint32_t defined_at =
        ~0u;  // index of the Op that wrote a uniform value; ~0: valid before the first Op
  };

  Status declare();
  Status lower_instruction(uint32_t index);
  void announce(const Op& op, AccessKind kind, uint32_t bytes, bool async, Source from,
                uint32_t value_bytes);
  void announce_instruction(const ptx::Instruction& ins);
  void announce_stretch(uint32_t index);
  // For accesses to a shared variable that is known here.
  void announce_variable(const Op& op, AccessKind kind, uint32_t bytes);
  // A load that continues where an earlier event of the same stretch ends is added to that event.
  bool joins_group(const Op& op, uint32_t bytes);
  void close_groups(uint32_t index);
  void finish_guard(uint32_t index, size_t guard_op);
  Status match_forms();
  void count_definitions();
  void find_stretches();
  void measure_stretches();
  void free_slots_after(uint32_t index);
  void finish();
  std::unordered_map<uint32_t, Tier> tiers_of_slots();
  Error error_at(const ptx::Instruction& ins, std::string why) const;
  uint32_t allocate(uint32_t bytes, uint32_t align);
  uint32_t allocate_constant(const void* bytes, uint32_t size);
  bool symbol(const ptx::Operand& operand, Source* out);
  bool special_operand(const ptx::Operand& operand, Source* out);
  Place& place(uint32_t reg);
  uint64_t immediate_bits(const ptx::Operand& operand, ptx::Type type) const;
  uint32_t lane_constant(uint64_t bits, uint32_t bytes);
  uint32_t spread(Source source, uint32_t bytes, Place* of);
  void materialize_after(uint32_t header, uint32_t defined_at);
  uint32_t affine_special(Special special);

  Image& image_;
  const ptx::Module& module_;
  const ptx::Function& function_;
  Variant variant_;
  Program& program_;
  ptx::Body body_;
  std::set<uint32_t> materialized_;  // headers whose lanes some Op reads
  const ptx::Instruction* ins_ = nullptr;
  ptx::FormMatch match_;
  std::vector<ptx::FormMatch> matches_;      // by instruction
  std::optional<SharedBases> shared_bases_;  // created when first needed
  std::string refusal_;
  std::vector<Place> places_;
  std::vector<uint32_t> definitions_;
  std::vector<uint32_t> uses_;        // by register: how many times it is read
  std::vector<bool> in_stretch_;      // by register: written once and read only in the same stretch
  bool reads_stretch_value_ = false;  // the current instruction
  std::vector<uint32_t> stretch_length_;  // by instruction; 0: no stretch begins there
  uint32_t events_ = 0;                   // event Ops inside the current guard
  // Weak loads announced in the current stretch, if an event may stand for several. Everything that
  // may order memory, stop or change the lanes ends the stretch; a store ends the groups too.
  struct AccessGroup {
    Op first;  // with the address
    uint32_t reg;
    ptx::SourceLine source;
    AccessSite* site;
  };
  std::vector<AccessGroup> groups_;
  uint32_t groups_stretch_ = 0;
  std::vector<uint32_t> stretch_of_;  // by instruction
  std::vector<uint32_t> last_read_;   // by register in a stretch: the instruction
  std::map<uint32_t, std::vector<uint32_t>>
      free_slots_;  // by bytes of a lane: slots of dead values
  std::map<uint64_t, uint32_t> constants_;
  std::unordered_map<uint32_t, uint64_t> numbers_;  // constants_ by slot
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> lane_constants_;
  std::map<Special, uint32_t> specials_;
  std::unordered_map<std::string_view, uint64_t> shared_, local_;  // offsets
  std::unordered_map<std::string_view, Passed> passed_;
  std::map<std::pair<uint32_t, uint8_t>, uint32_t> parameter_slots_;
  std::unordered_map<std::string_view, uint32_t> parameter_offsets_;
  std::vector<uint32_t> first_op_;  // by instruction
  struct Fix {
    size_t op;
    std::function<void(Op&, const std::function<const Op*(std::string_view)>&)> apply;
  };
  std::vector<Fix> fixes_;
  std::vector<uint32_t> branches_around_;
  uint32_t next_scalar_ = 0, scalars_left_ = 0;
  std::vector<Op> prologue_;
  std::multimap<uint32_t, Op> after_;  // Ops to insert after the Op with this index
};

// By row of instructions.def.
using LowerFunction = bool (*)(Lowering&);
LowerFunction lower_function(uint32_t form);

}  // namespace kiln::engine
