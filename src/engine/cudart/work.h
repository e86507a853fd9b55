// SPDX-License-Identifier: Apache-2.0
// What can a stream be asked to do? Each kind of work as data, so that it can run now or become a
// node of a graph.
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

// A kernel with copies of its arguments: who asked for it may have gone when it runs.
struct KernelWork {
  const void* function = nullptr;
  KilnDim3 grid{1, 1, 1}, block{1, 1, 1}, cluster{0, 0, 0};
  uint64_t shared_bytes = 0;
  uint32_t flags = 0;  // KILN_LAUNCH_*
  std::vector<std::vector<std::byte>> values;
  std::vector<void*> pointers;  // to the values, as a launch takes them

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
// The address is given when the node is made and stays; copies of the graph share the memory.
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
// The kernel's arguments copied; an error when the kernel is unknown or cannot run here.
int make_kernel_work(const KilnEngineLaunch& launch, KernelWork* out);

// A function of the program in a stream. What it throws becomes a fault of the device, as a
// kernel's: the exception cannot reach the program, for on a GPU another thread would have called
// the function.
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

// Runs it to its end. A fault of a kernel is kept for the next call that waits.
int perform(const Work& work, const void* stream);
// `waits`: the call returns when it is done, on a GPU too.
int perform_copy(const Copy3D& copy, const void* stream = nullptr, bool waits = true);
int perform_fill(const Fill& fill, const void* stream = nullptr, bool waits = true);
// To who watches; `code`: it was refused.
void watch_copy(const Copy3D& copy, const void* stream, bool waits, int code);
void watch_fill(const Fill& fill, const void* stream, bool waits, int code);
// From now on the process' own memory is device memory to copies and fills too: an op's CPU
// tensors.
void serve_ops();
// Are the pointers and sizes of a copy or a fill right? Asked before anything is copied, also while
// a graph is built.
int check_copy(const Copy3D& copy);
int check_fill(const Fill& fill);

}  // namespace kiln::engine
