// SPDX-License-Identifier: Apache-2.0
// How are the nodes of a graph created, queried and changed, in the graph and in what was
// instantiated from it?
#include <fmt/format.h>

#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

int add(Node** out, Graph* graph, Node* const* before, size_t count, Work work) {
  std::lock_guard lock(handles().mutex);
  if (!handles().graphs.count(graph)) return fail(kInvalidValue, "this is not a live graph");
  if (!out || (count && !before)) return fail(kInvalidValue, "a pointer is null");
  for (size_t i = 0; i < count; ++i) {
    if (!graph->has(before[i]))
      return fail(kInvalidValue, "a node to wait for is not in the graph");
  }
  *out = graph->add(std::move(work), {before, before + count});
  return kSuccess;
}

// The node to change: of a graph (`executable` null), or its copy in an executable graph.
int find(Executable* executable, Node* node, Node** out) {
  if (!node) return fail(kInvalidValue, "the node is null");
  *out = node;
  if (!executable) return kSuccess;
  if (!handles().executables.count(executable))
    return fail(kInvalidValue, "this is not a live executable graph");
  auto found = executable->node_of.find(node);
  if (found == executable->node_of.end())
    return fail(kInvalidValue, "the executable graph has no such node");
  *out = found->second;
  return kSuccess;
}
template <class Kind>
int change(Executable* executable, Node* node, Kind work) {
  std::lock_guard lock(handles().mutex);
  if (int code = find(executable, node, &node)) return code;
  if (!std::holds_alternative<Kind>(node->work))
    return fail(kInvalidValue, "the node is of another type");
  node->work = std::move(work);
  return kSuccess;
}
template <class Kind>
int look(Node* node, Kind** out) {
  if (!node) return fail(kInvalidValue, "the node is null");
  *out = std::get_if<Kind>(&node->work);
  return *out ? int{kSuccess} : fail(kInvalidValue, "the node is of another type");
}

// ---- Kernels

int kernel_work(const KernelNode* from, KernelWork* out) {
  if (!from) return fail(kInvalidValue, "the parameters of the kernel are null");
  if (from->extra)
    return fail(kNotSupported, "kernel arguments in `extra` are not supported: use kernelParams");
  KilnEngineLaunch launch{};
  launch.host_function = from->function;
  launch.grid = from->grid;
  launch.block = from->block;
  launch.arguments = from->arguments;
  launch.dynamic_shared_bytes = from->shared_bytes;
  return make_kernel_work(launch, out);
}
int add_kernel(Node** out, Graph* graph, Node* const* before, size_t count,
               const KernelNode* parameters) {
  KernelWork work;
  if (int code = kernel_work(parameters, &work)) return code;
  return add(out, graph, before, count, std::move(work));
}
int get_kernel(Node* node, KernelNode* out) {
  KernelWork* work = nullptr;
  if (int code = look(node, &work); !work) return code;
  *out = {const_cast<void*>(work->function),
          work->grid,
          work->block,
          static_cast<unsigned>(work->shared_bytes),
          work->pointers.data(),
          nullptr};
  return kSuccess;
}
int set_kernel_in(Executable* executable, Node* node, const KernelNode* parameters) {
  KernelWork work;
  if (int code = kernel_work(parameters, &work)) return code;
  KernelWork* old = nullptr;
  if (int code = look(node, &old); !old) return code;
  work.flags = old->flags;
  work.cluster = old->cluster;
  return change(executable, node, std::move(work));
}
int set_kernel(Node* node, const KernelNode* parameters) {
  return set_kernel_in(nullptr, node, parameters);
}
int set_kernel_attribute(Node* node, int attribute, const char* value) {
  KernelWork* work = nullptr;
  if (int code = look(node, &work); !work) return code;
  if (attribute == kAttributeCooperative) {
    int wanted = 0;
    std::memcpy(&wanted, value, 4);
    work->flags = wanted ? work->flags | KILN_LAUNCH_COOPERATIVE
                         : work->flags & ~uint32_t{KILN_LAUNCH_COOPERATIVE};
  }
  if (attribute == kAttributeCluster) std::memcpy(&work->cluster, value, sizeof work->cluster);
  return kSuccess;
}
int get_kernel_attribute(Node* node, int attribute, char* value) {
  KernelWork* work = nullptr;
  if (int code = look(node, &work); !work) return code;
  std::memset(value, 0, 64);
  if (attribute == kAttributeCooperative) value[0] = (work->flags & KILN_LAUNCH_COOPERATIVE) != 0;
  if (attribute == kAttributeCluster) std::memcpy(value, &work->cluster, sizeof work->cluster);
  return kSuccess;
}
int copy_kernel_attributes(Node* to, Node* from) {
  KernelWork *target = nullptr, *source = nullptr;
  if (int code = look(to, &target); !target) return code;
  if (int code = look(from, &source); !source) return code;
  target->flags = source->flags;
  target->cluster = source->cluster;
  return kSuccess;
}

// ---- Copies and fills

int add_copy(Node** out, Graph* graph, Node* const* before, size_t count, const Copy3D* copy) {
  if (!copy) return fail(kInvalidValue, "the parameters of the copy are null");
  if (int code = check_copy(*copy)) return code;
  return add(out, graph, before, count, *copy);
}
int add_flat_copy(Node** out, Graph* graph, Node* const* before, size_t count, void* to,
                  const void* from, size_t bytes, int kind) {
  Copy3D copy = flat(to, from, bytes, kind);
  return add_copy(out, graph, before, count, &copy);
}
int symbol_at(const void* symbol, size_t bytes, size_t offset, std::byte** at) {
  int code = 0;
  std::string text;
  const Image::VariableMemory* memory = resolved_variable(symbol, &code, &text);
  if (!memory) return fail(code, std::move(text));
  if (offset > memory->bytes || memory->bytes - offset < bytes)
    return fail(kInvalidValue, "the copy is larger than the variable");
  *at = static_cast<std::byte*>(memory->at) + offset;
  return kSuccess;
}
int add_copy_to_symbol(Node** out, Graph* graph, Node* const* before, size_t count,
                       const void* symbol, const void* from, size_t bytes, size_t offset,
                       int kind) {
  std::byte* at = nullptr;
  if (int code = symbol_at(symbol, bytes, offset, &at)) return code;
  return add_flat_copy(out, graph, before, count, at, from, bytes, kind);
}
int add_copy_from_symbol(Node** out, Graph* graph, Node* const* before, size_t count, void* to,
                         const void* symbol, size_t bytes, size_t offset, int kind) {
  std::byte* at = nullptr;
  if (int code = symbol_at(symbol, bytes, offset, &at)) return code;
  return add_flat_copy(out, graph, before, count, to, at, bytes, kind);
}
int get_copy(Node* node, Copy3D* out) {
  Copy3D* copy = nullptr;
  if (int code = look(node, &copy); !copy) return code;
  *out = *copy;
  return kSuccess;
}
int set_copy_in(Executable* executable, Node* node, const Copy3D* copy) {
  if (!copy) return fail(kInvalidValue, "the parameters of the copy are null");
  if (int code = check_copy(*copy)) return code;
  return change(executable, node, *copy);
}
int set_copy(Node* node, const Copy3D* copy) { return set_copy_in(nullptr, node, copy); }
int set_flat_copy_in(Executable* executable, Node* node, void* to, const void* from, size_t bytes,
                     int kind) {
  Copy3D copy = flat(to, from, bytes, kind);
  return set_copy_in(executable, node, &copy);
}
int set_flat_copy(Node* node, void* to, const void* from, size_t bytes, int kind) {
  return set_flat_copy_in(nullptr, node, to, from, bytes, kind);
}
int add_fill(Node** out, Graph* graph, Node* const* before, size_t count, const Fill* fill) {
  if (!fill) return fail(kInvalidValue, "the parameters of the fill are null");
  if (int code = check_fill(*fill)) return code;
  return add(out, graph, before, count, *fill);
}
int get_fill(Node* node, Fill* out) {
  Fill* fill = nullptr;
  if (int code = look(node, &fill); !fill) return code;
  *out = *fill;
  return kSuccess;
}
int set_fill_in(Executable* executable, Node* node, const Fill* fill) {
  if (!fill) return fail(kInvalidValue, "the parameters of the fill are null");
  if (int code = check_fill(*fill)) return code;
  return change(executable, node, *fill);
}
int set_fill(Node* node, const Fill* fill) { return set_fill_in(nullptr, node, fill); }

// ---- Host functions, events, memory, graphs

int add_host(Node** out, Graph* graph, Node* const* before, size_t count, const HostCall* call) {
  if (!call || !call->function) return fail(kInvalidValue, "the host function is null");
  return add(out, graph, before, count, *call);
}
int get_host(Node* node, HostCall* out) {
  HostCall* call = nullptr;
  if (int code = look(node, &call); !call) return code;
  *out = *call;
  return kSuccess;
}
int set_host_in(Executable* executable, Node* node, const HostCall* call) {
  if (!call || !call->function) return fail(kInvalidValue, "the host function is null");
  return change(executable, node, *call);
}
int set_host(Node* node, const HostCall* call) { return set_host_in(nullptr, node, call); }
int add_empty(Node** out, Graph* graph, Node* const* before, size_t count) {
  return add(out, graph, before, count, EmptyWork{});
}
int add_record(Node** out, Graph* graph, Node* const* before, size_t count, CudaEvent* event) {
  return is_event(event) ? add(out, graph, before, count, RecordWork{event}) : bad_event();
}
int add_wait(Node** out, Graph* graph, Node* const* before, size_t count, CudaEvent* event) {
  return is_event(event) ? add(out, graph, before, count, WaitWork{event}) : bad_event();
}
int add_child(Node** out, Graph* graph, Node* const* before, size_t count, Graph* child) {
  std::lock_guard lock(handles().mutex);
  if (!handles().graphs.count(child)) return fail(kInvalidValue, "the child is not a live graph");
  return add(out, graph, before, count, ChildWork{clone(*child, nullptr)});
}
int get_child(Node* node, Graph** out) {
  ChildWork* child = nullptr;
  if (int code = look(node, &child); !child) return code;
  *out = child->graph.get();
  return kSuccess;
}
int set_child_in(Executable* executable, Node* node, Graph* child) {
  std::lock_guard lock(handles().mutex);
  if (!handles().graphs.count(child)) return fail(kInvalidValue, "the child is not a live graph");
  return change(executable, node, ChildWork{clone(*child, nullptr)});
}
int add_allocate(Node** out, Graph* graph, Node* const* before, size_t count,
                 AllocationNode* parameters) {
  if (!parameters) return fail(kInvalidValue, "the parameters of the allocation are null");
  AllocateWork work;
  if (int code = make_allocate_work(*parameters, &work)) return code;
  parameters->at = work.node.at;
  return add(out, graph, before, count, std::move(work));
}
int get_allocate(Node* node, AllocationNode* out) {
  AllocateWork* work = nullptr;
  if (int code = look(node, &work); !work) return code;
  *out = work->node;
  return kSuccess;
}
int add_free(Node** out, Graph* graph, Node* const* before, size_t count, void* at) {
  return add(out, graph, before, count, FreeWork{at});
}
int get_free(Node* node, void* out) {
  FreeWork* work = nullptr;
  if (int code = look(node, &work); !work) return code;
  std::memcpy(out, &work->at, sizeof work->at);
  return kSuccess;
}
int get_type(Node* node, int* type) {
  if (!node || !type) return fail(kInvalidValue, "a pointer is null");
  *type = static_cast<int>(type_of(node->work));
  return kSuccess;
}

// ---- The general forms

int add_node(Node** out, Graph* graph, Node* const* before, const EdgeData*, size_t count,
             NodeParameters* p) {
  if (!p) return fail(kInvalidValue, "the parameters of the node are null");
  switch (static_cast<NodeType>(p->type)) {
    case NodeType::Kernel:
      return add_kernel(out, graph, before, count, &p->kernel);
    case NodeType::Copy:
      return add_copy(out, graph, before, count, &p->copy.copy);
    case NodeType::Fill:
      return add_fill(out, graph, before, count, &p->fill);
    case NodeType::Host:
      return add_host(out, graph, before, count, &p->host);
    case NodeType::Graph:
      return add_child(out, graph, before, count, static_cast<Graph*>(p->child.graph));
    case NodeType::Empty:
      return add_empty(out, graph, before, count);
    case NodeType::WaitEvent:
      return add_wait(out, graph, before, count, static_cast<CudaEvent*>(p->event));
    case NodeType::RecordEvent:
      return add_record(out, graph, before, count, static_cast<CudaEvent*>(p->event));
    case NodeType::Allocate:
      return add_allocate(out, graph, before, count, &p->allocate);
    case NodeType::Free:
      return add_free(out, graph, before, count, p->free);
  }
  return fail(kNotSupported,
              fmt::format("graph nodes of type {} are not supported on the engine", p->type));
}
int set_node_in(Executable* executable, Node* node, NodeParameters* p) {
  if (!p) return fail(kInvalidValue, "the parameters of the node are null");
  switch (static_cast<NodeType>(p->type)) {
    case NodeType::Kernel:
      return set_kernel_in(executable, node, &p->kernel);
    case NodeType::Copy:
      return set_copy_in(executable, node, &p->copy.copy);
    case NodeType::Fill:
      return set_fill_in(executable, node, &p->fill);
    case NodeType::Host:
      return set_host_in(executable, node, &p->host);
    default:
      return fail(kNotSupported,
                  fmt::format("graph nodes of type {} cannot be changed on the engine", p->type));
  }
}
int set_node(Node* node, NodeParameters* parameters) {
  return set_node_in(nullptr, node, parameters);
}

}  // namespace

std::span<const RuntimeFunction> runtime_graph_nodes() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaGraphAddNode", entry<&add_node>()},
      {"cudaGraphNodeSetParams", entry<&set_node>()},
      {"cudaGraphExecNodeSetParams", entry<&set_node_in>()},
      {"cudaGraphNodeGetType", entry<&get_type>()},
      {"cudaGraphAddKernelNode", entry<&add_kernel>()},
      {"cudaGraphKernelNodeGetParams", entry<&get_kernel>()},
      {"cudaGraphKernelNodeSetParams", entry<&set_kernel>()},
      {"cudaGraphExecKernelNodeSetParams", entry<&set_kernel_in>()},
      {"cudaGraphKernelNodeSetAttribute", entry<&set_kernel_attribute>()},
      {"cudaGraphKernelNodeGetAttribute", entry<&get_kernel_attribute>()},
      {"cudaGraphKernelNodeCopyAttributes", entry<&copy_kernel_attributes>()},
      {"cudaGraphAddMemcpyNode", entry<&add_copy>()},
      {"cudaGraphAddMemcpyNode1D", entry<&add_flat_copy>()},
      {"cudaGraphAddMemcpyNodeToSymbol", entry<&add_copy_to_symbol>()},
      {"cudaGraphAddMemcpyNodeFromSymbol", entry<&add_copy_from_symbol>()},
      {"cudaGraphMemcpyNodeGetParams", entry<&get_copy>()},
      {"cudaGraphMemcpyNodeSetParams", entry<&set_copy>()},
      {"cudaGraphMemcpyNodeSetParams1D", entry<&set_flat_copy>()},
      {"cudaGraphExecMemcpyNodeSetParams", entry<&set_copy_in>()},
      {"cudaGraphExecMemcpyNodeSetParams1D", entry<&set_flat_copy_in>()},
      {"cudaGraphAddMemsetNode", entry<&add_fill>()},
      {"cudaGraphMemsetNodeGetParams", entry<&get_fill>()},
      {"cudaGraphMemsetNodeSetParams", entry<&set_fill>()},
      {"cudaGraphExecMemsetNodeSetParams", entry<&set_fill_in>()},
      {"cudaGraphAddHostNode", entry<&add_host>()},
      {"cudaGraphHostNodeGetParams", entry<&get_host>()},
      {"cudaGraphHostNodeSetParams", entry<&set_host>()},
      {"cudaGraphExecHostNodeSetParams", entry<&set_host_in>()},
      {"cudaGraphAddEmptyNode", entry<&add_empty>()},
      {"cudaGraphAddEventRecordNode", entry<&add_record>()},
      {"cudaGraphAddEventWaitNode", entry<&add_wait>()},
      {"cudaGraphAddChildGraphNode", entry<&add_child>()},
      {"cudaGraphChildGraphNodeGetGraph", entry<&get_child>()},
      {"cudaGraphExecChildGraphNodeSetParams", entry<&set_child_in>()},
      {"cudaGraphAddMemAllocNode", entry<&add_allocate>()},
      {"cudaGraphMemAllocNodeGetParams", entry<&get_allocate>()},
      {"cudaGraphAddMemFreeNode", entry<&add_free>()},
      {"cudaGraphMemFreeNodeGetParams", entry<&get_free>()},
  };
  return kFunctions;
}

}  // namespace kiln::engine
