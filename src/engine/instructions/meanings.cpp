// SPDX-License-Identifier: Apache-2.0
// Which handlers does the compiler know? Needed when a program has run long enough to be compiled.
#include "engine/decode/meanings.h"

#include <atomic>
#include <memory>

namespace kiln::engine {
namespace {

std::unique_ptr<const Meanings> describe_all() {
  auto all = std::make_unique<Meanings>();
  describe_float(*all);
  describe_rounded(*all);
  describe_integer(*all);
  describe_bits(*all);
  describe_compare(*all);
  describe_select(*all);
  describe_convert(*all);
  describe_memory(*all);
  describe_atomic(*all);
  describe_move(*all);
  describe_control(*all);
  describe_warp(*all);
  describe_matrix(*all);
  return all;
}

}  // namespace

void Meanings::add(Handler handler, Meaning meaning, const OfFloats& floats) {
  meaning.floats = floats;
  rows_.emplace(handler, meaning);
}

// Not a function-local static: if a thread forks while another one initialises it, the child would
// wait for a thread that it does not have. Two threads may both create the table; one of them is
// used.
const Meaning* meaning_of(Handler handler) {
  static std::atomic<const Meanings*> known{nullptr};
  const Meanings* all = known.load(std::memory_order_acquire);
  if (!all) {
    auto made = describe_all();
    all = known.compare_exchange_strong(all, made.get()) ? made.release() : all;
  }
  return all->find(handler);
}

}  // namespace kiln::engine
