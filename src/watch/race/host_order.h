// SPDX-License-Identifier: Apache-2.0
// What has happened before what, between launches? Streams, events, graphs, and what the host
// waited for. Each launch, copy and fill has a number in its stream, and knows of each stream the
// last one that came before it.
//
// Threads of the host count as one: how they wait for each other is not seen, and a wrong guess
// would report correct programs.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "engine/machine/events.h"

namespace kiln::watch::race {

class HostOrder {
 public:
  struct Operation {
    uint32_t first_uid = 0;  // of its blocks
    uint32_t stream = 0, number = 0;
    uint64_t launch = 0;       // its number; 0: a copy or a fill
    uint64_t stream_name = 0;  // as events name it
  };

  // An operation with `uids` blocks in a stream. `waits`: the host waits until it is done.
  const Operation& begin(uint64_t stream, uint32_t uids, uint64_t launch, bool waits);
  // Of order alone; copies, fills and memory are the caller's.
  void on(const engine::HostEvent& event);

  // Is the operation of a block before the one that began last?
  bool before_current(uint32_t uid) const;
  const Operation* operation_of(uint32_t uid) const;
  // Blocks below come before everything that is still to come.
  uint32_t floor() const { return floor_; }
  // Only the default stream was ever used: all is in order.
  bool single() const { return single_; }
  bool uids_left(uint64_t count) const { return count < ~uint32_t{0} - next_uid_ - 1; }
  void restart();

 private:
  using Known = std::vector<uint32_t>;  // by stream
  struct Stream {
    bool blocking = true;
    uint32_t last = 0;
    Known known;
  };
  struct Graph {
    Known before;
    bool has_node = false;
    uint32_t node = 0;
    std::vector<uint32_t> streams;  // by node
    size_t next = 0;                // of node_streams_, that it has not looked at
  };

  uint32_t index_of(uint64_t stream);
  void join(Known& to, const Known& from) const;
  // What an operation of the stream would know.
  Known known_in(uint32_t stream) const;
  uint32_t node_stream(uint32_t node);
  void raise_floor();

  std::vector<Stream> streams_{Stream{}};
  std::unordered_map<uint64_t, uint32_t> by_name_{{0, 0}};
  std::unordered_map<uint64_t, Known> events_;
  Known host_;
  Known current_;
  std::deque<Operation> operations_;    // the oldest may be gone
  std::vector<uint32_t> node_streams_;  // for nodes of graphs, used again
  Graph graph_;
  bool in_graph_ = false;
  bool single_ = true;
  uint32_t next_uid_ = 1, floor_ = 1;
};

}  // namespace kiln::watch::race
