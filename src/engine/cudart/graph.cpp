// SPDX-License-Identifier: Apache-2.0
// How is a graph built, copied, ordered and run?
#include "engine/cudart/graph.h"

#include <algorithm>
#include <unordered_map>

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

int launch_graph(const std::vector<Node*>& order) {
  for (const Node* node : order) {
    if (!node->enabled) continue;
    if (int code = perform(node->work)) return code;
  }
  return kSuccess;
}

}  // namespace kiln::engine
