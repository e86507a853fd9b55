// SPDX-License-Identifier: Apache-2.0
#include "watch/race/places.h"

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

Key Places::add(const AccessEvent& event, size_t at) {
  const SiteId site = sites_.id_of(event.by);
  const Place place{site, event.kind, event.strength, event.scope};
  const uint64_t identity = uint64_t{1} << 63 | uint64_t{sites_[site].line_id} << 12 |
                            static_cast<uint64_t>(event.kind) << 8 |
                            static_cast<uint64_t>(event.strength) << 4 |
                            static_cast<uint64_t>(event.scope);
  if (known_.size() <= at) known_.resize(at + at / 2 + kKinds);
  return known_[at] = intern(identity, place);
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
