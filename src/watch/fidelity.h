// SPDX-License-Identifier: Apache-2.0
// How many instructions of a run were exact, how many approximate, and did an approximate value
// decide where the program went? Counts come from events; the last question is answered from the
// text of each function: a result flows through registers into the guard of a branch that ran.
// What passes through memory or a called function is not followed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/machine/events.h"
#include "ptx/approximation.h"
#include "results/fidelity.h"

namespace kiln::watch {

// What the text of a function says of its instructions, by the line of PTX and the opcode.
struct FunctionFidelity {
  using Place = std::pair<uint32_t, std::string>;
  std::map<Place, const ptx::Approximation*> approximate;
  std::vector<Place> branches;  // whose guard comes from an approximate value
};
FunctionFidelity fidelity_of(const ptx::Body& body);

class FidelityWatch : public engine::Sink {
 public:
  uint32_t wanted() const override { return engine::kInstructionEvents; }
  void on(const engine::InstructionEvent& event) override;
  void on(const engine::LaunchEvent& event) override;
  // Of all launches that have ended.
  results::Fidelity result() const;

 private:
  void add(const engine::Program& program, const std::vector<uint64_t>& counts);
  const FunctionFidelity& of(const engine::Program& program);

  std::map<const engine::Program*, std::vector<uint64_t>> running_;  // by site, of this launch
  const engine::Program* last_ = nullptr;
  std::vector<uint64_t>* counts_ = nullptr;               // of last_
  std::unordered_map<uint64_t, FunctionFidelity> known_;  // by Program::serial
  int64_t instructions_ = 0;
  std::map<std::string, results::Approximated> approximate_;  // by opcode
  std::map<std::string, int64_t> branches_;                   // by place
  std::map<std::string, int64_t> interpreted_;                // by opcode: without machine code
};

// Prints to stderr when the process ends, if anything was launched.
std::unique_ptr<engine::Sink> make_fidelity();

}  // namespace kiln::watch
