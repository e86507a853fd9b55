// SPDX-License-Identifier: Apache-2.0
// How does work get into a stream, and into a capture?
#include "engine/cudart/streams.h"

#include <fmt/format.h>

#include "engine/cudart/fork.h"
#include "engine/cudart/state.h"
#include "engine/machine/fault.h"

namespace kiln::engine {

Handles& handles() {
  static auto* kept = new Handles;
  return *kept;
}

void fork_handles(ForkPhase phase) { hold(handles().mutex, phase); }

Stream* stream_of(const void* handle) {
  constexpr uintptr_t kReserved = 2;  // cudaStreamLegacy and cudaStreamPerThread are 1 and 2
  if (reinterpret_cast<uintptr_t>(handle) <= kReserved) {
    static auto* kept = new Stream[kReserved + 1];
    return &kept[reinterpret_cast<uintptr_t>(handle)];
  }
  std::lock_guard lock(handles().mutex);
  return handles().streams.count(handle) ? static_cast<Stream*>(const_cast<void*>(handle))
                                         : nullptr;
}

bool is_event(const void* handle) {
  std::lock_guard lock(handles().mutex);
  return handle && handles().events.count(handle);
}

int bad_stream() { return fail(kInvalidResourceHandle, "this is not a live stream"); }
int bad_event() { return fail(kInvalidResourceHandle, "this is not a live event"); }

bool is_capturing(const void* handle) {
  std::lock_guard lock(handles().mutex);
  Stream* stream = stream_of(handle);
  return stream && stream->capture;
}

int check_not_capturing(const void* handle, const char* what) {
  std::lock_guard lock(handles().mutex);
  Stream* stream = stream_of(handle);
  if (!stream || !stream->capture) return kSuccess;
  stream->capture->invalid = true;
  return fail(kStreamCaptureUnsupported,
              fmt::format("{} is not allowed while its stream is being captured", what));
}

int submit(const void* handle, Work work) {
  {
    std::lock_guard lock(handles().mutex);
    Stream* stream = stream_of(handle);
    if (!stream) return bad_stream();
    if (stream->capture) {
      if (stream->capture->invalid)
        return fail(kStreamCaptureInvalidated, "an earlier call made this capture invalid");
      try {
        stream->tail = {stream->capture->graph->add(std::move(work), stream->tail)};
      } catch (const std::bad_alloc&) {
        stream->capture->invalid = true;  // otherwise its graph would run without this work
        throw;
      }
      return kSuccess;
    }
  }
  return perform(work, handle);
}

}  // namespace kiln::engine
