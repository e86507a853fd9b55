// SPDX-License-Identifier: Apache-2.0
#include "engine/decode/branches.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

namespace kiln::engine {
namespace {

// A warp that takes the first branch as a whole runs these for nothing.
constexpr uint32_t kMostBetween = 16;
// Each pair is checked against the whole function.
constexpr uint32_t kMostPairs = 64;

constexpr std::string_view kOr = "or.pred";

class Joiner {
 public:
  Joiner(ptx::Body& body, std::vector<ptx::FormMatch>& matches)
      : body_(body), code_(body.instructions), matches_(matches) {}

  void run() {
    if (!body_.branch_targets.empty()) return;  // any label may be a target
    is_label_.assign(code_.size() + 1, false);
    for (const auto& [name, at] : body_.labels) is_label_[at] = true;
    for (uint32_t first = 0; first < code_.size() && looked_at_ < kMostPairs; ++first) {
      const std::optional<uint32_t> second = partner_of(first);
      if (second) join(first, *second);
    }
  }

 private:
  // The target, if it is a forward branch.
  std::optional<uint32_t> target_of(uint32_t index) const {
    const ptx::Instruction& ins = code_[index];
    if (!is_branch(index) || !ins.modifiers.empty() || ins.guard == ptx::kNoRegister ||
        ins.operands.size() != 1)
      return std::nullopt;
    const auto found = body_.labels.find(ins.operands[0].name);
    if (found == body_.labels.end() || found->second <= index) return std::nullopt;
    return found->second;
  }

  const ptx::Form& form(uint32_t index) const { return ptx::forms()[matches_[index].form]; }
  bool is_branch(uint32_t index) const { return form(index).has(ptx::kGuarded); }

  // It computes a register from others, whatever lanes run. (Uses of the carry are not visible
  // here.)
  bool is_computing(uint32_t index) const {
    const std::string_view operands = form(index).operands;
    return code_[index].guard == ptx::kNoRegister && form(index).has(ptx::kStraight) &&
           !operands.empty() && std::string_view("dDpv").find(operands[0]) != operands.npos &&
           operands.find_first_of("m*") == operands.npos && !code_[index].has("cc");
  }

  // The next branch to the same place, if there is only arithmetic in between that lanes past the
  // branch cannot observe.
  std::optional<uint32_t> partner_of(uint32_t first) {
    const std::optional<uint32_t> target = target_of(first);
    if (!target) return std::nullopt;
    uint32_t second = first + 1;
    while (second < *target && second - first <= kMostBetween && !is_label_[second] &&
           is_computing(second))
      ++second;
    if (second >= *target || is_label_[second] || target_of(second) != target) return std::nullopt;
    ++looked_at_;
    return is_entered_here(first, second, *target) && is_seen_here(first, second, *target)
               ? std::optional(second)
               : std::nullopt;
  }

  // Code after the second branch is only reached through both.
  bool is_entered_here(uint32_t first, uint32_t second, uint32_t target) const {
    for (uint32_t i = 0; i < code_.size(); ++i) {
      if (!is_branch(i) || (i > second && i < target)) continue;
      const auto found = code_[i].operands.empty() ? body_.labels.end()
                                                   : body_.labels.find(code_[i].operands[0].name);
      if (found == body_.labels.end() || (found->second > first && found->second < target))
        return false;
    }
    return true;
  }

  // What is written in between is read only after it, and not where the branches lead.
  bool is_seen_here(uint32_t first, uint32_t second, uint32_t target) const {
    std::set<uint32_t> written, yet;
    for (uint32_t i = first + 1; i < second; ++i)
      each_written(i, [&](uint32_t reg) { written.insert(reg); });
    if (written.count(code_[first].guard)) return false;
    bool seen = false;
    for (uint32_t i = 0; i < code_.size(); ++i) {
      const bool behind = i >= second && i < target;
      if (behind) continue;
      const bool between = i > first && i < second;
      each_read(i,
                [&](uint32_t reg) { seen |= written.count(reg) && !(between && yet.count(reg)); });
      if (between) each_written(i, [&](uint32_t reg) { yet.insert(reg); });
    }
    return !seen;
  }

  template <class Then>
  static void each_register(const ptx::Operand& operand, const Then& then) {
    using Kind = ptx::OperandKind;
    if (operand.kind == Kind::Register || operand.kind == Kind::Predicate ||
        (operand.kind == Kind::Address && operand.base_is_register))
      then(operand.reg);
    for (const ptx::Operand& element : operand.elements) each_register(element, then);
  }
  template <class Then>
  void each_written(uint32_t index, const Then& then) const {
    ptx::each_written(form(index), code_[index],
                      [&](const ptx::Operand& operand) { each_register(operand, then); });
  }
  // Includes registers that the instruction writes, unless it is known to only write them.
  template <class Then>
  void each_read(uint32_t index, const Then& then) const {
    const ptx::Instruction& ins = code_[index];
    if (ins.guard != ptx::kNoRegister) then(ins.guard);
    const size_t from = is_computing(index) ? 1 : 0;
    for (size_t k = from; k < ins.operands.size(); ++k) each_register(ins.operands[k], then);
  }

  // Puts `or.pred t, p, q; @t bra` in place of the second branch. What is in between moves up by
  // one.
  void join(uint32_t first, uint32_t second) {
    const auto reg = static_cast<uint32_t>(body_.registers.size());
    body_.registers.push_back({"joined", static_cast<int32_t>(reg), ptx::Type::pred});
    const auto predicate = [](uint32_t of, bool negated) {
      ptx::Operand out;
      out.kind = ptx::OperandKind::Predicate;
      out.reg = of;
      out.negated = negated;
      return out;
    };
    ptx::Instruction either;
    either.mnemonic = kOr.substr(0, 2);
    either.modifiers = {kOr.substr(3)};
    either.operands = {predicate(reg, false),
                       predicate(code_[first].guard, code_[first].guard_negated),
                       predicate(code_[second].guard, code_[second].guard_negated)};
    either.source = code_[second].source;
    either.line = code_[second].line;
    either.column = code_[second].column;
    const std::optional<ptx::FormMatch> match = ptx::match_form(either);
    if (!match) return;
    std::rotate(code_.begin() + first, code_.begin() + first + 1, code_.begin() + second);
    std::rotate(matches_.begin() + first, matches_.begin() + first + 1, matches_.begin() + second);
    code_[second - 1] = std::move(either);
    matches_[second - 1] = *match;
    code_[second].guard = reg;
    code_[second].guard_negated = false;
  }

  ptx::Body& body_;
  std::vector<ptx::Instruction>& code_;
  std::vector<ptx::FormMatch>& matches_;
  std::vector<bool> is_label_;
  uint32_t looked_at_ = 0;
};

}  // namespace

void join_branches(ptx::Body& body, std::vector<ptx::FormMatch>& matches) {
  Joiner(body, matches).run();
}

}  // namespace kiln::engine
