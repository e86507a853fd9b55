// SPDX-License-Identifier: Apache-2.0
// What are streams, events and a capture on the engine? Work is finished when submit() returns,
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

// One cudaStreamBeginCapture and all streams that joined it.
struct Capture {
  std::shared_ptr<Graph> graph;
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  std::vector<Node*> tails_of_destroyed;  // what streams had last that are gone
  unsigned long long id = 0;
  bool invalid = false;
  int mode = 0;
  bool into_existing = false;  // cudaStreamBeginCaptureToGraph: the graph is the caller's
};

struct Stream {
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  std::shared_ptr<Capture> capture;
  std::vector<Node*> tail;  // what the next captured work depends on
};

struct CudaEvent {
  uint64_t id = 0;  // of its own, in the process: a handle can come back
  bool recorded = false;
  bool timed = true;
  std::chrono::steady_clock::time_point at;
  std::shared_ptr<Capture> capture;  // recorded in a stream that was being captured
  std::vector<Node*> tail;
};

// The handles that are alive: a wrong one is an error and not a crash.
struct Handles {
  std::recursive_mutex mutex;
  std::set<const void*> streams, events, executables;
  std::map<const void*, std::shared_ptr<Graph>> graphs;
};
Handles& handles();

// Null, cudaStreamLegacy and cudaStreamPerThread have a record of their own. Null: this is not
// a stream.
Stream* stream_of(const void* handle);
bool is_event(const void* handle);
int bad_stream();
int bad_event();

// Now, or into the capture of the stream.
int submit(const void* stream, Work work);
bool is_capturing(const void* stream);
// For calls that CUDA forbids during a capture of that stream: the capture becomes invalid.
int check_not_capturing(const void* stream, const char* what);

}  // namespace kiln::engine
