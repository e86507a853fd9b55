// SPDX-License-Identifier: Apache-2.0
// What are streams and events on the engine? A launch is finished when it returns, so order is kept by itself; events
// tell real times.
#include <chrono>
#include <mutex>
#include <set>

#include "engine/fault.h"
#include "engine/runtime.h"
#include "engine/state.h"

namespace kiln::engine {
namespace {

struct Stream {
  unsigned flags = 0;
  int priority = 0;
};
struct Event {
  bool recorded = false;
  bool timed = true;
  std::chrono::steady_clock::time_point at;
};

// The handles that are alive: a wrong one is an error and not a crash.
struct Handles {
  std::mutex mutex;
  std::set<const void*> alive;
};
Handles& handles() {
  static Handles* kept = new Handles;
  return *kept;
}

// Null, cudaStreamLegacy and cudaStreamPerThread are always there.
bool is_stream(const void* stream) {
  if (reinterpret_cast<uintptr_t>(stream) <= 2) return true;
  std::lock_guard lock(handles().mutex);
  return handles().alive.count(stream);
}
bool is_event(const void* event) {
  std::lock_guard lock(handles().mutex);
  return event && handles().alive.count(event);
}
int bad_stream() { return fail(kInvalidResourceHandle, "this is no stream that is alive"); }
int bad_event() { return fail(kInvalidResourceHandle, "this is no event that is alive"); }

template <class T>
int make(T** out, T value) {
  if (!out) return fail(kInvalidValue, "the place for the handle is null");
  *out = new T(value);
  std::lock_guard lock(handles().mutex);
  handles().alive.insert(*out);
  return kSuccess;
}
template <class T>
bool destroy(T* handle) {
  {
    std::lock_guard lock(handles().mutex);
    if (!handles().alive.erase(handle)) return false;
  }
  delete handle;
  return true;
}

int stream_create(Stream** out) { return make(out, Stream{}); }
int stream_create_with_flags(Stream** out, unsigned flags) { return make(out, Stream{flags, 0}); }
int stream_create_with_priority(Stream** out, unsigned flags, int priority) {
  return make(out, Stream{flags, priority});
}
int stream_destroy(Stream* stream) { return destroy(stream) ? kSuccess : bad_stream(); }
int stream_synchronize(Stream* stream) { return is_stream(stream) ? kSuccess : bad_stream(); }
int stream_query(Stream* stream) { return is_stream(stream) ? kSuccess : bad_stream(); }
int stream_wait_event(Stream* stream, Event* event, unsigned) {
  if (!is_stream(stream)) return bad_stream();
  return is_event(event) ? kSuccess : bad_event();
}
int stream_get_flags(Stream* stream, unsigned* flags) {
  if (!is_stream(stream)) return bad_stream();
  *flags = reinterpret_cast<uintptr_t>(stream) <= 2 ? 0 : stream->flags;
  return kSuccess;
}
int stream_get_priority(Stream* stream, int* priority) {
  if (!is_stream(stream)) return bad_stream();
  *priority = reinterpret_cast<uintptr_t>(stream) <= 2 ? 0 : stream->priority;
  return kSuccess;
}
int stream_is_capturing(Stream* stream, int* status) {
  if (!is_stream(stream)) return bad_stream();
  *status = 0;
  return kSuccess;
}
int stream_get_capture_info(Stream* stream, int* status, unsigned long long* id, ...) {
  if (!is_stream(stream)) return bad_stream();
  if (status) *status = 0;
  if (id) *id = 0;
  return kSuccess;
}
int stream_get_device(Stream* stream, int* device) {
  if (!is_stream(stream)) return bad_stream();
  *device = 0;
  return kSuccess;
}
using HostFunction = void (*)(void*);
int launch_host_function(Stream* stream, HostFunction function, void* argument) {
  if (!is_stream(stream)) return bad_stream();
  function(argument);
  return kSuccess;
}
using StreamCallback = void (*)(Stream*, int, void*);
int stream_add_callback(Stream* stream, StreamCallback function, void* argument, unsigned) {
  if (!is_stream(stream)) return bad_stream();
  function(stream, kSuccess, argument);
  return kSuccess;
}

constexpr unsigned kDisableTiming = 2;
int event_create(Event** out) { return make(out, Event{}); }
int event_create_with_flags(Event** out, unsigned flags) {
  return make(out, Event{false, !(flags & kDisableTiming), {}});
}
int event_destroy(Event* event) { return destroy(event) ? kSuccess : bad_event(); }
int event_record(Event* event, Stream* stream) {
  if (!is_event(event)) return bad_event();
  if (!is_stream(stream)) return bad_stream();
  event->recorded = true;
  event->at = std::chrono::steady_clock::now();
  return kSuccess;
}
int event_record_with_flags(Event* event, Stream* stream, unsigned) { return event_record(event, stream); }
int event_synchronize(Event* event) { return is_event(event) ? kSuccess : bad_event(); }
int event_query(Event* event) { return is_event(event) ? kSuccess : bad_event(); }
int event_elapsed_time(float* milliseconds, Event* start, Event* stop) {
  if (!milliseconds) return fail(kInvalidValue, "the place for the time is null");
  if (!is_event(start) || !is_event(stop)) return bad_event();
  if (!start->recorded || !stop->recorded || !start->timed || !stop->timed) {
    return fail(kInvalidResourceHandle, "both events must have been recorded, and made with timing");
  }
  *milliseconds = std::chrono::duration<float, std::milli>(stop->at - start->at).count();
  return kSuccess;
}

constexpr auto address = [](auto* function) { return reinterpret_cast<void*>(function); };

}  // namespace

std::span<const RuntimeFunction> runtime_streams() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaStreamCreate", address(stream_create)},
      {"cudaStreamCreateWithFlags", address(stream_create_with_flags)},
      {"cudaStreamCreateWithPriority", address(stream_create_with_priority)},
      {"cudaStreamDestroy", address(stream_destroy)},
      {"cudaStreamSynchronize", address(stream_synchronize)},
      {"cudaStreamQuery", address(stream_query)},
      {"cudaStreamWaitEvent", address(stream_wait_event)},
      {"cudaStreamGetFlags", address(stream_get_flags)},
      {"cudaStreamGetPriority", address(stream_get_priority)},
      {"cudaStreamIsCapturing", address(stream_is_capturing)},
      {"cudaStreamGetCaptureInfo", address(stream_get_capture_info)},
      {"cudaStreamGetDevice", address(stream_get_device)},
      {"cudaStreamAddCallback", address(stream_add_callback)},
      {"cudaLaunchHostFunc", address(launch_host_function)},
      {"cudaEventCreate", address(event_create)},
      {"cudaEventCreateWithFlags", address(event_create_with_flags)},
      {"cudaEventDestroy", address(event_destroy)},
      {"cudaEventRecord", address(event_record)},
      {"cudaEventRecordWithFlags", address(event_record_with_flags)},
      {"cudaEventSynchronize", address(event_synchronize)},
      {"cudaEventQuery", address(event_query)},
      {"cudaEventElapsedTime", address(event_elapsed_time)},
      {"cudaEventElapsedTime_v2", address(event_elapsed_time)},
  };
  return kFunctions;
}

}  // namespace kiln::engine
