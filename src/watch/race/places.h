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

// Which accesses of one key cannot race with each other: reads, and atomics in their scope.
enum class Agreement : uint8_t { None, Block, Grid };

class Places {
 public:
  explicit Places(SiteTable& sites) : sites_(sites) { places_.emplace_back(); }
  // What is the same for all accesses of an instruction.
  struct Access {
    uint32_t form = 0;  // kind, strength, scope and bytes
    Key key;            // without kDense and the bytes of each word
    Agreement agreement = Agreement::None;
  };
  const Access& access_of(const engine::AccessEvent& event) {
    if (event.by.program != last_program_ || event.by.program->serial != last_serial_)
      turn_to(*event.by.program);
    Access& known = (*accesses_)[event.by.site];
    const uint32_t form = form_of(event);
    if (known.form != form) known = {form, key_of(event), agreement_of(event)};
    return known;
  }
  const Place& operator[](uint32_t index) const { return places_[index]; }
  // What the host did: a place for each operation of a stream.
  Key host_key(bool writes, uint64_t stream) { return of_host(writes, stream, false); }
  Key free_key(uint64_t stream) { return of_host(true, stream, true); }

 private:
  // Never 0: an access has bytes.
  static uint32_t form_of(const engine::AccessEvent& event) {
    return static_cast<uint32_t>(event.kind) | static_cast<uint32_t>(event.strength) << 8 |
           static_cast<uint32_t>(event.scope) << 16 | (event.bytes < 255 ? event.bytes : 255) << 24;
  }
  static Agreement agreement_of(const engine::AccessEvent& event);
  void turn_to(const engine::Program& program);
  Key key_of(const engine::AccessEvent& event);
  Key of_host(bool writes, uint64_t stream, bool frees);
  Key intern(uint64_t identity, const Place& place);

  SiteTable& sites_;
  std::vector<Place> places_;                                     // 0: none
  std::unordered_map<uint64_t, std::vector<Access>> by_program_;  // by serial, then by site
  const engine::Program* last_program_ = nullptr;
  uint64_t last_serial_ = 0;
  std::vector<Access>* accesses_ = nullptr;  // of the last program
  std::unordered_map<uint64_t, Key> by_identity_;
};

}  // namespace kiln::watch::race
