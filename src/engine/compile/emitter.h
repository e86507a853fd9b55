// SPDX-License-Identifier: Apache-2.0
// What does the code generator keep while it emits a plan? (emit*.cpp)
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/compile/emit.h"

namespace kiln::engine {

class Emitter {
 public:
  Emitter(const Flow& flow, const Plan& plan, Target& target, const CacheIndex& cache_index);
  std::unique_ptr<Emitted> run();

 private:
  // An address that is a pointer plus a 32-bit number per lane times a power of two.
  struct Indexed {
    uint32_t pointer, number;  // variables
    uint32_t shift;
  };
  struct Value {
    Reg word, splat;
    List<Reg> regs;
    List<Reg> fresh;                                  // if blended: what was just computed
    bool read = false;                                // from the frame
    bool checked = false;                             // it has no NaN
    bool is_read = false, is_read_as_vector = false;  // by some step
    bool is_wanted = false;          // by some step, even if only as an address in the table
    const Step* made_by = nullptr;   // the last step that writes it
    std::optional<Indexed> indexed;  // an address that is not computed
    bool is_skipped = false;         // not computed either
    bool is_early = false;           // see find_early()
    bool in_frame = false;           // already written
  };
  uint32_t vector_bytes() const { return t_.vector_lanes() * 4; }
  int64_t rise(const Pattern2& steps, uint32_t lane) const;
  std::pair<int64_t, int64_t> range(const Pattern2& steps) const {
    return range_of(steps, out_->lanes);
  }
  std::pair<int64_t, int64_t> range_of(const Pattern2& steps, uint32_t lanes) const;
  Reg word_of(uint32_t variable);
  Reg vector_of(uint32_t variable, uint32_t strip, uint32_t half);
  Reg bits_of(uint32_t variable, uint32_t strip, uint32_t half);
  Reg quieted(const Reg& reg);
  Reg nan() const { return nan_; }
  Reg result(uint32_t variable, uint32_t strip, uint32_t half);
  Reg place_of(uint32_t variable, uint32_t strip, uint32_t half);
  bool reads_as_vector(const Step& step, uint32_t variable) const;
  void find_read();
  uint32_t most_kept() const;
  void need(uint32_t variable);
  void need_all(const Step& step);
  void read_input(uint32_t variable);
  void splat_base(uint32_t variable);
  void find_labels();
  void find_rises();
  void write_back(uint32_t variable);
  void write_predicate(uint32_t variable);
  List<uint32_t> live_at(uint32_t op) const;
  void leave_at(uint32_t target, bool backward, std::optional<uint32_t> read = std::nullopt);
  void leave_with(const List<uint32_t>& variables, Exit exit);
  Label bail();
  void write_stubs();
  void jump_to(uint32_t from, uint32_t target);
  void branch(const Step& step);
  void list_guards();
  bool write_steps();
  void find_last_reads();
  void find_early();
  void write_early(const Step& step);
  void give_back(size_t step);
  static bool is_sum(const Step& step);
  void take_over_sum(const Step& step);
  bool begins_block(size_t step) const;
  void weigh_block(size_t first);

  // emit_masks.cpp
  void begin_masks();
  Reg active(uint32_t strip, uint32_t half, uint32_t bytes);
  void blend(const Step& step, uint32_t variable);
  Reg merged_mask(const Step& step, uint32_t strip);
  // Is the step the first one under a branch that became a mask?
  bool begins_merged(size_t step) const {
    const Step& now = plan_.steps[step];
    if (!now.under) return false;
    const Step* before = step ? &plan_.steps[step - 1] : nullptr;
    return !before || !before->under || before->resume != now.resume || before->d == now.under;
  }
  // Do some lanes not run the step, so that their addresses do not matter?
  bool is_for_some(const Step& step) const {
    return plan_.masked || (step.under && plan_.variables[*step.under].kept == Kept::Vector);
  }
  Reg runs(const Step& step, uint32_t strip, uint32_t half, uint32_t bytes);
  void jump_if_none(const Step& step, const Label& to);
  void begin_merged(size_t first);
  void end_merged(size_t next);
  void branch_masked(const Step& step);
  struct Way {  // to a place where lanes wait
    size_t index = 0;
    Label empty;  // target if no lane runs
  };
  bool find_places();
  bool is_inside(uint32_t op) const { return op >= plan_.phase.begin && op < plan_.phase.end; }
  int64_t waiting_at(uint32_t op) const;
  void wait_at(uint32_t op, const Reg& lanes);
  void make_active();
  void arrive(uint32_t op);
  Label next_place(uint32_t op) const;
  Reg taken_of(const Step& step);
  void keep_active(const Step& step, bool taken);
  void branch_ahead(const Step& step, uint32_t target, const Reg& taken);
  void branch_back(const Step& step, uint32_t target, const Reg& taken);
  void branch_apart(const Step& step);
  void leave_apart(uint32_t target, bool backward);
  void finish_apart();
  List<uint32_t> written_home() const;
  void write_some(uint32_t variable);

  // emit_steps.cpp
  bool one(const Step& step);
  bool on_words(const Step& step);
  bool on_steps(const Step& step);
  bool on_vectors(const Step& step);
  bool on_predicates(const Step& step);
  bool call_handler(const Step& step);
  void call_warpwide(const Step& step);
  void put_in_frame(uint32_t variable);
  List<uint32_t> spread_words(const Step& step);
  bool vector_step(const Step& step, uint32_t strip);
  bool wide_step(const Step& step, uint32_t strip);
  void mul_wide(const Step& step, uint32_t strip, uint32_t half, const Reg& to);
  bool compare(const Step& step, uint32_t strip);
  bool compare_to(const Step& step, uint32_t strip, const Reg& to);
  // emit_alone.cpp: one lane
  bool compare_alone(const Step& step);
  bool call_alone(const Step& step);
  bool small_alone(const Step& step);
  void extend_small(const Reg& to, const Reg& from, Number type, Number as);
  void read_alone(uint32_t index);
  void write_alone(uint32_t index);
  Reg lanes_of(uint32_t bytes);
  // emit_steps.cpp, emit_numbers.cpp: floats
  bool float_step(const Step& step, uint32_t strip, const Reg& to);
  bool by_way_of_double(Does does, const Reg& to, const std::array<Reg, 3>& from,
                        uint32_t operands);
  void wide_sum_to_odd(const Reg& to, const Reg& product, const Reg& addend);
  Reg flushed_of(uint32_t variable, uint32_t strip);
  // emit_steps.cpp, emit_checks.cpp: base and step
  void check_widening(const Step& step, bool is_signed);
  struct Ends {
    Reg least, most;  // as 64-bit numbers
  };
  Ends ends_of(uint32_t variable, bool is_signed, bool of_all_warps = false);
  bool clamp_steps(const Step& step);
  void compare_ends(const Step& step);
  bool part_of_steps(const Step& step);

  // emit_numbers.cpp: f64
  void expect_numbers(const List<uint32_t>& all, const Label& otherwise);
  void expect_number(uint32_t index);
  void expect_operands(const Step& step);
  bool convert_wide(const Step& step, uint32_t s);
  bool wide_float(const Step& step, uint32_t s);

  // emit_numbers.cpp: floats of 16 bits
  bool small_floats(const Step& step);
  bool small_float(const Step& step, uint32_t strip, const Reg& to);
  bool on_parts_of(const Step& step, uint32_t strip, uint32_t part, const Reg& to);
  void sum_to_odd(const Step& step, uint32_t strip, const Reg& to, const std::array<Reg, 3>& from);

  // emit_numbers.cpp: integers and conversions to them, by WideParts
  void extend(const Reg& to, const Reg& from, uint32_t bits, bool is_signed);
  bool converted(const Step& step, uint32_t strip);
  // emit_bits.cpp
  Reg of_two(uint32_t table, const Reg& b, const Reg& c);
  void lookup(const Step& step, uint32_t strip, const Reg& to);
  void count_bits(const Reg& to, const Reg& from);
  void leading_zeros(const Reg& to, const Reg& from);
  void reverse_bits(const Reg& to, const Reg& from);
  void dot4(const Step& step, uint32_t strip, const Reg& to);
  bool bits_step(const Step& step, uint32_t strip, const Reg& to);

  // emit_numbers.cpp: 8 and 16 bits
  int64_t frame_place(uint32_t variable, uint32_t strip) const {
    return int64_t{plan_.variables[variable].slot} + int64_t{strip} * t_.vector_lanes() * 2;
  }
  void read_small(uint32_t variable);
  void write_small(uint32_t variable, const Reg& one);
  Reg signed_of(uint32_t variable, Number type, uint32_t strip);
  bool convert_small_wide(const Step& step, uint32_t strip);
  bool small_step(const Step& step, uint32_t strip);
  bool small_arithmetic(const Step& step, uint32_t strip, const Reg& to);
  void keep_low(const Reg& reg, Number type);
  bool on_parts(const Step& step);
  void load_small_lane(const Step& step, const Reg& to, uint32_t lane, const Reg& base,
                       int64_t offset);
  template <class Place>
  bool load_small_lanes(const Step& step, const Reg& to, const Place& place);
  bool load_small_apart(const Step& step, const Reg& to, const Reg& base, int64_t offset,
                        const Pattern2& steps, uint32_t first);
  bool load_small_aside(const Step& step, const Reg& to, uint32_t strip);

  // emit_loads.cpp, emit_gathers.cpp
  struct Placed {
    Reg base;
    int64_t offset;
  };
  bool prepare_places();
  void find_pointers();
  bool is_behind_branch(const Step& step) const;
  Reg pointer_of(uint32_t prepared);
  void load_for_some(const Step& step, const Reg& base, const Pattern2& steps);
  bool load(const Step& step);
  void load_from(const Step& step, const Reg& base, int64_t offset, const Pattern2& steps);
  bool is_checked_at_once(const Step& step) const;
  bool load_changing(const Step& step);
  uint32_t elements_from(const Step& step, const Pattern2& steps) const;
  bool load_elements(const Step& step, const Reg& base, int64_t offset, const Pattern2& steps);
  bool gather(const Step& step);
  Placed distances_of(const Step& step, List<Reg>* from);
  void add_lanes(const List<Reg>& distances);
  Pattern2 steps_of(const Step& step) const;
  void cut_small(const Step& step, const Reg& reg);
  void addresses_of(const Step& step, List<Reg>* from);
  struct Gathered {
    Reg limit, shift;  // splats: of Reach
    Reg beyond, low;   // of all lanes so far: signs and low bits
    Reg element;       // its offset in the group's alignment; not valid: 0
  };
  Reg gather_address(const Step& step, uint32_t strip, uint32_t half, const Gathered& all);
  bool is_narrow(const Step& step);
  Reg narrow_address(const Step& step, uint32_t strip, int64_t offset);
  void check_narrow(const Step& step);
  void gather_narrow(const Step& step);
  std::optional<Indexed> indexed_by(const Step& step) const;
  bool may_be_indexed(const Step& load, const Indexed& by);
  void find_indexed();
  // For a pointer: what is added to the numbers, and the limit of the sums; in all lanes.
  struct Scaled {
    uint32_t pointer, reach, shift;
    int64_t first;
    Reg add, most;
  };
  const Scaled& scaled(const Step& load, const Indexed& by);
  Reg index_of(const Step& load, const Indexed& by, const Scaled& scaled, uint32_t strip);
  void gather_indexed(const Step& load, const Indexed& by);

  // emit_checks.cpp
  bool may_check_itself() const;
  void expect_header(uint32_t slot, const Pattern2& steps, int64_t warp_step, bool narrow,
                     const Label& otherwise);
  void expect_inside(const Prepared& at, const Reg& base, const Label& otherwise);
  int64_t region_part(uint32_t op, size_t offset) const;
  void load_region(uint32_t op, const Reg& cached, const Reg& begin, const Reg& end);
  void expect_writable(uint32_t op, const Reg& cached, const Label& otherwise);
  void reach_itself(uint32_t index);
  void expect_lanes(const Variable& v);
  void expect_variable(const Variable& v);
  void place_itself(const Prepared& at, const Reg& pointer, bool for_some);
  void find_loaded_for_some();
  void make_loaders(const Step& step);
  void expect_loaders(const Step& step);
  void expect_some_inside(size_t prepared, const Reg& beyond, const Label& otherwise);

  // emit_warps.cpp
  bool may_go_on() const;
  bool is_end(uint32_t op) const;
  int64_t warp_rise(const Pattern2& steps, int64_t warp_step) const;
  bool holds_for_all(const Step& step) const;
  bool write_common();
  bool is_read_by_each_warp(uint32_t index) const;
  void write_next_warp();
  void exchange(const Step& step);
  void vote(const Step& step);
  List<Reg> exchange_bits(const Step& step, uint32_t bits);
  List<Reg> exchange_any(const Step& step);

  // emit_stores.cpp. Where a store writes: one register for the first lane, or one address per
  // lane, either as two vectors of addresses per strip or, if `base` is valid, as one vector of
  // distances from it.
  struct Where {
    List<Reg> all;
    Reg base;
    bool is_scattered() const { return all.size() > 1 || base.isValid(); }
  };
  size_t store_from(size_t first);
  size_t store_neighbours(size_t first, size_t end, const Reg& base);
  bool place_store(const Step& step, Where* where);
  void store_at(const Step& step, const Where& where);
  bool store_others(const Step& step, uint32_t strip, const Reg& base, const Pattern2& steps);
  void store_strip(const Step& step, uint32_t strip, const Reg& base, const Pattern2& steps);
  void store_scattered(const Step& step, const Where& where);
  size_t store_constants(size_t first, size_t end, const Reg& base);
  bool atomic(const Step& step);
  void store_lane(const Step& step, uint32_t lane, const Reg& base, int64_t offset,
                  const std::optional<Reg>& mask);
  void put_aside(const List<Reg>& vectors, int64_t at);
  void put_values_aside(uint32_t variable);
  template <class Body>
  void for_each_lane(const Body& body);
  void put_places_aside(const Step& step, const Where& where);
  void change_by_call(const Step& step, const Where& where);
  void count_in(const Step& step, const Where& where);
  Reg address_aside(const Where& where, const Reg& lane, uint32_t behind);
  std::optional<Reg> mask_of(const Step& step, uint32_t strip);
  // emit_loads.cpp
  Reach& reach_of(const Step& step);
  // Where the memory begins in this process, and the last offset at which an access may begin.
  struct ReachWords {
    Reg begin, limit;
  };
  const ReachWords& new_reach(uint32_t index);
  const ReachWords& reach_words(const Step& step) { return reach_words_[reach_of_.at(step.index)]; }
  uint32_t root_of(uint32_t variable, uint32_t depth) const;
  // Accesses that are checked together.
  struct Group {
    uint32_t variable;
    bool writes;
    uint8_t space;
    bool at_once;  // is_checked_at_once()
    bool narrow;
    int64_t first, last;  // added to the address: first byte, end of the last
    uint32_t align;
    uint32_t count = 0;
    bool is_checked = false;
    Reg where{};        // of the first byte, in this process
    Reg stored_from{};  // the base for the offsets of stores
    List<Reg> from{};   // of several gathers: the distances of all lanes
  };
  void find_groups();
  Group& group_of(const Step& step) {
    return groups_[group_of_[static_cast<size_t>(&step - plan_.steps.data())]];
  }
  bool has_lanes_beyond(const Step& step, const Group& group) const;
  void expect_active_inside(const Step& step, const Group& group, const ReachWords& reach,
                            const Reg& address, const Reg& from);
  Placed place_changing(const Step& step);
  void find_asked();
  void ask_ahead(const Step& step, const Group& group);
  static bool writes(const Step& step, uint32_t variable) {
    return step.d == variable || std::count(step.writes.begin(), step.writes.end(), variable) != 0;
  }
  uint32_t strip_count(uint32_t variable) const {
    return plan_.variables[variable].kept == Kept::Vector ? strips_ : 1;
  }
  void bail_if_above(const Reg& a, const Reg& b) { t_.jump_if_above(a, b, bail()); }

  const Flow& flow_;
  const Plan& plan_;
  Target& t_;
  const CacheIndex& cache_index_;
  std::unique_ptr<Emitted> out_;
  uint32_t strips_ = 1;
  List<Reg> active_;               // masks by strip, of a plan with masks
  Reg active_bits_, others_;       // diverging lanes: running, waiting inside
  ListedMap<uint32_t, Way> ways_;  // by Op: where they wait
  Label done_;
  struct Merged {
    size_t step;  // the end
    Label label;
  };
  List<Merged> merged_;  // of begin_merged()
  List<Value> values_;
  List<List<uint32_t>> last_read_;       // by step: variables
  List<Reg> free_vectors_, free_words_;  // of values that are no longer read
  ListedMap<uint32_t, Label> labels_;    // by Op
  ListedSet<uint32_t> staged_;           // slots with another value while the code runs
  ListedMap<std::pair<int64_t, uint32_t>, Reg> rises_;  // by step and bytes: lanes of a vector
  Reg warp_, registers_, lanes4_, lanes8_, table_, budget_, ran_, saved_, first_lane_, nan_;
  Label bail_, refused_;
  Reg left_;                      // warps that the code may still continue with
  Label next_warp_, first_step_;  // for these warps
  ListedSet<uint32_t> common_;    // variables that all these warps share
  ListedSet<uint32_t> expected_;  // headers that the code has checked
  bool bails_ = false;
  bool counts_turns_ = false;  // some branch goes back
  struct Skipped {             // Ops between these, which a branch can skip
    uint32_t from, to;
  };
  List<Skipped> skipped_;
  const Step* now_ = nullptr;  // the step that is being emitted
  bool has_stored_ = false;
  const Step* loaded_ = nullptr;  // end of the steps that were loaded together
  // An exit at an Op whose check fails after something was stored: what the interpreter needs
  // there.
  struct Stub {
    uint32_t op;
    Label label;
    List<uint32_t> variables;
  };
  List<Stub> stubs_;
  ListedMap<uint32_t, uint32_t> prepared_of_;  // by Op: index of Emitted::prepared
  List<Reg> pointers_;                         // by that index
  // By that index: 1 if lanes that branched to the end load nothing, so that their memory need not
  // exist. `unsure_` says whether some of the memory may not exist; `loaders_` are the masks of the
  // other lanes, by strip.
  List<uint8_t> for_some_;
  Reg unsure_;
  List<Reg> loaders_;
  ListedMap<uint32_t, uint32_t> reach_of_;  // by Op: index of Emitted::reaches
  List<ReachWords> reach_words_;            // by that index
  List<Reg> asked_;                         // distances, by index of Plan::ahead
  List<uint32_t> roots_;                    // by that index: a variable
  List<Group> groups_;
  List<uint32_t> group_of_;  // by step
  struct Checked {           // checked shared addresses of all lanes, in this block
    uint32_t variable;
    int64_t first, last;
    uint32_t align;
  };
  List<Checked> checked_;
  List<Scaled> scaled_;   // in this block
  List<uint32_t> found_;  // indices of `pointers_` known not to be 0, in this block
};

}  // namespace kiln::engine
