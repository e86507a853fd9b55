// SPDX-License-Identifier: Apache-2.0
// What do the calls about streams and events do? Work is finished when its call returns, so it is
// always in order; events measure real time.
#include <atomic>
#include <chrono>

#include "engine/cudart/host_events.h"
#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

constexpr unsigned kNonBlocking = 1;

int create_stream(Stream** out, unsigned flags, int priority) {
  if (!out) return fail(kInvalidValue, "the output pointer for the stream is null");
  static std::atomic<unsigned long long> next_id{2};  // 0 and 1: the default streams
  auto* stream = new Stream;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = next_id++;
  std::lock_guard lock(handles().mutex);
  handles().streams.insert(stream);
  *out = stream;
  watch_host(HostKind::StreamCreate, stream,
             [&](HostEvent& event) { event.nonblocking = flags & kNonBlocking; });
  return kSuccess;
}
int stream_create(Stream** out) { return create_stream(out, 0, 0); }
int stream_create_with_flags(Stream** out, unsigned flags) {
  return flags > 1 ? fail(kInvalidValue, "cudaStreamCreateWithFlags: flags must be 0 or 1")
                   : create_stream(out, flags, 0);
}
int stream_create_with_priority(Stream** out, unsigned flags, int priority) {
  constexpr int kGreatest = -5;  // as cudaDeviceGetStreamPriorityRange reports
  return create_stream(out, flags, priority > 0 ? 0 : priority < kGreatest ? kGreatest : priority);
}
int stream_destroy(Stream* stream) {
  std::lock_guard lock(handles().mutex);
  if (!handles().streams.count(stream)) return bad_stream();
  watch_host(HostKind::StreamDestroy, stream);
  handles().streams.erase(stream);
  if (auto capture = stream->capture) {
    capture->streams.erase(stream);
    capture->tails_of_destroyed.insert(capture->tails_of_destroyed.end(), stream->tail.begin(),
                                       stream->tail.end());
    if (capture->origin == stream) {
      capture->invalid = true;
      for (Stream* other : capture->streams) {
        other->tail.clear();
        other->capture.reset();
      }
    }
  }
  delete stream;
  return kSuccess;
}
int wait_for_stream(Stream* stream, const char* what) {
  if (!stream_of(stream)) return bad_stream();
  if (int code = check_not_capturing(stream, what)) return code;
  watch_host(HostKind::StreamSynchronize, stream, [](HostEvent& event) { event.waits = true; });
  return kSuccess;
}
int stream_synchronize(Stream* stream) { return wait_for_stream(stream, "cudaStreamSynchronize"); }
int stream_query(Stream* stream) { return wait_for_stream(stream, "cudaStreamQuery"); }
int stream_get_flags(Stream* handle, unsigned* flags) {
  Stream* stream = stream_of(handle);
  if (!stream) return bad_stream();
  if (!flags) return fail(kInvalidValue, "the output pointer for the flags is null");
  *flags = stream->flags;
  return kSuccess;
}
int stream_get_priority(Stream* handle, int* priority) {
  Stream* stream = stream_of(handle);
  if (!stream) return bad_stream();
  if (!priority) return fail(kInvalidValue, "the output pointer for the priority is null");
  *priority = stream->priority;
  return kSuccess;
}
int stream_get_id(Stream* handle, unsigned long long* id) {
  Stream* stream = stream_of(handle);
  if (!stream) return bad_stream();
  if (!id) return fail(kInvalidValue, "the output pointer for the id is null");
  *id = stream->id;
  return kSuccess;
}
int stream_get_device(Stream* stream, int* device) {
  if (!stream_of(stream)) return bad_stream();
  *device = 0;
  return kSuccess;
}
// Access policies of the L2 cache and similar attributes are hints.
int stream_set_attribute(Stream* stream, int, const void*) {
  return stream_of(stream) ? kSuccess : bad_stream();
}
int stream_copy_attributes(Stream* to, Stream* from) {
  return stream_of(to) && stream_of(from) ? kSuccess : bad_stream();
}

int launch_host_function(Stream* stream, HostFunction function, void* argument) {
  if (!function) return fail(kInvalidValue, "cudaLaunchHostFunc: the function is null");
  return submit(stream, HostCall{function, argument});
}
using StreamCallback = void (*)(Stream*, int, void*);
int stream_add_callback(Stream* stream, StreamCallback function, void* argument, unsigned flags) {
  if (!stream_of(stream)) return bad_stream();
  if (!function || flags)
    return fail(kInvalidValue, "cudaStreamAddCallback: the function is null, or flags are not 0");
  if (int code = check_not_capturing(stream, "cudaStreamAddCallback")) return code;
  watch_host(HostKind::Call, stream);
  return call_host([&] { function(stream, kept_fault(), argument); });
}

// ---- Events

enum : unsigned { kDisableTiming = 2, kInterprocess = 4, kRecordExternal = 1, kWaitExternal = 1 };

int event_create_with_flags(CudaEvent** out, unsigned flags) {
  if (!out) return fail(kInvalidValue, "the output pointer for the event is null");
  if (flags & kInterprocess)
    return fail(kNotSupported, "events for other processes are not supported on the engine");
  static std::atomic<uint64_t> next_id{1};
  auto* event = new CudaEvent;
  event->id = next_id++;
  event->timed = !(flags & kDisableTiming);
  std::lock_guard lock(handles().mutex);
  handles().events.insert(event);
  *out = event;
  return kSuccess;
}
int event_create(CudaEvent** out) { return event_create_with_flags(out, 0); }
int event_destroy(CudaEvent* event) {
  std::lock_guard lock(handles().mutex);
  if (!handles().events.erase(event)) return bad_event();
  delete event;
  return kSuccess;
}
int event_record_with_flags(CudaEvent* event, Stream* handle, unsigned flags) {
  std::lock_guard lock(handles().mutex);
  if (!is_event(event)) return bad_event();
  Stream* stream = stream_of(handle);
  if (!stream) return bad_stream();
  if (stream->capture && !(flags & kRecordExternal)) {
    event->capture = stream->capture;
    event->tail = stream->tail;
    return kSuccess;
  }
  event->capture.reset();
  event->tail.clear();
  return submit(handle, RecordWork{event});
}
int event_record(CudaEvent* event, Stream* stream) {
  return event_record_with_flags(event, stream, 0);
}
int stream_wait_event(Stream* handle, CudaEvent* event, unsigned flags) {
  std::lock_guard lock(handles().mutex);
  Stream* stream = stream_of(handle);
  if (!stream) return bad_stream();
  if (!is_event(event)) return bad_event();
  if (flags & kWaitExternal) return submit(handle, WaitWork{event});
  if (!event->capture) {
    if (!stream->capture && event->recorded) return submit(handle, WaitWork{event});
    return kSuccess;
  }
  // The stream joins the capture in which the event was recorded.
  if (stream->capture && stream->capture != event->capture) {
    stream->capture->invalid = event->capture->invalid = true;
    return fail(kStreamCaptureMerge, "the event belongs to another capture than the stream");
  }
  if (!stream->capture) {
    stream->capture = event->capture;
    stream->tail.clear();
    event->capture->streams.insert(stream);
  }
  for (Node* node : event->tail) {
    bool known = false;
    for (Node* own : stream->tail) known = known || own == node;
    if (!known) stream->tail.push_back(node);
  }
  return kSuccess;
}
int check_event(CudaEvent* event) {
  std::lock_guard lock(handles().mutex);
  if (!is_event(event)) return bad_event();
  if (event->capture) return fail(kCapturedEvent, "the event was last recorded in a capture");
  watch_host(HostKind::EventSynchronize, nullptr, [&](HostEvent& out) {
    out.event = event->id;
    out.waits = true;
  });
  return kSuccess;
}
int event_synchronize(CudaEvent* event) { return check_event(event); }
int event_query(CudaEvent* event) { return check_event(event); }
int event_elapsed_time(float* milliseconds, CudaEvent* start, CudaEvent* stop) {
  if (!milliseconds) return fail(kInvalidValue, "the output pointer for the time is null");
  std::lock_guard lock(handles().mutex);
  if (!is_event(start) || !is_event(stop)) return bad_event();
  if (!start->recorded || !stop->recorded || !start->timed || !stop->timed) {
    return fail(kInvalidResourceHandle,
                "both events must have been recorded, and created with timing");
  }
  *milliseconds = std::chrono::duration<float, std::milli>(stop->at - start->at).count();
  return kSuccess;
}

}  // namespace

std::span<const RuntimeFunction> runtime_streams() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaStreamCreate", entry<&stream_create>()},
      {"cudaStreamCreateWithFlags", entry<&stream_create_with_flags>()},
      {"cudaStreamCreateWithPriority", entry<&stream_create_with_priority>()},
      {"cudaStreamDestroy", entry<&stream_destroy>()},
      {"cudaStreamSynchronize", waits<&stream_synchronize>()},
      {"cudaStreamQuery", waits<&stream_query>()},
      {"cudaStreamWaitEvent", behind<&stream_wait_event>()},
      {"cudaStreamGetFlags", entry<&stream_get_flags>()},
      {"cudaStreamGetPriority", entry<&stream_get_priority>()},
      {"cudaStreamGetId", entry<&stream_get_id>()},
      {"cudaStreamGetDevice", entry<&stream_get_device>()},
      {"cudaStreamSetAttribute", entry<&stream_set_attribute>()},
      {"cudaStreamCopyAttributes", entry<&stream_copy_attributes>()},
      {"cudaStreamAddCallback", always<&stream_add_callback>()},
      {"cudaLaunchHostFunc", behind<&launch_host_function>()},
      {"cudaEventCreate", entry<&event_create>()},
      {"cudaEventCreateWithFlags", entry<&event_create_with_flags>()},
      {"cudaEventDestroy", entry<&event_destroy>()},
      {"cudaEventRecord", behind<&event_record>()},
      {"cudaEventRecordWithFlags", behind<&event_record_with_flags>()},
      {"cudaEventSynchronize", waits<&event_synchronize>()},
      {"cudaEventQuery", waits<&event_query>()},
      {"cudaEventElapsedTime", entry<&event_elapsed_time>()},
      {"cudaEventElapsedTime_v2", entry<&event_elapsed_time>()},
  };
  return kFunctions;
}

}  // namespace kiln::engine
