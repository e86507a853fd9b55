// SPDX-License-Identifier: Apache-2.0
// What is a graph of work, and the copy of it that can be launched?
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/cudart/work.h"

namespace kiln::engine {

struct Node {
  Graph* graph = nullptr;
  Work work;
  std::vector<Node*> before;  // what it depends on
  bool enabled = true;        // of an executable graph
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;  // in the order in which they were added

  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Node* add(Work work, std::vector<Node*> before);
  bool has(const Node* node) const;
  void remove(Node* node);
};

// The same graph again; `made_from` tells for each node of the original which is its copy.
std::unique_ptr<Graph> clone(const Graph& graph, std::map<const Node*, Node*>* copies);
// An order in which every node comes after what it depends on; empty when there is a cycle.
std::vector<Node*> launch_order(const Graph& graph);

struct Executable {
  std::unique_ptr<Graph> graph;
  std::map<const Node*, Node*> node_of;  // from the nodes of the graph that it was made from
  std::vector<Node*> order;
  unsigned long long flags = 0;
};

int launch_graph(const std::vector<Node*>& order, const void* stream);

}  // namespace kiln::engine
