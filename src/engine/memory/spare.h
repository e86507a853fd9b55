// SPDX-License-Identifier: Apache-2.0
// How do threads reuse an object that is expensive to make? One unused object is kept for the next
// thread that needs one.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace kiln::engine {

// take() returns the unused object, or a new one. There is no lock and no state of a thread, so a
// fork may happen at any time; its child makes another object.
template <class T>
struct Spare {
  static std::unique_ptr<T> take() {
    std::unique_ptr<T> one(kept().exchange(nullptr));
    return one ? std::move(one) : std::make_unique<T>();
  }
  static void give_back(std::unique_ptr<T> one) {
    T* none = nullptr;
    if (kept().compare_exchange_strong(none, one.get())) (void)one.release();
  }

 private:
  static std::atomic<T*>& kept() {
    static constinit std::atomic<T*> spare{nullptr};
    return spare;
  }
};

}  // namespace kiln::engine
