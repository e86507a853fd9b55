// SPDX-License-Identifier: Apache-2.0
// Who keeps what is costly to make and used by one thread after the other?
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace kiln::engine {

// The one that nobody uses, or a new one. No lock and nothing of a thread: a fork may come at any
// time, and its child makes another one.
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
