// SPDX-License-Identifier: Apache-2.0
// Which accesses are wrong by their address? The engine checks each address anyway, and asks its
// sink before it stops the kernel; so this checker needs no event of a good access. Only accesses
// to shared variables cost something where all is well: the engine compares them with the variable
// that they name. Frees and copies come as the host's events.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "watch/sanitize/collector.h"

namespace kiln::watch {

// Allocations that are gone, the last kMost of them, by address.
class FreedMemory {
 public:
  struct Freed {
    uint64_t begin = 0, bytes = 0;
    std::string by;  // "cudaFree", "free() in f.cu:12"
  };
  void add(Freed freed);
  // The address was allocated again: it is as good as new.
  void allocated(uint64_t begin, uint64_t bytes);
  const Freed* find(uint64_t address) const;

 private:
  static constexpr size_t kMost = 10'000;
  std::map<uint64_t, Freed> by_begin_;
  std::deque<uint64_t> order_;
};

class MemoryChecker : public engine::Sink {
 public:
  explicit MemoryChecker(Collector& collector) : collector_(collector) {}

  uint32_t wanted() const override { return engine::kHostEvents | engine::kVariableEvents; }
  void on(const engine::HostEvent& event) override;
  // Notes it; the Collector answers.
  bool recovers(const engine::FaultEvent& fault) override;

 private:
  void bad_index(const engine::FaultEvent& fault);
  void bad_alignment(const engine::FaultEvent& fault);
  void bad_address(const engine::FaultEvent& fault);
  void bad_write(const engine::FaultEvent& fault);
  void left_variable(const engine::FaultEvent& fault, results::Finding& finding);
  void bad_free(const engine::HostEvent& event);
  void bad_copy(const engine::HostEvent& event);
  bool is_inside(uint64_t address) const;  // of memory that is allocated

  Collector& collector_;
  FreedMemory freed_;
  std::map<uint64_t, uint64_t> live_;  // bytes of what is allocated, by its address
  std::string last_failure_;           // of a call of the host: the refusal of a copy says why
  std::set<uint32_t> index_lines_;     // line ids that have a finding of a View's index
};

}  // namespace kiln::watch
