// SPDX-License-Identifier: Apache-2.0
// What is a graph of work, and its copy that can be launched?
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/cudart/work.h"

namespace kiln::engine {

struct Node {
  Graph* graph = nullptr;
  Work work;
  std::vector<Node*> before;  // its dependencies
  bool enabled = true;        // for a node of an executable graph
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

// A copy of the graph. `copies` maps each original node to its copy.
std::unique_ptr<Graph> clone(const Graph& graph, std::map<const Node*, Node*>* copies);
// An order in which every node comes after its dependencies; empty if there is a cycle.
std::vector<Node*> launch_order(const Graph& graph);

struct Executable {
  std::unique_ptr<Graph> graph;
  std::map<const Node*, Node*> node_of;  // by node of the graph from which it was made
  std::vector<Node*> order;
  unsigned long long flags = 0;
};

int launch_graph(const std::vector<Node*>& order, const void* stream);

}  // namespace kiln::engine
