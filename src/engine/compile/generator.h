// SPDX-License-Identifier: Apache-2.0
// What does asmjit need for a piece of code? Memory for its lists, which it takes from the system
// and clears: to begin with what the last piece left behind takes a fifth off the time.
#pragma once

#include <asmjit/core.h>

#include <atomic>
#include <memory>

namespace kiln::engine {

// `Known`: what else is worth keeping from one piece to the next.
template <class Compiler, class Known = int>
struct Generator {
  asmjit::CodeHolder code;
  Compiler compiler;
  Known known{};

  Generator() { begin(); }
  void begin() {
    code.init(asmjit::Environment::host());
    code.attach(&compiler);
  }

  // The one that nobody uses, or a new one. No lock and nothing of a thread: a fork may come at any
  // time, and its child makes another one.
  static std::unique_ptr<Generator> take() {
    std::unique_ptr<Generator> one(spare().exchange(nullptr));
    if (!one) return std::make_unique<Generator>();
    one->begin();
    return one;
  }
  // Of very long code the memory goes back to the system.
  static void give_back(std::unique_ptr<Generator> one) {
    if (one->code.codeSize() > kLongest) return;
    one->code.reset(asmjit::ResetPolicy::kSoft);
    Generator* none = nullptr;
    if (spare().compare_exchange_strong(none, one.get())) (void)one.release();
  }

 private:
  static constexpr size_t kLongest = 64 << 10;
  static std::atomic<Generator*>& spare() {
    static constinit std::atomic<Generator*> kept{nullptr};
    return kept;
  }
};

}  // namespace kiln::engine
