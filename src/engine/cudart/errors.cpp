// SPDX-License-Identifier: Apache-2.0
// How are errors described, when is a kernel's fault reported, and what does cudaGetLastError
// return?
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "engine/cudart/fork.h"
#include "engine/cudart/host_events.h"
#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

// The fault of a program's kernel. CUDA reports it at the next call that waits, and then at every
// call: the context is lost until cudaDeviceReset.
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

// What has been printed to the terminal.
struct Told {
  std::mutex mutex;
  std::set<std::string> lines;
};
Told& told_messages() {
  static auto* kept = new Told;
  return *kept;
}

}  // namespace

void keep_fault(int code, std::string text) noexcept {
  DeviceFault& fault = device_fault();
  std::lock_guard lock(fault.mutex);
  if (fault.code) return;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", text.empty() ? kNoMemoryText : text.c_str());
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

// Launches by <<<>>> return no result, and many programs check only the call that waits.
bool ended_by_refusal(int* code) noexcept {
  const ThreadErrors& errors = thread_errors();
  if (!errors.refused) return false;
  try {
    *code = fail(errors.refused,
                 "an earlier launch of this program could not start: " +
                     errors.refused_message.substr(0, errors.refused_message.find('\n')));
  } catch (const std::bad_alloc&) {
    *code = fail_without_memory(errors.refused);
  }
  return true;
}

}  // namespace

bool ended_by_fault(After after, int* code) noexcept {
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
  try {
    const std::string_view text = fault.text.empty() ? kNoMemoryText : std::string_view(fault.text);
    *code = fail(kept, fmt::format("an earlier kernel of this program failed: {}",
                                   text.substr(0, text.find('\n'))));
  } catch (const std::bad_alloc&) {
    *code = fail_without_memory(kept);
  }
  return true;
}

void tell(int code) {
  if (code == kNotReady || code == kept_fault()) return;
  constexpr size_t kMostLines = 20;
  Told& told = told_messages();
  std::lock_guard lock(told.mutex);
  const std::string& message = thread_errors().message;
  if (message.empty() || told.lines.size() >= kMostLines || !told.lines.insert(message).second)
    return;
  std::fflush(stdout);
  std::fprintf(stderr, "kiln: %s\n", message.c_str());
}

int fail_for_exception(const std::exception& error) noexcept {
  static std::atomic<bool> told{false};
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error);
  const bool again = told.exchange(true);
  if (!again) std::fprintf(stderr, "kiln: %s\n", memory ? kNoMemoryText : error.what());
  if (memory) return fail_without_memory(kMemoryAllocation);
  try {
    return fail(kUnknown, std::string("a bug in the engine: ") + error.what());
  } catch (const std::bad_alloc&) {
    return fail_without_memory(kUnknown);
  }
}

void fork_faults(ForkPhase phase) {
  hold(device_fault().mutex, phase);
  hold(told_messages().mutex, phase);
}

namespace {

int get_last_error() {
  int code = thread_errors().last;
  thread_errors().last = thread_errors().refused = kSuccess;
  watch_host(HostKind::ErrorRead, nullptr);
  return code;
}
int peek_last_error() {
  watch_host(HostKind::ErrorRead, nullptr);
  return thread_errors().last;
}

const char* error_name(int code) {
  switch (code) {
#define CUDA_ERROR(number, name, text) \
  case number:                         \
    return #name;
#include "engine/cuda/errors.def"
#undef CUDA_ERROR
  }
  return "unrecognized error code";
}
const char* error_string(int code) {
  switch (code) {
#define CUDA_ERROR(number, name, text) \
  case number:                         \
    return text;
#include "engine/cuda/errors.def"
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
