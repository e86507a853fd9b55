// SPDX-License-Identifier: Apache-2.0
// What are streams, events and captures in the engine? Work is finished when submit() returns,
// unless its stream is being captured: then it becomes a node of the graph.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "engine/cudart/graph.h"
#include "engine/cudart/work.h"

namespace kiln::engine {

struct Stream;

// One cudaStreamBeginCapture, with all streams that have joined it.
struct Capture {
  std::shared_ptr<Graph> graph;
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  std::vector<Node*> tails_of_destroyed;  // the last nodes of streams that were destroyed
  unsigned long long id = 0;
  bool invalid = false;
  int mode = 0;
  bool into_existing = false;  // cudaStreamBeginCaptureToGraph: the graph belongs to the caller
};

struct Stream {
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  std::shared_ptr<Capture> capture;
  std::vector<Node*> tail;  // the dependencies of the next captured work
};

struct CudaEvent {
  uint64_t id = 0;  // unique in the process, because handles are reused
  bool recorded = false;
  bool timed = true;
  std::chrono::steady_clock::time_point at;
  std::shared_ptr<Capture> capture;  // of a stream that was being captured when it was recorded
  std::vector<Node*> tail;
};

// All live handles: an invalid one is an error and not a crash.
struct Handles {
  std::recursive_mutex mutex;
  std::set<const void*> streams, events, executables;
  std::map<const void*, std::shared_ptr<Graph>> graphs;
};
Handles& handles();

// Null, cudaStreamLegacy and cudaStreamPerThread have records of their own. Returns null if the
// handle is not a stream.
Stream* stream_of(const void* handle);
bool is_event(const void* handle);
int bad_stream();
int bad_event();

// Runs the work now, or adds it to the capture of the stream.
int submit(const void* stream, Work work);
bool is_capturing(const void* stream);
// For calls that CUDA forbids while that stream is captured: makes the capture invalid.
int check_not_capturing(const void* stream, const char* what);

}  // namespace kiln::engine
