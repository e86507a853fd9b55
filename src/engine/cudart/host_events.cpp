// SPDX-License-Identifier: Apache-2.0
#include "engine/cudart/host_events.h"

#include <atomic>

#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"

namespace kiln::engine {
namespace {

// Requires `watching`. If there is no memory, events are lost, but the program continues.
void deliver_pending(Device& device, Sink& sink) noexcept {
  std::vector<std::function<void(Sink&)>> events;
  {
    std::lock_guard lock(device.pending_mutex);
    events.swap(device.pending);
  }
  try {
    for (const auto& event : events) event(sink);
  } catch (const std::bad_alloc&) {
  }
}

bool has_pending(Device& device) {
  std::lock_guard lock(device.pending_mutex);
  return !device.pending.empty();
}

// Releases `watching`. Events that arrived while it was held were left to the holder.
void end_turn(Device& device, Sink& sink) {
  for (;;) {
    deliver_pending(device, sink);
    device.watching.unlock();
    if (!has_pending(device) || !device.watching.try_lock()) return;
  }
}

}  // namespace

WatchedTurn::WatchedTurn(Device& device, Sink* sink)
    : device_(device), sink_(sink && !sink->can_merge() ? sink : nullptr) {
  if (!sink_) return;
  device_.watching.lock();
  deliver_pending(device_, *sink_);
}

WatchedTurn::~WatchedTurn() {
  if (sink_) end_turn(device_, *sink_);
}

Sink* host_sink() {
  // Remembers that watched() was called: its call_once() is too expensive for short calls.
  static std::atomic<bool> asked{false};
  Device& device = state().device;
  if (!asked.load(std::memory_order_acquire)) {
    device.watched();
    asked.store(true, std::memory_order_release);
  }
  Sink* sink = device.sink;
  return sink && (sink->wanted() & kHostEvents) ? sink : nullptr;
}

void deliver_host(Sink& sink, HostEvent event) {
  event.thread = host_thread();
  if (sink.can_merge()) {
    sink.on(event);
    return;
  }
  Device& device = state().device;
  {
    std::lock_guard lock(device.pending_mutex);
    device.pending.push_back([kept = std::move(event)](Sink& to) { to.on(kept); });
  }
  if (device.watching.try_lock()) end_turn(device, sink);
}

uint64_t stream_number(const void* handle) {
  constexpr uintptr_t kPerThread = 2;
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  if (bits <= kPerThread) return bits == kPerThread ? 1 : 0;
  const Stream* stream = stream_of(handle);
  return stream ? stream->id : bits;
}

uint32_t host_thread() {
  static std::atomic<uint32_t> next{0};
  thread_local const uint32_t number = next.fetch_add(1);
  return number;
}

void watch_allocation(const char* call, const void* at, uint64_t bytes, AllocationKind memory,
                      const void* stream, bool waits, bool registered) {
  watch_host(HostKind::Allocate, stream, [&](HostEvent& event) {
    event.to.at = reinterpret_cast<uint64_t>(at);
    event.width = bytes;
    event.memory = memory;
    event.waits = waits;
    event.registered = registered;
    event.call = call;
  });
}

void watch_free(const char* call, const void* at, uint64_t bytes, const void* stream, bool waits,
                int code, bool registered) {
  watch_host(HostKind::Free, stream, [&](HostEvent& event) {
    event.to.at = reinterpret_cast<uint64_t>(at);
    event.width = bytes;
    event.waits = waits;
    event.code = code;
    event.registered = registered;
    event.call = call;
  });
}

}  // namespace kiln::engine
