// SPDX-License-Identifier: Apache-2.0
#include "counters/follow_sass.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace kiln::counters {
namespace {

using results::Counts;
using results::Metric;
using results::SassChange;

// The word of an instruction without its guard: "ld.shared.f32".
std::string_view opcode_in(std::string_view ptx) {
  ptx = text::trim(ptx);
  if (ptx.starts_with('@')) ptx = text::trim(ptx.substr(std::min(ptx.find(' '), ptx.size())));
  return ptx.substr(0, ptx.find_first_of(" \t;"));
}

bool is_branch(std::string_view ptx) { return opcode_in(ptx).starts_with("br"); }

// "%r19" of "ld.shared.f32 %f6, [%r19+8];". All variables have one base: ptxas knows how far they
// are from each other.
std::string_view base_in(std::string_view ptx) {
  const size_t at = ptx.find('[');
  if (at == ptx.npos || at + 1 >= ptx.size() || ptx[at + 1] != '%') return "";
  ptx.remove_prefix(at + 1);
  return ptx.substr(0, ptx.find_first_of("+]"));
}

// 16 of "ld.shared.v4.f32".
uint32_t bytes_in(std::string_view opcode) {
  uint32_t bits = 32, count = 1;
  for (const std::string_view word : text::split(opcode, '.')) {
    if (word == "v2" || word == "v4") count = word == "v2" ? 2 : 4;
    uint32_t found = 0;
    if (word.size() < 2 || std::string_view("busf").find(word[0]) == std::string_view::npos)
      continue;
    const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), found);
    if (error == std::errc() && end == word.data() + word.size()) bits = found;
  }
  return count * bits / 8;
}

struct Slots {
  const char* name;
  Metric requests;
  bool shared;
  std::vector<Metric> all;
};
const Slots& slots_of(Access kind) {
  using enum Metric;
  static const Slots kSlots[kAccesses] = {
      {"shared loads",
       shared_ld_requests,
       true,
       {shared_ld_requests, shared_ld_wavefronts, shared_ld_ideal_wavefronts, shared_ld_conflicts}},
      {"shared stores",
       shared_st_requests,
       true,
       {shared_st_requests, shared_st_wavefronts, shared_st_ideal_wavefronts, shared_st_conflicts}},
      {"global loads",
       global_ld_requests,
       false,
       {global_ld_requests, global_ld_sectors, global_ld_bytes, global_ld_ideal_sectors}},
      {"global stores",
       global_st_requests,
       false,
       {global_st_requests, global_st_sectors, global_st_bytes, global_st_ideal_sectors}}};
  return kSlots[static_cast<size_t>(kind)];
}

// An access of PTX that was executed, and the SASS of its line.
struct Member {
  results::CounterSite* site;
  const std::vector<uint32_t>* sass;
  uint32_t ptx_bytes;
};

struct Passes {
  uint64_t count = 0, ideal = 0;
};
// What all executions of a site would take if each of them had `bytes`.
Passes passes_of(const results::CounterSite& site, uint32_t bytes, bool load) {
  using enum Metric;
  const Passes own{site.counts[load ? shared_ld_wavefronts : shared_st_wavefronts],
                   site.counts[load ? shared_ld_ideal_wavefronts : shared_st_ideal_wavefronts]};
  bytes = std::max(bytes, 4u);
  if (!site.other || bytes == std::max(site.other->bytes, 4u)) return own;
  const results::OtherWidths& other = *site.other;
  const Passes found = bytes == 16  ? Passes{other.passes16, other.ideal16}
                       : bytes == 8 ? Passes{other.passes8, other.ideal8}
                                    : Passes{other.passes4, other.ideal4};
  return found.count ? found : own;  // else not a width that was counted
}

void drop(const Slots& slots, Counts& counts) {
  for (const Metric metric : slots.all) counts[metric] = 0;
}

bool has_other_width(const Member& member) {
  return std::any_of(member.sass->begin(), member.sass->end(), [&](uint32_t bytes) {
    return std::max(bytes, 4u) != std::max(member.ptx_bytes, 4u);
  });
}

// Accesses of one width and base that were executed equally often: what ptxas joins, and whose
// instructions it may list under each other's lines. Unrolled, each of them has copies, which share
// the executions of their line; how many follows from the bytes of both sides.
void follow_shared(std::vector<Member>& group, Access kind) {
  const Slots& slots = slots_of(kind);
  const bool load = kind == Access::SharedLoad;
  uint64_t sass_bytes = 0, ptx_bytes = 0;
  for (const Member& member : group) {
    ptx_bytes += member.ptx_bytes;
    for (const uint32_t bytes : *member.sass) sass_bytes += bytes;
  }
  const uint64_t copies = std::max<uint64_t>(1, sass_bytes / ptx_bytes);
  for (const Member& member : group) {
    Passes sum;
    for (const uint32_t bytes : *member.sass) {
      const Passes one = passes_of(*member.site, bytes, load);
      sum.count += one.count;
      sum.ideal += one.ideal;
    }
    Counts& counts = member.site->counts;
    const uint64_t requests = counts[slots.requests] * member.sass->size();
    drop(slots, counts);
    using enum Metric;
    counts[slots.requests] = requests / copies;
    counts[load ? shared_ld_wavefronts : shared_st_wavefronts] = sum.count / copies;
    counts[load ? shared_ld_ideal_wavefronts : shared_st_ideal_wavefronts] = sum.ideal / copies;
    counts[load ? shared_ld_conflicts : shared_st_conflicts] =
        (sum.count > sum.ideal ? sum.count - sum.ideal : 0) / copies;
  }
}

// An access without an instruction is redundant, or is listed under the line of another one: then
// there are as many instructions as accesses.
void follow_absent(std::vector<Member>& group, const Slots& slots) {
  size_t found = 0;
  for (const Member& member : group) found += member.sass->size();
  if (found >= group.size()) return;
  const bool joined_elsewhere =
      slots.shared && std::any_of(group.begin(), group.end(), [](const Member& member) {
        return member.site->other.has_value();
      });
  if (found == 0 && !joined_elsewhere) return;  // lines that the table does not have
  for (const Member& member : group)
    if (member.sass->empty()) drop(slots, member.site->counts);
}

// Not every atomic whose result is unread becomes a reduction.
void follow_atomics(const SassOfLine& line, Counts& counts) {
  using enum Metric;
  constexpr std::pair<Metric, Metric> kPairs[] = {{global_atom_requests, global_red_requests},
                                                  {global_atom_sectors, global_red_sectors},
                                                  {global_atom_bytes, global_red_bytes}};
  for (auto [atomic, reduction] : kPairs) {
    const uint64_t all = counts[atomic] + counts[reduction];
    if (line.atomics && !line.reductions) {
      counts[atomic] = all;
      counts[reduction] = 0;
    } else if (line.reductions && !line.atomics) {
      counts[atomic] = 0;
      counts[reduction] = all;
    }
  }
}

class Follower {
 public:
  Follower(const SassOfKernel& sass, const results::CounterProgram& program,
           results::CounterLaunch& launch)
      : sass_(sass), program_(program) {
    for (results::CounterSite& site : launch.sites)
      if (site.program == program.id && site.instruction < program.instructions.size())
        sites_.push_back(&site);
  }

  bool is_same_ptx() const {
    return std::all_of(program_.instructions.begin(), program_.instructions.end(),
                       [&](const results::CounterInstruction& one) {
                         return one.ptx_line >= 1 && one.ptx_line <= sass_.ptx.size() &&
                                sass_.ptx[one.ptx_line - 1].find(opcode_in(one.ptx)) !=
                                    std::string::npos;
                       });
  }

  std::vector<SassChange> run() {
    std::vector<SassChange> out;
    for (results::CounterSite* site : sites_) site->sass_instructions = line_of(*site).instructions;
    for (size_t kind = 0; kind < kAccesses; ++kind)
      add(follow_accesses(static_cast<Access>(kind)), out);
    for (results::CounterSite* site : sites_) follow_atomics(line_of(*site), site->counts);
    add(follow_branches(), out);
    return out;
  }

 private:
  static void add(SassChange change, std::vector<SassChange>& out) {
    if (change.ptx || change.added) out.push_back(std::move(change));
  }

  const results::CounterInstruction& instruction_of(const results::CounterSite& site) const {
    return program_.instructions[site.instruction];
  }
  const SassOfLine& line_at(uint32_t number) const {
    static const SassOfLine kNone;
    const auto found = sass_.lines.find(number);
    return found == sass_.lines.end() ? kNone : found->second;
  }
  const SassOfLine& line_of(const results::CounterSite& site) const {
    return line_at(instruction_of(site).ptx_line);
  }

  SassChange follow_accesses(Access kind) {
    const Slots& slots = slots_of(kind);
    SassChange change{.of = slots.name};
    using Key = std::tuple<std::string_view, uint32_t, uint64_t>;  // base, bytes, executions
    std::map<Key, std::vector<Member>> groups;
    for (results::CounterSite* site : sites_) {
      if (!site->counts[slots.requests]) continue;
      const std::string_view ptx = instruction_of(*site).ptx;
      const SassOfLine& line = line_of(*site);
      const Member member{site, &line.of(kind), bytes_in(opcode_in(ptx))};
      groups[{base_in(ptx), member.ptx_bytes, site->counts[Metric::inst_executed]}].push_back(
          member);
      ++change.ptx;
      change.absent += member.sass->empty();
      change.copies += member.sass->size() > 1;
      change.other_width += has_other_width(member);
      change.moved += line.moved && !member.sass->empty();
    }
    for (auto& [key, group] : groups) {
      if (slots.shared && std::any_of(group.begin(), group.end(), has_other_width))
        follow_shared(group, kind);
      else
        follow_absent(group, slots);
    }
    return change;
  }

  // Conditional branches in SASS: those of its line, or of the `bra` behind it, since one
  // instruction does what "@p bra A; bra B;" does.
  uint32_t branches_of(uint32_t ptx_line) const {
    if (const uint32_t own = line_at(ptx_line).branches) return own;
    for (size_t i = ptx_line; i < sass_.ptx.size(); ++i) {
      const std::string_view next = text::trim(sass_.ptx[i]);
      if (next.empty() || next.starts_with('.') || next.starts_with("//")) continue;
      const bool jumps = !next.starts_with('@') && is_branch(next);
      return jumps ? line_at(static_cast<uint32_t>(i + 1)).branches : 0;
    }
    return 0;
  }

  SassChange follow_branches() {
    SassChange change{.of = "branches"};
    for (results::CounterSite* site : sites_) {
      if (!site->counts[Metric::branches]) continue;
      const uint32_t found = branches_of(instruction_of(*site).ptx_line);
      ++change.ptx;
      change.absent += found == 0;
      change.copies += found > 1;
      if (found == 0) site->counts[Metric::branches_divergent] = 0;
    }
    for (const auto& [number, line] : sass_.lines)
      if (line.branches && number >= 1 && number <= sass_.ptx.size() &&
          !is_branch(sass_.ptx[number - 1]))
        change.added += line.branches;
    return change;
  }

  const SassOfKernel& sass_;
  const results::CounterProgram& program_;
  std::vector<results::CounterSite*> sites_;
};

}  // namespace

std::optional<std::vector<SassChange>> follow_sass(const SassOfKernel& sass,
                                                   const results::CounterProgram& program,
                                                   results::CounterLaunch* launch) {
  Follower follower(sass, program, *launch);
  if (sass.empty() || !follower.is_same_ptx()) return std::nullopt;
  return follower.run();
}

}  // namespace kiln::counters
