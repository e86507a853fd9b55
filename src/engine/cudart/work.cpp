// SPDX-License-Identifier: Apache-2.0
// How does each kind of work run?
#include "engine/cudart/work.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "engine/cudart/graph.h"
#include "engine/cudart/host_events.h"
#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"
#include "engine/machine/fault.h"
#include "engine/memory/arrays.h"
#include "engine/memory/memory.h"

namespace kiln::engine {

KernelWork& KernelWork::operator=(const KernelWork& other) {
  if (this == &other) return *this;
  function = other.function;
  grid = other.grid;
  block = other.block;
  cluster = other.cluster;
  shared_bytes = other.shared_bytes;
  flags = other.flags;
  values = other.values;
  pointers.clear();
  for (auto& value : values) pointers.push_back(value.data());
  return *this;
}

NodeType type_of(const Work& work) {
  constexpr NodeType kTypes[] = {NodeType::Empty,     NodeType::Kernel,   NodeType::Copy,
                                 NodeType::Fill,      NodeType::Host,     NodeType::RecordEvent,
                                 NodeType::WaitEvent, NodeType::Allocate, NodeType::Free,
                                 NodeType::Graph};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

int make_kernel_work(const KilnEngineLaunch& launch, KernelWork* out) {
  int code = 0;
  std::string text;
  RegisteredFunction* function = resolved_function(launch.host_function, &code, &text);
  if (!function) return fail(code, std::move(text));
  KernelWork work;
  work.function = launch.host_function;
  work.grid = launch.grid;
  work.block = launch.block;
  work.cluster = launch.cluster;
  work.shared_bytes = launch.dynamic_shared_bytes;
  work.flags = launch.flags;
  const std::vector<ParameterPlace>& places = function->program().parameter_places;
  if (!places.empty() && !launch.arguments)
    return fail(kInvalidValue, "the kernel has parameters and none were given");
  for (size_t i = 0; i < places.size(); ++i) {
    const auto* from = static_cast<const std::byte*>(launch.arguments[i]);
    work.values.emplace_back(from, from + places[i].bytes);
  }
  for (auto& value : work.values) work.pointers.push_back(value.data());
  *out = std::move(work);
  return kSuccess;
}

int make_allocate_work(const AllocationNode& node, AllocateWork* out) {
  void* at = state().device.heap.allocate(node.bytes, AllocationKind::Device, kGraphMemory);
  if (!at)
    return fail(kMemoryAllocation,
                fmt::format("out of memory for {} bytes of a graph", node.bytes));
  out->node = node;
  out->node.at = at;
  out->memory =
      std::shared_ptr<void>(at, [](void* memory) { state().device.heap.release(memory); });
  return kSuccess;
}

int fail_for_host_function(const char* what) noexcept {
  try {
    keep_fault(kUnknown,
               fmt::format("A host function of the program threw an exception: {}\n  fix: catch it "
                           "inside the function; on a GPU it would end the process",
                           what));
  } catch (const std::bad_alloc&) {
    keep_fault(kUnknown, {});
  }
  return kSuccess;
}

namespace {

void watch_event(HostKind kind, const void* stream, const CudaEvent& event) {
  watch_host(kind, stream, [&](HostEvent& out) { out.event = event.id; });
}

int perform_kernel(const KernelWork& work, const void* stream) {
  KilnEngineLaunch launch{};
  launch.struct_bytes = sizeof launch;
  launch.flags = work.flags | KILN_LAUNCH_DEFERRED;
  launch.host_function = work.function;
  launch.grid = work.grid;
  launch.block = work.block;
  launch.cluster = work.cluster;
  launch.arguments = const_cast<void**>(work.pointers.data());
  launch.dynamic_shared_bytes = work.shared_bytes;
  launch.stream = const_cast<void*>(stream);
  launch.check_memory = 1;
  return launch_now(launch);
}

struct Perform {
  const void* stream;

  int operator()(const EmptyWork&) const { return kSuccess; }
  int operator()(const KernelWork& work) const { return perform_kernel(work, stream); }
  int operator()(const Copy3D& copy) const { return perform_copy(copy, stream, false); }
  int operator()(const Fill& fill) const { return perform_fill(fill, stream, false); }
  int operator()(const HostCall& call) const {
    watch_host(HostKind::Call, stream);
    return call_host([&] { call.function(call.argument); });
  }
  int operator()(const RecordWork& work) const {
    std::lock_guard lock(handles().mutex);  // another thread may read its time
    work.event->recorded = true;
    work.event->at = std::chrono::steady_clock::now();
    watch_event(HostKind::EventRecord, stream, *work.event);
    return kSuccess;
  }
  int operator()(const WaitWork& work) const {
    watch_event(HostKind::StreamWaitEvent, stream, *work.event);
    return kSuccess;
  }
  int operator()(const AllocateWork& work) const {
    watch_allocation("cudaMallocAsync", work.node.at, work.node.bytes, AllocationKind::Device,
                     stream, false);
    return kSuccess;
  }
  int operator()(const FreeWork& work) const {
    const auto known = state().device.heap.find(reinterpret_cast<uint64_t>(work.at));
    watch_free("cudaFreeAsync", work.at, known ? known->bytes : 0, stream, false, kSuccess);
    return kSuccess;
  }
  int operator()(const ChildWork& work) const {
    return launch_graph(launch_order(*work.graph), stream);
  }
};

std::atomic<bool> g_serves_ops{false};

// A device pointer must be inside one allocation of the engine, up to its last byte; if ops are
// served, inside memory that the process has mapped.
int check_device(const char* what, const void* at, size_t bytes, bool write) {
  uint64_t address = reinterpret_cast<uint64_t>(at);
  auto allocation = state().device.heap.find(address);
  if (allocation && allocation->begin + allocation->bytes - address >= bytes) return kSuccess;
  if (allocation) {
    return fail(kInvalidValue,
                fmt::format("{}: {} bytes at 0x{:x} run over the end of an allocation of {} bytes",
                            what, bytes, address, allocation->bytes));
  }
  if (g_serves_ops) {
    auto region = mapped_region(address);
    if (region && region->holds(address, bytes) && (region->writable || !write)) return kSuccess;
  }
  return fail(kInvalidValue, fmt::format("{}: 0x{:x} is not device memory", what, address));
}

struct Side {
  Array* array;
  const Position& position;
  const PitchedPointer& pointer;
};

// The size of one step in x: an element if an array takes part, otherwise a byte.
uint32_t step_bytes(const Copy3D& copy) {
  if (copy.from_array) return copy.from_array->element_bytes;
  return copy.to_array ? copy.to_array->element_bytes : 1;
}

std::byte* row_of(const Side& side, uint32_t step, size_t y, size_t z) {
  if (side.array)
    return side.array->row(side.position.y + y, side.position.z + z) + side.position.x * step;
  size_t rows = side.pointer.height ? side.pointer.height : 1;
  return static_cast<std::byte*>(side.pointer.at) +
         ((side.position.z + z) * rows + side.position.y + y) * side.pointer.pitch +
         side.position.x;
}

int check_side(const char* what, const Side& side, const Extent& extent, uint32_t step, bool device,
               bool write) {
  if (side.array) {
    if (!state().device.textures.is_array(side.array))
      return fail(kInvalidValue, fmt::format("{}: this is not a live array", what));
    const Array& array = *side.array;
    if (side.position.x + extent.width > array.extent.width ||
        side.position.y + extent.height > array.rows() ||
        side.position.z + extent.depth > array.slices()) {
      return fail(kInvalidValue,
                  fmt::format("{}: the copy reaches beyond the array of {} x {} x {} elements",
                              what, array.extent.width, array.rows(), array.slices()));
    }
    return kSuccess;
  }
  if (!side.pointer.at) return fail(kInvalidValue, fmt::format("{}: the pointer is null", what));
  const size_t width = extent.width * step;
  if ((extent.height > 1 || extent.depth > 1) && side.position.x + width > side.pointer.pitch) {
    return fail(kInvalidPitchValue,
                fmt::format("{}: a row of {} bytes is wider than the pitch of {}", what, width,
                            side.pointer.pitch));
  }
  if (!device) return kSuccess;
  const std::byte* first = row_of(side, step, 0, 0);
  const std::byte* last = row_of(side, step, extent.height - 1, extent.depth - 1) + width;
  return check_device(what, first, static_cast<size_t>(last - first), write);
}

}  // namespace

void serve_ops() { g_serves_ops = true; }

int check_copy(const Copy3D& copy) {
  if (copy.kind < kHostToHost || copy.kind > kDefault) {
    return fail(kInvalidMemcpyDirection,
                fmt::format("cudaMemcpy: unknown direction {}", copy.kind));
  }
  const Extent& extent = copy.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return kSuccess;
  const uint32_t step = step_bytes(copy);
  const bool to_device = copy.kind == kHostToDevice || copy.kind == kDeviceToDevice;
  const bool from_device = copy.kind == kDeviceToHost || copy.kind == kDeviceToDevice;
  if (int code = check_side("cudaMemcpy to", {copy.to_array, copy.to_position, copy.to}, extent,
                            step, to_device, true))
    return code;
  return check_side("cudaMemcpy from", {copy.from_array, copy.from_position, copy.from}, extent,
                    step, from_device, false);
}

void watch_copy(const Copy3D& copy, const void* stream, bool waits, int code) {
  watch_host(HostKind::Copy, stream, [&](HostEvent& event) {
    const uint32_t step = code ? 1 : step_bytes(copy);  // a refused array may not exist
    const auto rows = [&](const Side& side) -> Rows {
      if (code) return {reinterpret_cast<uint64_t>(side.pointer.at), side.pointer.pitch, 0};
      const uint64_t pitch = side.array ? side.array->row_bytes() : side.pointer.pitch;
      const size_t count = side.array ? side.array->rows() : side.pointer.height;
      return {reinterpret_cast<uint64_t>(row_of(side, step, 0, 0)), pitch,
              pitch * (count ? count : 1)};
    };
    event.to = rows({copy.to_array, copy.to_position, copy.to});
    event.from = rows({copy.from_array, copy.from_position, copy.from});
    event.width = copy.extent.width * step;
    event.height = copy.extent.height;
    event.depth = copy.extent.depth;
    event.waits = waits;
    event.code = code;
  });
}

int perform_copy(const Copy3D& copy, const void* stream, bool waits) {
  if (int code = check_copy(copy)) {
    watch_copy(copy, stream, waits, code);
    return code;
  }
  const Extent& extent = copy.extent;
  const uint32_t step = step_bytes(copy);
  const Side to{copy.to_array, copy.to_position, copy.to},
      from{copy.from_array, copy.from_position, copy.from};
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return kSuccess;
  for (size_t z = 0; z < extent.depth; ++z) {
    for (size_t y = 0; y < extent.height; ++y) {
      std::memmove(row_of(to, step, y, z), row_of(from, step, y, z), extent.width * step);
    }
  }
  watch_copy(copy, stream, waits, kSuccess);
  return kSuccess;
}

int check_fill(const Fill& fill) {
  if (fill.element_bytes != 1 && fill.element_bytes != 2 && fill.element_bytes != 4) {
    return fail(kInvalidValue, fmt::format("cudaMemset: elements of {} bytes; expected 1, 2 or 4",
                                           fill.element_bytes));
  }
  if (fill.width == 0 || fill.height == 0) return kSuccess;
  const size_t row = fill.width * fill.element_bytes;
  if (fill.height > 1 && row > fill.pitch) {
    return fail(kInvalidPitchValue,
                fmt::format("cudaMemset: a row of {} bytes is wider than the pitch of {}", row,
                            fill.pitch));
  }
  return check_device("cudaMemset", fill.at, (fill.height - 1) * fill.pitch + row, true);
}

void watch_fill(const Fill& fill, const void* stream, bool waits, int code) {
  watch_host(HostKind::Fill, stream, [&](HostEvent& event) {
    event.to = {reinterpret_cast<uint64_t>(fill.at), fill.pitch, fill.pitch * fill.height};
    event.width = fill.width * fill.element_bytes;
    event.height = fill.height;
    event.value = fill.value;
    event.waits = waits;
    event.code = code;
  });
}

int perform_fill(const Fill& fill, const void* stream, bool waits) {
  if (int code = check_fill(fill)) {
    watch_fill(fill, stream, waits, code);
    return code;
  }
  for (size_t y = 0; y < fill.height; ++y) {
    std::byte* row = static_cast<std::byte*>(fill.at) + y * fill.pitch;
    if (fill.element_bytes == 1) {
      std::memset(row, static_cast<int>(fill.value), fill.width);
      continue;
    }
    for (size_t x = 0; x < fill.width; ++x)
      std::memcpy(row + x * fill.element_bytes, &fill.value, fill.element_bytes);
  }
  if (fill.width && fill.height) watch_fill(fill, stream, waits, kSuccess);
  return kSuccess;
}

int launch_in_stream(const KilnEngineLaunch& launch) {
  if (reinterpret_cast<uintptr_t>(launch.stream) == 0) return launch_now(launch);
  if (!stream_of(launch.stream)) return bad_stream();
  if (!is_capturing(launch.stream)) return launch_now(launch);
  KernelWork work;
  if (int code = make_kernel_work(launch, &work)) return code;
  return submit(launch.stream, std::move(work));
}

int perform(const Work& work, const void* stream) { return std::visit(Perform{stream}, work); }

}  // namespace kiln::engine
