// SPDX-License-Identifier: Apache-2.0
// How does a program get faster while it runs? It counts the Ops that it ran. When there are many,
// it gets other Ops, one for each of its own and at the same index, some of which run machine code
// (compile/). A warp switches to them when it starts or when its turn ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace kiln::engine {

struct Op;
struct Program;

class Tiering {
 public:
  explicit Tiering(const Op* interpreted) : ops_(interpreted) {}
  Tiering(const Tiering&) = delete;
  Tiering& operator=(const Tiering&) = delete;
  virtual ~Tiering() = default;

  // The Ops for a warp that starts now.
  const Op* ops() const { return ops_.load(std::memory_order_acquire); }
  // Adds the Ops that ran since the last call, and calls rise() when the sum reaches `limit`.
  void warm(uint64_t count, uint64_t limit) noexcept {
    if (risen_.load(std::memory_order_relaxed)) return;
    if (heat_.fetch_add(count, std::memory_order_relaxed) + count < limit) return;
    if (!risen_.exchange(true)) rise();
  }

 protected:
  virtual void rise() noexcept = 0;  // called once; may call use()
  void use(const Op* ops) { ops_.store(ops, std::memory_order_release); }

 private:
  std::atomic<const Op*> ops_;
  std::atomic<uint64_t> heat_{0};
  std::atomic<bool> risen_{false};
};

// Returns null if this build or this CPU has no compiler. Defined in compile/.
std::shared_ptr<Tiering> make_tiering(const Program& program);

// For Settings::compile_after.
constexpr uint64_t kNeverCompile = ~uint64_t{0};

}  // namespace kiln::engine
