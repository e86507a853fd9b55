// SPDX-License-Identifier: Apache-2.0
// What do the calls about whole graphs do: create, query, copy, instantiate, update, launch?
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

int bad_graph() { return fail(kInvalidValue, "this is not a live graph"); }
int bad_executable() { return fail(kInvalidValue, "this is not a live executable graph"); }
bool is_graph(const Graph* graph) { return handles().graphs.count(graph); }
bool is_executable(const Executable* executable) { return handles().executables.count(executable); }

int create(Graph** out, unsigned) {
  if (!out) return fail(kInvalidValue, "the output pointer for the graph is null");
  auto graph = std::make_shared<Graph>();
  std::lock_guard lock(handles().mutex);
  *out = graph.get();
  handles().graphs[*out] = std::move(graph);
  return kSuccess;
}
int destroy(Graph* graph) {
  std::lock_guard lock(handles().mutex);
  return handles().graphs.erase(graph) ? int{kSuccess} : bad_graph();
}
int clone_graph(Graph** out, Graph* graph) {
  std::lock_guard lock(handles().mutex);
  if (!is_graph(graph)) return bad_graph();
  if (!out) return fail(kInvalidValue, "the output pointer for the graph is null");
  std::shared_ptr<Graph> copy = clone(*graph, nullptr);
  *out = copy.get();
  handles().graphs[*out] = std::move(copy);
  return kSuccess;
}
int find_in_clone(Node** out, Node* original, Graph* copy) {
  std::lock_guard lock(handles().mutex);
  if (!is_graph(copy)) return bad_graph();
  const auto& nodes = original->graph->nodes;
  for (size_t i = 0; i < nodes.size() && i < copy->nodes.size(); ++i) {
    if (nodes[i].get() != original) continue;
    *out = copy->nodes[i].get();
    return kSuccess;
  }
  return fail(kInvalidValue, "the clone has no such node");
}

// The convention of all lists here: with a null array, the call returns the count.
int give(const std::vector<Node*>& from, Node** nodes, size_t* count) {
  if (!count) return fail(kInvalidValue, "the output pointer for the count is null");
  if (!nodes) {
    *count = from.size();
    return kSuccess;
  }
  for (size_t i = 0; i < *count; ++i) nodes[i] = i < from.size() ? from[i] : nullptr;
  *count = std::min(*count, from.size());
  return kSuccess;
}
int get_nodes(Graph* graph, Node** nodes, size_t* count) {
  std::lock_guard lock(handles().mutex);
  if (!is_graph(graph)) return bad_graph();
  std::vector<Node*> all;
  for (const auto& node : graph->nodes) all.push_back(node.get());
  return give(all, nodes, count);
}
int get_roots(Graph* graph, Node** nodes, size_t* count) {
  std::lock_guard lock(handles().mutex);
  if (!is_graph(graph)) return bad_graph();
  std::vector<Node*> roots;
  for (const auto& node : graph->nodes) {
    if (node->before.empty()) roots.push_back(node.get());
  }
  return give(roots, nodes, count);
}
int get_edges(Graph* graph, Node** from, Node** to, EdgeData* edges, size_t* count) {
  std::lock_guard lock(handles().mutex);
  if (!is_graph(graph)) return bad_graph();
  std::vector<Node*> sources, targets;
  for (const auto& node : graph->nodes) {
    for (Node* earlier : node->before) {
      sources.push_back(earlier);
      targets.push_back(node.get());
    }
  }
  if (edges && count) std::fill(edges, edges + std::min(*count, sources.size()), EdgeData{});
  size_t again = count ? *count : 0;
  if (int code = give(sources, from, count)) return code;
  return to ? give(targets, to, &again) : int{kSuccess};
}
int node_dependencies(Node* node, Node** nodes, EdgeData* edges, size_t* count) {
  std::lock_guard lock(handles().mutex);
  if (edges && count) std::fill(edges, edges + std::min(*count, node->before.size()), EdgeData{});
  return give(node->before, nodes, count);
}
int node_dependents(Node* node, Node** nodes, EdgeData* edges, size_t* count) {
  std::lock_guard lock(handles().mutex);
  std::vector<Node*> later;
  for (const auto& other : node->graph->nodes) {
    if (std::count(other->before.begin(), other->before.end(), node)) later.push_back(other.get());
  }
  if (edges && count) std::fill(edges, edges + std::min(*count, later.size()), EdgeData{});
  return give(later, nodes, count);
}
int add_dependencies(Graph* graph, Node* const* from, Node* const* to, const EdgeData*,
                     size_t count) {
  std::lock_guard lock(handles().mutex);
  if (!is_graph(graph)) return bad_graph();
  for (size_t i = 0; i < count; ++i) {
    if (!graph->has(from[i]) || !graph->has(to[i]))
      return fail(kInvalidValue, "the graph has no such node");
    to[i]->before.push_back(from[i]);
  }
  return kSuccess;
}
int remove_dependencies(Graph* graph, Node* const* from, Node* const* to, const EdgeData*,
                        size_t count) {
  std::lock_guard lock(handles().mutex);
  if (!is_graph(graph)) return bad_graph();
  for (size_t i = 0; i < count; ++i) {
    if (!graph->has(to[i])) return fail(kInvalidValue, "the graph has no such node");
    std::erase(to[i]->before, from[i]);
  }
  return kSuccess;
}
int destroy_node(Node* node) {
  std::lock_guard lock(handles().mutex);
  if (!node || !is_graph(node->graph))
    return fail(kInvalidValue, "this is not a node of a live graph");
  node->graph->remove(node);
  return kSuccess;
}

// ---- Executables

int instantiate(Executable** out, Graph* graph, unsigned long long flags) {
  std::lock_guard lock(handles().mutex);
  if (!is_graph(graph)) return bad_graph();
  if (!out) return fail(kInvalidValue, "the output pointer for the executable graph is null");
  auto made = std::make_unique<Executable>();
  made->graph = clone(*graph, &made->node_of);
  made->order = launch_order(*made->graph);
  made->flags = flags;
  if (made->order.size() != graph->nodes.size())
    return fail(kInvalidValue, "the graph has a cycle");
  handles().executables.insert(made.get());
  *out = made.release();
  return kSuccess;
}
int instantiate_with_params(Executable** out, Graph* graph, InstantiateParameters* parameters) {
  if (!parameters)
    return fail(kInvalidValue, "cudaGraphInstantiateWithParams: the parameters are null");
  int code = instantiate(out, graph, parameters->flags);
  parameters->error_node = nullptr;
  parameters->result = code ? 1 : 0;
  return code;
}
int exec_flags(Executable* executable, unsigned long long* flags) {
  std::lock_guard lock(handles().mutex);
  if (!is_executable(executable)) return bad_executable();
  *flags = executable->flags;
  return kSuccess;
}
int exec_destroy(Executable* executable) {
  std::lock_guard lock(handles().mutex);
  if (!handles().executables.erase(executable)) return bad_executable();
  delete executable;
  return kSuccess;
}
int launch(Executable* executable, Stream* stream) {
  {
    std::lock_guard lock(handles().mutex);
    if (!is_executable(executable)) return bad_executable();
    if (!stream_of(stream)) return bad_stream();
    if (is_capturing(stream)) return submit(stream, ChildWork{clone(*executable->graph, nullptr)});
  }
  return launch_graph(executable->order, stream);
}
int upload(Executable* executable, Stream* stream) {
  std::lock_guard lock(handles().mutex);
  if (!is_executable(executable)) return bad_executable();
  return stream_of(stream) ? kSuccess : bad_stream();
}

enum Update : int { kUpdated = 0, kTopologyChanged = 2, kNodeTypeChanged = 3 };
int update_failed(UpdateResult* result, int why, Node* node) {
  if (result) *result = {why, node, nullptr};
  return fail(kGraphExecUpdateFailure,
              "cudaGraphExecUpdate: the graph differs in structure from the instantiated one");
}
// Nodes correspond in the order in which they were added.
int exec_update(Executable* executable, Graph* graph, UpdateResult* result) {
  std::lock_guard lock(handles().mutex);
  if (!is_executable(executable)) return bad_executable();
  if (!is_graph(graph)) return bad_graph();
  auto& own = executable->graph->nodes;
  if (own.size() != graph->nodes.size()) return update_failed(result, kTopologyChanged, nullptr);
  for (size_t i = 0; i < own.size(); ++i) {
    Node* other = graph->nodes[i].get();
    if (own[i]->before.size() != other->before.size())
      return update_failed(result, kTopologyChanged, other);
    if (own[i]->work.index() != other->work.index())
      return update_failed(result, kNodeTypeChanged, other);
  }
  std::map<const Node*, Node*> copies;
  auto fresh = clone(*graph, &copies);
  for (size_t i = 0; i < own.size(); ++i) own[i]->work = std::move(fresh->nodes[i]->work);
  for (size_t i = 0; i < own.size(); ++i) executable->node_of[graph->nodes[i].get()] = own[i].get();
  if (result) *result = {kUpdated, nullptr, nullptr};
  return kSuccess;
}

int set_enabled(Executable* executable, Node* node, unsigned enabled) {
  std::lock_guard lock(handles().mutex);
  if (!is_executable(executable)) return bad_executable();
  auto found = executable->node_of.find(node);
  if (found == executable->node_of.end())
    return fail(kInvalidValue, "the executable graph has no such node");
  found->second->enabled = enabled != 0;
  return kSuccess;
}
int get_enabled(Executable* executable, Node* node, unsigned* enabled) {
  std::lock_guard lock(handles().mutex);
  if (!is_executable(executable)) return bad_executable();
  auto found = executable->node_of.find(node);
  if (found == executable->node_of.end())
    return fail(kInvalidValue, "the executable graph has no such node");
  *enabled = found->second->enabled;
  return kSuccess;
}

int debug_dot(Graph* graph, const char* path, unsigned) {
  std::lock_guard lock(handles().mutex);
  if (!is_graph(graph)) return bad_graph();
  std::FILE* file = std::fopen(path, "we");
  if (!file) return fail(kUnknown, fmt::format("cannot write {}", path));
  std::fputs("digraph {\n", file);
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    const Node& node = *graph->nodes[i];
    std::fprintf(file, "  n%p [label=\"%zu: type %d\"];\n", static_cast<const void*>(&node), i,
                 static_cast<int>(type_of(node.work)));
    for (const Node* earlier : node.before) {
      std::fprintf(file, "  n%p -> n%p;\n", static_cast<const void*>(earlier),
                   static_cast<const void*>(&node));
    }
  }
  std::fputs("}\n", file);
  return std::fclose(file) == 0 ? int{kSuccess}
                                : fail(kUnknown, fmt::format("cannot write {}", path));
}

// cudaGraphMemAttributeType: used and reserved bytes, current and maximum.
int graph_memory(int, int attribute, void* value) {
  if (!value || attribute < 0 || attribute > 3)
    return fail(kInvalidValue, "unknown graph memory attribute");
  uint64_t bytes = state().device.heap.bytes_in_use(kGraphMemory);
  std::memcpy(value, &bytes, 8);
  return kSuccess;
}
int set_graph_memory(int, int, void*) { return kSuccess; }
int trim_graph_memory(int) { return kSuccess; }

}  // namespace

std::span<const RuntimeFunction> runtime_graphs() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaGraphCreate", entry<&create>()},
      {"cudaGraphDestroy", entry<&destroy>()},
      {"cudaGraphClone", entry<&clone_graph>()},
      {"cudaGraphNodeFindInClone", entry<&find_in_clone>()},
      {"cudaGraphGetNodes", entry<&get_nodes>()},
      {"cudaGraphGetRootNodes", entry<&get_roots>()},
      {"cudaGraphGetEdges", entry<&get_edges>()},
      {"cudaGraphNodeGetDependencies", entry<&node_dependencies>()},
      {"cudaGraphNodeGetDependentNodes", entry<&node_dependents>()},
      {"cudaGraphAddDependencies", entry<&add_dependencies>()},
      {"cudaGraphRemoveDependencies", entry<&remove_dependencies>()},
      {"cudaGraphDestroyNode", entry<&destroy_node>()},
      {"cudaGraphInstantiate", entry<&instantiate>()},
      {"cudaGraphInstantiateWithFlags", entry<&instantiate>()},
      {"cudaGraphInstantiateWithParams", entry<&instantiate_with_params>()},
      {"cudaGraphExecGetFlags", entry<&exec_flags>()},
      {"cudaGraphExecDestroy", entry<&exec_destroy>()},
      {"cudaGraphExecUpdate", entry<&exec_update>()},
      {"cudaGraphNodeSetEnabled", entry<&set_enabled>()},
      {"cudaGraphNodeGetEnabled", entry<&get_enabled>()},
      {"cudaGraphLaunch", behind<&launch>()},
      {"cudaGraphUpload", behind<&upload>()},
      {"cudaGraphDebugDotPrint", entry<&debug_dot>()},
      {"cudaDeviceGetGraphMemAttribute", entry<&graph_memory>()},
      {"cudaDeviceSetGraphMemAttribute", entry<&set_graph_memory>()},
      {"cudaDeviceGraphMemTrim", entry<&trim_graph_memory>()},
  };
  return kFunctions;
}

}  // namespace kiln::engine
