// SPDX-License-Identifier: Apache-2.0
// Where in the source is an instruction? Programs go away with their library, and findings are
// written when the process ends: what a report needs of a site is kept here, once, under a number
// that stays.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/machine/events.h"
#include "results/findings.h"

namespace kiln::watch {

using SiteId = uint32_t;
constexpr SiteId kNoSite = 0;

struct KnownSite {
  std::string function;                     // demangled: the kernel, or a device function
  std::vector<results::FindingLine> stack;  // as FindingPlace has it, without the text
  uint32_t ptx_line = 0;
  std::string opcode;
  uint32_t line_id = 0;  // equal for sites of the same line, inlined into the same line of a kernel
};

class SiteTable {
 public:
  SiteTable() { sites_.emplace_back(); }
  // Two lookups in vectors, where the program is the one of the last call.
  SiteId id_of(const engine::Actor& by) {
    if (by.program != last_program_ || by.program->serial != last_serial_) turn_to(*by.program);
    SiteId& id = (*ids_)[by.site];
    return id != kNoSite ? id : id = add(*by.program, by.site);
  }
  const KnownSite& operator[](SiteId id) const { return sites_[id]; }

 private:
  void turn_to(const engine::Program& program);
  SiteId add(const engine::Program& program, uint32_t site);

  std::vector<KnownSite> sites_;                                  // by SiteId
  std::unordered_map<uint64_t, std::vector<SiteId>> by_program_;  // by serial, then by site
  std::unordered_map<std::string, uint32_t> lines_;
  const engine::Program* last_program_ = nullptr;
  uint64_t last_serial_ = 0;
  std::vector<SiteId>* ids_ = nullptr;  // of the last program
};

// Is it a header that users did not write: of the CUDA toolkit, of kiln, of the system?
bool is_system_header(std::string_view path);

}  // namespace kiln::watch
