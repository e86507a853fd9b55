// SPDX-License-Identifier: Apache-2.0
// How do calls of the host reach a watcher? In the order in which they are made, and between
// launches: a watcher that cannot merge gets one event at a time.
#pragma once

#include <utility>

#include "engine/machine/device.h"
#include "engine/machine/events.h"

namespace kiln::engine {

// A launch's hold of a sink that cannot merge. What other threads did meanwhile is delivered when
// it ends: they must not wait for it, for its kernel may wait for them.
class WatchedTurn {
 public:
  WatchedTurn(Device& device, Sink* sink);
  ~WatchedTurn();
  WatchedTurn(const WatchedTurn&) = delete;
  WatchedTurn& operator=(const WatchedTurn&) = delete;

 private:
  Device& device_;
  Sink* sink_;  // null: nobody watches, or it can merge
};

// Who watches the calls of this process' host; null: nobody.
Sink* host_sink();
void deliver_host(Sink& sink, HostEvent event);

// 0: the default stream, 1: the one that each thread has, else Stream::id.
uint64_t stream_number(const void* handle);
// Of the calling thread.
uint32_t host_thread();

// Builds the event only where somebody wants it.
template <class Fill>
void watch_host(HostKind kind, const void* stream, Fill fill) {
  Sink* sink = host_sink();
  if (!sink) return;
  HostEvent event;
  event.kind = kind;
  event.stream = stream_number(stream);
  fill(event);
  deliver_host(*sink, std::move(event));
}
inline void watch_host(HostKind kind, const void* stream) {
  watch_host(kind, stream, [](HostEvent&) {});
}

void watch_allocation(const char* call, const void* at, uint64_t bytes, AllocationKind memory,
                      const void* stream, bool waits, bool registered = false);
// Before the memory goes. `code`: the call is refused.
void watch_free(const char* call, const void* at, uint64_t bytes, const void* stream, bool waits,
                int code, bool registered = false);
}  // namespace kiln::engine
