// SPDX-License-Identifier: Apache-2.0
// What work can be put into a stream? Each kind is data, so that it can run now or become a node of
// a graph.
#pragma once

#include <cxxabi.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/cuda/types.h"

namespace kiln::engine {

struct CudaEvent;
struct Graph;

// A kernel with copies of its arguments, because the caller may be gone when it runs.
struct KernelWork {
  const void* function = nullptr;
  KilnDim3 grid{1, 1, 1}, block{1, 1, 1}, cluster{0, 0, 0};
  uint64_t shared_bytes = 0;
  uint32_t flags = 0;  // KILN_LAUNCH_*
  std::vector<std::vector<std::byte>> values;
  std::vector<void*> pointers;  // to the values, as a launch expects them

  KernelWork() = default;
  KernelWork(const KernelWork& other) { *this = other; }
  KernelWork(KernelWork&&) = default;
  KernelWork& operator=(const KernelWork& other);
  KernelWork& operator=(KernelWork&&) = default;
};
struct RecordWork {
  CudaEvent* event;
};
struct WaitWork {
  CudaEvent* event;
};
// The address is assigned when the node is created and stays; copies of the graph share the memory.
struct AllocateWork {
  AllocationNode node;
  std::shared_ptr<void> memory;
};
struct FreeWork {
  void* at;
};
struct ChildWork {
  std::shared_ptr<Graph> graph;
};
struct EmptyWork {};

using Work = std::variant<EmptyWork, KernelWork, Copy3D, Fill, HostCall, RecordWork, WaitWork,
                          AllocateWork, FreeWork, ChildWork>;

NodeType type_of(const Work& work);

constexpr const char* kGraphMemory = "memory of a graph";
int make_allocate_work(const AllocationNode& node, AllocateWork* out);
// Copies the kernel's arguments. Fails if the kernel is unknown or cannot run here.
int make_kernel_work(const KilnEngineLaunch& launch, KernelWork* out);

// Calls a function of the program in a stream. An exception becomes a fault of the device, like a
// kernel's, and does not reach the program, because on a GPU another thread would have called the
// function.
int fail_for_host_function(const char* what) noexcept;
template <class Function>
int call_host(Function function) {
  try {
    function();
    return 0;
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is being cancelled
  } catch (const std::exception& error) {
    return fail_for_host_function(error.what());
  } catch (...) {
    return fail_for_host_function("not a std::exception");
  }
}

// One row of bytes.
inline Copy3D flat(void* to, const void* from, size_t bytes, int kind) {
  Copy3D copy{};
  copy.from = {const_cast<void*>(from), bytes, bytes, 1};
  copy.to = {to, bytes, bytes, 1};
  copy.extent = {bytes, 1, 1};
  copy.kind = kind;
  return copy;
}

// Runs the work to its end. The fault of a kernel is kept for the next call that waits.
int perform(const Work& work, const void* stream);
// `waits`: on a GPU, too, the call returns only when it is done.
int perform_copy(const Copy3D& copy, const void* stream = nullptr, bool waits = true);
int perform_fill(const Fill& fill, const void* stream = nullptr, bool waits = true);
// Report to watchers. `code`: the call was refused.
void watch_copy(const Copy3D& copy, const void* stream, bool waits, int code);
void watch_fill(const Fill& fill, const void* stream, bool waits, int code);
// From now on copies and fills treat all memory of the process as device memory, for the CPU
// tensors of ops.
void serve_ops();
// Check the pointers and sizes of a copy or fill, before anything is copied and also while a graph
// is built.
int check_copy(const Copy3D& copy);
int check_fill(const Fill& fill);

}  // namespace kiln::engine
