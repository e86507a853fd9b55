// SPDX-License-Identifier: Apache-2.0
// How do errors read, where does a kernel's fault appear, and what does cudaGetLastError answer?
#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "engine/fault.h"
#include "engine/runtime.h"
#include "engine/state.h"

namespace kiln::engine {
namespace {

// The fault of a program's kernel. CUDA reports it at the next call that waits, and then at every call: the context is
// lost until cudaDeviceReset.
struct DeviceFault {
  std::mutex mutex;
  std::atomic<int> code{0};
  std::atomic<bool> told{false};
  std::string text;
};
DeviceFault& device_fault() {
  static auto* kept = new DeviceFault;
  return *kept;
}

}  // namespace

void keep_fault(int code, std::string text) {
  DeviceFault& fault = device_fault();
  std::lock_guard lock(fault.mutex);
  if (fault.code) return;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", text.c_str());
  fault.text = std::move(text);
  fault.code = code;
}

int kept_fault() { return device_fault().code.load(std::memory_order_acquire); }

void forget_fault() {
  DeviceFault& fault = device_fault();
  std::lock_guard lock(fault.mutex);
  fault.code = 0;
  fault.told = false;
}

namespace {

// Launches by <<<>>> have no result to look at, and many programs ask only the call that waits.
bool ended_by_refusal(int* code) {
  const ThreadErrors& errors = thread_errors();
  if (!errors.refused) return false;
  *code = fail(errors.refused, "an earlier launch of this program could not begin: " +
                                   errors.refused_message.substr(0, errors.refused_message.find('\n')));
  return true;
}

}  // namespace

bool ended_by_fault(After after, int* code) {
  DeviceFault& fault = device_fault();
  const int kept = fault.code.load(std::memory_order_acquire);
  if (kept == 0 && after == After::Waits) return ended_by_refusal(code);
  if (kept == 0 || after == After::Normal) return false;
  if (after == After::Skipped && !fault.told) {
    *code = kSuccess;
    return true;
  }
  std::lock_guard lock(fault.mutex);
  fault.told = true;
  *code = fail(kept, "an earlier kernel of this program failed: " + fault.text.substr(0, fault.text.find('\n')));
  return true;
}

void tell(int code) {
  if (code == kNotReady || code == kept_fault()) return;
  constexpr size_t kMostLines = 20;
  static std::mutex mutex;
  static auto* told = new std::set<std::string>;
  std::lock_guard lock(mutex);
  const std::string& message = thread_errors().message;
  if (message.empty() || told->size() >= kMostLines || !told->insert(message).second) return;
  std::fflush(stdout);
  std::fprintf(stderr, "kiln: %s\n", message.c_str());
}

int fail_for_exception(const std::exception* error) {
  if (dynamic_cast<const std::bad_alloc*>(error)) return fail(kMemoryAllocation, "the engine has no memory left");
  return fail(kUnknown, std::string("a bug in the engine: ") + error->what());
}

namespace {

int get_last_error() {
  int code = thread_errors().last;
  thread_errors().last = thread_errors().refused = kSuccess;
  return code;
}
int peek_last_error() { return thread_errors().last; }

const char* error_name(int code) {
  switch (code) {
#define CUDA_ERROR(number, name, text) \
  case number:                         \
    return #name;
#include "engine/cuda_errors.def"
#undef CUDA_ERROR
  }
  return "unrecognized error code";
}
const char* error_string(int code) {
  switch (code) {
#define CUDA_ERROR(number, name, text) \
  case number:                         \
    return text;
#include "engine/cuda_errors.def"
#undef CUDA_ERROR
  }
  return "unrecognized error code";
}

constexpr auto address = [](auto* function) { return reinterpret_cast<void*>(function); };

}  // namespace

std::span<const RuntimeFunction> runtime_errors() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaGetLastError", address(get_last_error)},
      {"cudaPeekAtLastError", address(peek_last_error)},
      {"cudaGetErrorName", address(error_name)},
      {"cudaGetErrorString", address(error_string)},
  };
  return kFunctions;
}

}  // namespace kiln::engine
