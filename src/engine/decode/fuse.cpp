// SPDX-License-Identifier: Apache-2.0
// How are loads moved to the Ops that read them?
#include "engine/decode/fuse.h"

#include <algorithm>
#include <memory>

#include "engine/decode/watch_ops.h"
#include "engine/machine/access.h"

namespace kiln::engine {
namespace {

constexpr size_t kFarthest = 16;  // Ops between a load and its reader

bool reads(const Op& op, uint32_t offset) {
  return op.a == offset || op.b == offset || op.c == offset;
}

uint32_t bytes_written(const Op& op) {
  switch (op.effect) {
    case Effect::Lanes1:
      return kWarpSize;
    case Effect::Lanes2:
      return kWarpSize * 2;
    case Effect::Lanes8:
      return kWarpSize * 8;
    default:  // of the Ops that may be passed, only a load of 4 bytes masks its lanes itself
      return kWarpSize * 4;
  }
}

// A value that no Op reads has its slot for no time: the next value may have the same.
bool overwrites(const Op& op, uint32_t offset) {
  if (is_index_check(op.run) || is_load_event(op)) return false;
  return op.d < offset + kWarpSize * 4 && offset < op.d + bytes_written(op);
}

// The Op neither writes memory nor stops, so a load may move past it. The address of the load does
// not change, because it is base and step. (A check of another index may stop the launch; then the
// load was unnecessary.)
bool may_be_passed(const Op& op) {
  return op.effect != Effect::MaskAware || op.run == plain_load_32() || is_scalar_load_32(op.run) ||
         is_index_check(op.run) || is_load_event(op);
}

bool is_global_by_steps(const Op& op) {
  const auto space = static_cast<ptx::Space>(op.z);
  return op.effect == Effect::MaskAware && (op.x & kAddressAffine) && !(op.x & kAddress32) &&
         (space == ptx::Space::Global || space == ptx::Space::Generic);
}

Handler fused(const Op& load, const Op& reader) {
  for (const LoadFusion& row : float_load_fusions()) {
    if (row.reader != reader.run) continue;
    const uint32_t loaded = row.position == 0 ? reader.a : reader.b;
    const uint32_t other = row.position == 0 ? reader.b : reader.a;
    if (loaded == load.d && other != load.d && reader.c != load.d) {
      if (is_global_by_steps(load)) return row.both_global;
      return load.z == static_cast<uint8_t>(ptx::Space::Shared) ? row.both_shared : row.both;
    }
  }
  return nullptr;
}

}  // namespace

void fuse_branches(Program& program) {
  std::vector<Op>& ops = program.ops;
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    const Op& branch = ops[i + 1];
    bool negated;
    if (!is_compare_affine(ops[i].run) || !is_branch_if(branch, &negated)) continue;
    if (branch.a != ops[i].d || branch.target <= &branch) continue;
    ops[i].target = branch.target;
    ops[i].y = !negated;  // the value of the predicate for which the branch is taken
  }
}

void fuse_checks(Program& program, const std::unordered_set<const Op*>& entries) {
  std::vector<Op>& ops = program.ops;
  for (size_t i = program.warp_start; i < ops.size(); ++i) {
    if (!is_index_check(ops[i].run)) continue;
    for (size_t at = i + 1, steps = 0;
         at < ops.size() && steps < kFarthest && !entries.count(&ops[at]); ++at, ++steps) {
      const bool is_check = is_index_check(ops[at].run);
      if (!may_be_passed(ops[at])) break;
      if (!is_check && (ops[at].d == ops[i].a)) break;  // the index changes here
      if (!check_same_index(ops[i], ops[at])) continue;
      const size_t to = i + 1 + ops[i].d;
      const auto writes_size = [&](const Op& op) {
        return !is_index_check(op.run) && op.d == ops[at].b;
      };
      const auto begin = ops.begin() + static_cast<long>(to),
                 end = ops.begin() + static_cast<long>(at);
      if (std::any_of(begin, end, writes_size)) continue;
      std::rotate(begin, end, end + 1);
      ++ops[i].d;
    }
    i += ops[i].d;
  }
}

void fuse_loads(Program& program) {
  std::vector<Op>& ops = program.ops;
  for (size_t i = ops.size(); i-- > 0;) {
    const Op& load = ops[i];
    if (load.run != plain_load_32() || !(load.y & kReadOnce) || !(load.x & kAddressAffine))
      continue;
    size_t at = i + 1;
    while (at < ops.size() && at - i <= kFarthest && !reads(ops[at], load.d) &&
           may_be_passed(ops[at]) && !overwrites(ops[at], load.d) && ops[at].d != load.a)
      ++at;
    if (at >= ops.size() || ops[at].effect != Effect::Lanes4) continue;
    Handler both = fused(load, ops[at]);
    if (!both) continue;
    std::rotate(ops.begin() + static_cast<long>(i), ops.begin() + static_cast<long>(i) + 1,
                ops.begin() + static_cast<long>(at));
    Op& moved = ops[at - 1];
    auto plain = std::make_shared<Op>(moved);
    moved.data = plain.get();
    moved.run = both;
    program.owned.push_back(std::move(plain));
  }
}

void choose_accesses(Program& program) {
  for (Op& op : program.ops) {
    if (op.effect == Effect::MaskAware && (op.x & kAddressRows)) {
      if (Handler own = rows_access(op)) op.run = own;
    }
    if (!is_global_by_steps(op)) continue;
    if (Handler own = global_access(op)) op.run = own;
  }
}

}  // namespace kiln::engine
