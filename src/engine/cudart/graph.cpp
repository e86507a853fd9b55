// SPDX-License-Identifier: Apache-2.0
// How is a graph built, copied, ordered and run?
#include "engine/cudart/graph.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "engine/cudart/host_events.h"
#include "engine/machine/fault.h"

namespace kiln::engine {

Node* Graph::add(Work work, std::vector<Node*> before) {
  nodes.push_back(std::make_unique<Node>(Node{this, std::move(work), std::move(before)}));
  return nodes.back().get();
}

bool Graph::has(const Node* node) const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const auto& own) { return own.get() == node; });
}

void Graph::remove(Node* node) {
  for (auto& other : nodes) std::erase(other->before, node);
  std::erase_if(nodes, [&](const auto& own) { return own.get() == node; });
}

std::unique_ptr<Graph> clone(const Graph& graph, std::map<const Node*, Node*>* copies) {
  auto copy = std::make_unique<Graph>();
  std::map<const Node*, Node*> own;
  for (const auto& node : graph.nodes) {
    Work work = node->work;
    if (auto* child = std::get_if<ChildWork>(&work)) child->graph = clone(*child->graph, copies);
    Node* made = copy->add(std::move(work), {});
    made->enabled = node->enabled;
    own[node.get()] = made;
  }
  for (const auto& node : graph.nodes) {
    for (Node* earlier : node->before) own[node.get()]->before.push_back(own[earlier]);
  }
  if (copies) copies->insert(own.begin(), own.end());
  return copy;
}

std::vector<Node*> launch_order(const Graph& graph) {
  std::vector<Node*> order;
  std::unordered_map<const Node*, size_t> waits_for;
  std::unordered_map<const Node*, std::vector<Node*>> after;
  std::vector<Node*> ready;
  for (const auto& node : graph.nodes) {
    waits_for[node.get()] = node->before.size();
    for (Node* earlier : node->before) after[earlier].push_back(node.get());
    if (node->before.empty()) ready.push_back(node.get());
  }
  for (size_t i = 0; i < ready.size(); ++i) {
    order.push_back(ready[i]);
    for (Node* later : after[ready[i]]) {
      if (--waits_for[later] == 0) ready.push_back(later);
    }
  }
  if (order.size() != graph.nodes.size()) order.clear();
  return order;
}

namespace {

// Reports the nodes of one launch of a graph.
class GraphReporter {
 public:
  GraphReporter(const std::vector<Node*>& order, const void* stream)
      : order_(order), stream_(stream), watched_(host_sink() != nullptr) {
    static std::atomic<uint64_t> next{1};
    if (!watched_) return;
    number_ = next++;
    for (uint32_t i = 0; i < order.size(); ++i) places_[order[i]] = i;
    deliver(HostKind::GraphBegin, 0);
  }
  void end() {
    if (watched_) deliver(HostKind::GraphEnd, 0);
  }
  void node(size_t index) {
    if (watched_) deliver(HostKind::GraphNode, static_cast<uint32_t>(index));
  }

 private:
  void deliver(HostKind kind, uint32_t index) {
    watch_host(kind, stream_, [&](HostEvent& event) {
      event.graph = number_;
      event.node = index;
      if (kind != HostKind::GraphNode) return;
      for (const Node* earlier : order_[index]->before) event.before.push_back(places_[earlier]);
    });
  }

  const std::vector<Node*>& order_;
  const void* stream_;
  bool watched_;
  uint64_t number_ = 0;
  std::unordered_map<const Node*, uint32_t> places_;
};

}  // namespace

int launch_graph(const std::vector<Node*>& order, const void* stream) {
  GraphReporter reporter(order, stream);
  int code = kSuccess;
  for (size_t i = 0; i < order.size() && !code; ++i) {
    if (!order[i]->enabled) continue;
    reporter.node(i);
    code = perform(order[i]->work, stream);
  }
  reporter.end();
  return code;
}

}  // namespace kiln::engine
