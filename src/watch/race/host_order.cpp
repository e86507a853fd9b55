// SPDX-License-Identifier: Apache-2.0
#include "watch/race/host_order.h"

#include <algorithm>

namespace kiln::watch::race {

using namespace engine;

void HostOrder::join(Known& to, const Known& from) const {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

uint32_t HostOrder::index_of(uint64_t stream) {
  const auto [found, is_new] = by_name_.try_emplace(stream, static_cast<uint32_t>(streams_.size()));
  if (is_new) {
    streams_.emplace_back();
    single_ = false;
  }
  return found->second;
}

// The default stream waits for all that do not say otherwise, and they for it.
HostOrder::Known HostOrder::known_in(uint32_t stream) const {
  Known known = streams_[stream].known;
  join(known, host_);
  if (stream == 0) {
    for (const Stream& other : streams_) {
      if (other.blocking) join(known, other.known);
    }
  } else if (streams_[stream].blocking) {
    join(known, streams_[0].known);
  }
  return known;
}

// Nodes of a graph may run concurrently: each has its own stream. One of an earlier launch is used
// again if that has come before: two graphs may run concurrently too.
uint32_t HostOrder::node_stream(uint32_t node) {
  const auto is_over = [&](uint32_t stream) {
    return streams_[stream].last == 0 ||
           (stream < graph_.before.size() && graph_.before[stream] >= streams_[stream].last);
  };
  while (graph_.streams.size() <= node) {
    size_t& next = graph_.next;
    while (next < node_streams_.size() && !is_over(node_streams_[next])) ++next;
    if (next == node_streams_.size()) {
      node_streams_.push_back(static_cast<uint32_t>(streams_.size()));
      streams_.emplace_back();
      streams_.back().blocking = false;
    }
    graph_.streams.push_back(node_streams_[next++]);
  }
  return graph_.streams[node];
}

const HostOrder::Operation& HostOrder::begin(uint64_t stream, uint32_t uids, uint64_t launch,
                                             bool waits) {
  uint32_t in = index_of(stream);
  if (in_graph_ && graph_.has_node) in = node_stream(graph_.node);
  Known known = in_graph_ && graph_.has_node ? streams_[in].known : known_in(in);
  Stream& own = streams_[in];
  if (known.size() <= in) known.resize(in + 1);
  known[in] = ++own.last;
  own.known = known;
  current_ = known;
  if (waits) join(host_, known);
  operations_.push_back({next_uid_, in, own.last, launch, stream});
  next_uid_ += uids;
  raise_floor();
  return operations_.back();
}

void HostOrder::raise_floor() {
  const uint32_t newest = operations_.back().first_uid;
  if (single_) {
    floor_ = newest;
  } else {
    auto is_known = [&](const Operation& each) {
      return each.stream < host_.size() && host_[each.stream] >= each.number;
    };
    for (const Operation& each : operations_) {
      floor_ = std::max(floor_, each.first_uid);
      if (!is_known(each)) break;
    }
    floor_ = std::min(floor_, newest);
  }
  // An old one is asked for its order alone, and those below the floor are not.
  while (operations_.size() > 1024 && operations_[1].first_uid <= floor_) operations_.pop_front();
}

const HostOrder::Operation* HostOrder::operation_of(uint32_t uid) const {
  auto after = std::upper_bound(
      operations_.begin(), operations_.end(), uid,
      [](uint32_t wanted, const Operation& each) { return wanted < each.first_uid; });
  return after == operations_.begin() ? nullptr : &*--after;
}

bool HostOrder::before_current(uint32_t uid) const {
  if (uid < floor_) return true;
  const Operation* of = operation_of(uid);
  return !of || (of->stream < current_.size() && current_[of->stream] >= of->number);
}

void HostOrder::on(const HostEvent& event) {
  if (event.code != 0) return;
  switch (event.kind) {
    case HostKind::StreamCreate:
      streams_[index_of(event.stream)].blocking = !event.nonblocking;
      break;
    case HostKind::StreamSynchronize:
      join(host_, known_in(index_of(event.stream)));
      break;
    case HostKind::StreamWaitEvent: {
      Stream& stream = streams_[index_of(event.stream)];
      join(stream.known, events_[event.event]);
      break;
    }
    case HostKind::EventRecord:
      events_[event.event] = known_in(index_of(event.stream));
      break;
    case HostKind::EventSynchronize:
      join(host_, events_[event.event]);
      break;
    case HostKind::DeviceSynchronize:
      for (const Stream& stream : streams_) join(host_, stream.known);
      break;
    case HostKind::GraphBegin:
      single_ = false;
      in_graph_ = true;
      graph_ = {};
      graph_.before = known_in(index_of(event.stream));
      break;
    case HostKind::GraphNode: {
      Known known = graph_.before;
      for (uint32_t earlier : event.before) join(known, streams_[node_stream(earlier)].known);
      streams_[node_stream(event.node)].known = known;
      graph_.has_node = true;
      graph_.node = event.node;
      break;
    }
    case HostKind::GraphEnd: {
      Stream& stream = streams_[index_of(event.stream)];
      join(stream.known, graph_.before);
      for (uint32_t each : graph_.streams) join(stream.known, streams_[each].known);
      in_graph_ = false;
      break;
    }
    default:
      break;
  }
}

void HostOrder::restart() {
  operations_.clear();
  next_uid_ = floor_ = 1;
}

}  // namespace kiln::watch::race
