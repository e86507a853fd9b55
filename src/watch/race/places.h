// SPDX-License-Identifier: Apache-2.0
// Which accesses count as one? Those of one source line and of one kind: findings are told apart by
// lines, and an unrolled loop is one line of many instructions.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/machine/events.h"
#include "watch/race/shadow.h"
#include "watch/sanitize/sites.h"

namespace kiln::watch::race {

struct Place {
  SiteId site = kNoSite;  // the first instruction of them; kNoSite: the host
  engine::AccessKind kind = engine::AccessKind::Load;
  engine::Strength strength = engine::Strength::Weak;
  engine::Scope scope = engine::Scope::None;
  uint64_t stream = 0;  // of the host's
  bool frees = false;   // the host gives the memory back

  bool writes() const { return kind != engine::AccessKind::Load; }
  bool strong() const { return strength != engine::Strength::Weak; }
};

class Places {
 public:
  explicit Places(SiteTable& sites) : sites_(sites) { places_.emplace_back(); }
  // Without the bits of size and form.
  Key key_of(const engine::AccessEvent& event) {
    const size_t at = size_t{sites_.id_of(event.by)} * kKinds + static_cast<size_t>(event.kind);
    if (at < known_.size() && known_[at].bits) return known_[at];
    return add(event, at);
  }
  const Place& operator[](uint32_t index) const { return places_[index]; }
  // What the host did: a place for each operation of a stream.
  Key host_key(bool writes, uint64_t stream) { return of_host(writes, stream, false); }
  Key free_key(uint64_t stream) { return of_host(true, stream, true); }

 private:
  static constexpr size_t kKinds = 4;
  Key add(const engine::AccessEvent& event, size_t at);
  Key of_host(bool writes, uint64_t stream, bool frees);
  Key intern(uint64_t identity, const Place& place);

  SiteTable& sites_;
  std::vector<Place> places_;  // 0: none
  std::vector<Key> known_;     // by site and kind
  std::unordered_map<uint64_t, Key> by_identity_;
};

}  // namespace kiln::watch::race
