// SPDX-License-Identifier: Apache-2.0
#include "watch/race/places.h"

#include <algorithm>
#include <bit>

namespace kiln::watch::race {

using namespace engine;

Key Places::intern(uint64_t identity, const Place& place) {
  const auto [found, is_new] = by_identity_.try_emplace(identity);
  if (!is_new) return found->second;
  // Beyond the limit all share the last one: a finding may then name the wrong line.
  if (places_.size() < Key::kMostPlaces) places_.push_back(place);
  Key key{static_cast<uint32_t>(places_.size() - 1) << Key::kPlaceShift};
  if (place.writes()) key.bits |= Key::kWrites;
  if (place.strong()) key.bits |= Key::kStrong;
  return found->second = key;
}

void Places::turn_to(const Program& program) {
  accesses_ = &by_program_[program.serial];
  accesses_->resize(program.sites.size());
  last_program_ = &program;
  last_serial_ = program.serial;
}

Agreement Places::agreement_of(const AccessEvent& event) {
  if (event.kind == AccessKind::Load) return Agreement::Grid;
  if (event.strength == Strength::Weak) return Agreement::None;
  const bool wide = event.scope == Scope::Gpu || event.scope == Scope::System;
  return wide ? Agreement::Grid : Agreement::Block;
}

Key Places::key_of(const AccessEvent& event) {
  const SiteId site = sites_.id_of(event.by);
  const Place place{site, event.kind, event.strength, event.scope};
  const uint64_t identity = uint64_t{1} << 63 | uint64_t{sites_[site].line_id} << 12 |
                            static_cast<uint64_t>(event.kind) << 8 |
                            static_cast<uint64_t>(event.strength) << 4 |
                            static_cast<uint64_t>(event.scope);
  Key key = intern(identity, place);
  const auto size = static_cast<uint32_t>(std::bit_width(event.bytes | 1) - 1);
  key.bits |= std::min(size, 7u) << Key::kSizeShift;
  return key;
}

Key Places::of_host(bool writes, uint64_t stream, bool frees) {
  Place place;
  place.kind = writes ? AccessKind::Store : AccessKind::Load;
  place.stream = stream;
  place.frees = frees;
  const uint64_t name = stream & ((uint64_t{1} << 60) - 1);
  return intern(name << 2 | (frees ? 2 : 0) | (writes ? 1 : 0), place);
}

}  // namespace kiln::watch::race
