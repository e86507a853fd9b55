// SPDX-License-Identifier: Apache-2.0
// How does the work of a stream become a graph?
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

enum Status : int { kNone = 0, kActive = 1, kInvalidated = 2 };

int begin(Stream* handle, std::shared_ptr<Graph> graph, std::vector<Node*> tail, int mode,
          bool existing) {
  static std::atomic<unsigned long long> next_id{1};
  std::lock_guard lock(handles().mutex);
  if (reinterpret_cast<uintptr_t>(handle) <= 1) {
    return fail(kStreamCaptureUnsupported,
                "the legacy default stream cannot be captured; use another stream");
  }
  Stream* stream = stream_of(handle);
  if (!stream) return bad_stream();
  if (mode < 0 || mode > 2)
    return fail(kInvalidValue, fmt::format("unknown capture mode {}", mode));
  if (stream->capture) return fail(kIllegalState, "this stream is already being captured");
  auto capture = std::make_shared<Capture>();
  capture->graph = std::move(graph);
  capture->origin = stream;
  capture->streams = {stream};
  capture->id = next_id++;
  capture->mode = mode;
  capture->into_existing = existing;
  stream->capture = std::move(capture);
  stream->tail = std::move(tail);
  return kSuccess;
}
int begin_capture(Stream* stream, int mode) {
  return begin(stream, std::make_shared<Graph>(), {}, mode, false);
}
int begin_capture_to_graph(Stream* stream, Graph* graph, Node* const* before, const EdgeData*,
                           size_t count, int mode) {
  std::lock_guard lock(handles().mutex);
  if (!handles().graphs.count(graph)) return fail(kInvalidValue, "this is not a live graph");
  std::shared_ptr<Graph> borrowed(graph, [](Graph*) {});
  return begin(stream, std::move(borrowed), {before, before + count}, mode, true);
}

// Every stream that joined must have been joined back into the origin.
bool joined(const Capture& capture) {
  std::set<const Node*> seen;
  std::vector<const Node*> next(capture.origin->tail.begin(), capture.origin->tail.end());
  while (!next.empty()) {
    const Node* node = next.back();
    next.pop_back();
    if (!seen.insert(node).second) continue;
    next.insert(next.end(), node->before.begin(), node->before.end());
  }
  auto all_seen = [&](const std::vector<Node*>& tail) {
    return std::all_of(tail.begin(), tail.end(),
                       [&](const Node* node) { return seen.count(node) != 0; });
  };
  return all_seen(capture.tails_of_destroyed) &&
         std::all_of(capture.streams.begin(), capture.streams.end(),
                     [&](const Stream* s) { return all_seen(s->tail); });
}

int end_capture(Stream* handle, Graph** out) {
  std::lock_guard lock(handles().mutex);
  Stream* stream = stream_of(handle);
  if (!stream) return bad_stream();
  if (out) *out = nullptr;
  if (!stream->capture) return fail(kIllegalState, "this stream is not being captured");
  auto capture = stream->capture;
  if (capture->origin != stream) {
    capture->invalid = true;
    return fail(kStreamCaptureUnmatched, "the capture began in another stream");
  }
  const bool whole = joined(*capture);
  for (Stream* other : capture->streams) {
    other->capture.reset();
    other->tail.clear();
  }
  if (capture->invalid) return fail(kStreamCaptureInvalidated, "a call made this capture invalid");
  if (!whole)
    return fail(kStreamCaptureUnjoined, "a stream that joined the capture was not joined back");
  if (capture->into_existing) {
    if (out) *out = capture->graph.get();
    return kSuccess;
  }
  if (!out) return fail(kInvalidValue, "the output pointer for the graph is null");
  *out = capture->graph.get();
  handles().graphs[*out] = capture->graph;
  return kSuccess;
}

int is_capturing_call(Stream* handle, int* status) {
  std::lock_guard lock(handles().mutex);
  Stream* stream = stream_of(handle);
  if (!stream) return bad_stream();
  if (!status) return fail(kInvalidValue, "the output pointer for the status is null");
  *status = !stream->capture ? kNone : stream->capture->invalid ? kInvalidated : kActive;
  return kSuccess;
}
int capture_info(Stream* handle, int* status, unsigned long long* id, Graph** graph,
                 Node* const** before, const EdgeData** edges, size_t* count) {
  std::lock_guard lock(handles().mutex);
  if (int code = is_capturing_call(handle, status)) return code;
  if (*status != kActive) return kSuccess;
  Stream* stream = stream_of(handle);
  if (id) *id = stream->capture->id;
  if (graph) *graph = stream->capture->graph.get();
  if (before) *before = stream->tail.data();
  if (edges) *edges = nullptr;
  if (count) *count = stream->tail.size();
  return kSuccess;
}
// flags: 0 adds to the dependencies of the next work, 1 replaces them.
int update_dependencies(Stream* handle, Node** nodes, const EdgeData*, size_t count,
                        unsigned flags) {
  std::lock_guard lock(handles().mutex);
  Stream* stream = stream_of(handle);
  if (!stream) return bad_stream();
  if (!stream->capture) return fail(kIllegalState, "this stream is not being captured");
  if (flags & 1) stream->tail.clear();
  stream->tail.insert(stream->tail.end(), nodes, nodes + count);
  return kSuccess;
}
int exchange_mode(int* mode) {
  thread_local int current = 0;
  if (!mode || *mode < 0 || *mode > 2) return fail(kInvalidValue, "unknown capture mode");
  std::swap(*mode, current);
  return kSuccess;
}

}  // namespace

std::span<const RuntimeFunction> runtime_capture() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaStreamBeginCapture", entry<&begin_capture>()},
      {"cudaStreamBeginCaptureToGraph", entry<&begin_capture_to_graph>()},
      {"cudaStreamEndCapture", entry<&end_capture>()},
      {"cudaStreamIsCapturing", entry<&is_capturing_call>()},
      {"cudaStreamGetCaptureInfo", entry<&capture_info>()},
      {"cudaStreamUpdateCaptureDependencies", entry<&update_dependencies>()},
      {"cudaThreadExchangeStreamCaptureMode", entry<&exchange_mode>()},
  };
  return kFunctions;
}

}  // namespace kiln::engine
