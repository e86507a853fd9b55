// SPDX-License-Identifier: Apache-2.0
// How do calls of the host reach a watcher? In the order in which they are made, and between
// launches: a watcher that cannot merge gets one event at a time.
#pragma once

#include <utility>

#include "engine/machine/device.h"
#include "engine/machine/events.h"

namespace kiln::engine {

// Holds a sink that cannot merge for one launch, and delivers the events of other threads when the
// launch ends. Those threads do not wait for it, because its kernel may wait for them.
class WatchedTurn {
 public:
  WatchedTurn(Device& device, Sink* sink);
  ~WatchedTurn();
  WatchedTurn(const WatchedTurn&) = delete;
  WatchedTurn& operator=(const WatchedTurn&) = delete;

 private:
  Device& device_;
  Sink* sink_;  // null: not watched, or the sink can merge
};

// The sink for calls of the host in this process; null: none.
Sink* host_sink();
void deliver_host(Sink& sink, HostEvent event);

// 0: the default stream; 1: the per-thread default stream; otherwise Stream::id.
uint64_t stream_number(const void* handle);
// The number of the calling thread.
uint32_t host_thread();

// Builds the event only if somebody wants it.
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
// Called before the memory is freed. `code`: the call is refused.
void watch_free(const char* call, const void* at, uint64_t bytes, const void* stream, bool waits,
                int code, bool registered = false);
}  // namespace kiln::engine
