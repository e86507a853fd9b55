// SPDX-License-Identifier: Apache-2.0
// Which functions of the CUDA runtime does the engine have, and what wraps each of them? Lists of
// names, one per file; the ABI is that of CUDA 13.
#pragma once

#include <exception>
#include <new>
#include <span>

#include "engine/cuda/types.h"

namespace kiln::engine {

struct RuntimeFunction {
  const char* name;
  void* address;
};

std::span<const RuntimeFunction> runtime_memory();
std::span<const RuntimeFunction> runtime_copies();
std::span<const RuntimeFunction> runtime_arrays();
std::span<const RuntimeFunction> runtime_streams();
std::span<const RuntimeFunction> runtime_capture();
std::span<const RuntimeFunction> runtime_graphs();
std::span<const RuntimeFunction> runtime_graph_nodes();
std::span<const RuntimeFunction> runtime_device();
std::span<const RuntimeFunction> runtime_launch();
std::span<const RuntimeFunction> runtime_driver();
std::span<const RuntimeFunction> runtime_errors();

// What a call does if a kernel of the program has faulted and the fault has not been reported.
enum class After {
  Told,   // like a call that waits for the device: reports the fault
  Waits,  // the same, and also reports a launch that could not begin if nothing has asked about it
  Skipped,  // like asynchronous work after the fault: succeeds and does nothing
  Normal    // needs no device
};
// Returns true if the call is over, with `code`.
bool ended_by_fault(After after, int* code) noexcept;
// Prints the reason for a code that a runtime call returns to the terminal, once.
void tell(int code);
int fail_for_exception(const std::exception& error) noexcept;

// No exception reaches the program, and every call sees the fault of an earlier kernel.
template <After after, class Signature, Signature function>
struct Guarded;
template <After after, class... Arguments, int (*function)(Arguments...)>
struct Guarded<after, int (*)(Arguments...), function> {
  static int call(Arguments... arguments) {
    int code = 0;
    if (ended_by_fault(after, &code)) return code;
    try {
      code = function(arguments...);
      if (code) tell(code);
    } catch (const std::exception& error) {
      if (!code) code = fail_for_exception(error);
    }
    return code;
  }
};
template <auto function, After after = After::Told>
void* entry() {
  return reinterpret_cast<void*>(&Guarded<after, decltype(function), function>::call);
}
template <auto function>
void* waits() {
  return entry<function, After::Waits>();
}
template <auto function>
void* behind() {
  return entry<function, After::Skipped>();
}
template <auto function>
void* always() {
  return entry<function, After::Normal>();
}

}  // namespace kiln::engine
