// SPDX-License-Identifier: Apache-2.0
// How are images, kernels and variables found, and prepared when they are first used?
#include "engine/cudart/state.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "binary/fatbin.h"
#include "engine/cudart/fork.h"
#include "engine/cudart/host_events.h"
#include "engine/cudart/threads.h"
#include "engine/machine/fault.h"

namespace kiln::engine {

State& state() {
  static State* kept = [] {
    auto* made = new State;
    watch_forks();
    return made;
  }();
  return *kept;
}

ThreadErrors& thread_errors() {
  thread_local ThreadErrors errors;
  return errors;
}

namespace {

// If there is no memory, the event is lost, but the program continues.
void watch_failure(int code, const std::string& message) noexcept {
  if (code == kNotReady) return;
  try {
    watch_host(HostKind::Failed, nullptr, [&](HostEvent& event) {
      event.code = code;
      event.text = message;
    });
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

int fail(int code, std::string message) noexcept {
  ThreadErrors& errors = thread_errors();
  errors.last = code;
  errors.message = std::move(message);
  errors.words = nullptr;
  watch_failure(code, errors.message);
  return code;
}

int fail_without_memory(int code) noexcept {
  ThreadErrors& errors = thread_errors();
  errors.last = code;
  errors.words = kNoMemoryText;
  return code;
}

void fork_state(ForkPhase phase) {
  if (phase == ForkPhase::Prepare) hold(state().mutex, phase);
  for (auto& image : state().images) hold(image->mutex, phase);
  if (phase != ForkPhase::Prepare) hold(state().mutex, phase);
}

void fork_heap(ForkPhase phase) { state().device.heap.at_fork(phase); }

void fork_budget(ForkPhase phase) {
  if (phase != ForkPhase::Child) return;
  state().device.budget->forget();
  // Held by launches and calls of threads that the child does not have.
  new (&state().device.watching) std::mutex;
  new (&state().device.pending_mutex) std::mutex;
  state().device.pending.clear();
}

namespace {

void load_image(RegisteredImage& registered) {
  auto texts = binary::ptx_in_wrapper(registered.wrapper);
  if (!texts) {
    registered.load_code = kInvalidKernelImage;
    registered.load_error = format(texts.error());
    return;
  }
  // The newest text that the virtual device can run; otherwise the oldest of those that are too
  // new, which the engine reads anyway.
  const binary::PtxText* best = nullptr;
  for (const binary::PtxText& text : *texts) {
    bool fits = text.arch <= kDeviceArch;
    bool best_fits = best && best->arch <= kDeviceArch;
    if (!best || (fits && (!best_fits || text.arch > best->arch)) ||
        (!fits && !best_fits && text.arch < best->arch))
      best = &text;
  }
  if (!best) {
    registered.load_code = kNoKernelImageForDevice;
    registered.load_error = format(Error{
        Fault::Work, "cannot run this library on the engine", "its fat binary contains no PTX",
        "compile with -gencode arch=compute_90,code=compute_90, or build it with kiln"});
    return;
  }
  auto image = std::make_unique<Image>(state().device.heap);
  if (auto status = image->load(best->text); !status) {
    registered.load_code = kInvalidPtx;
    registered.load_error = format(status.error());
    return;
  }
  registered.image = std::move(image);
  registered.arch = best->arch;
  // The host accesses a managed variable through its own pointer.
  for (const auto& pending : registered.variables) {
    if (!(pending.flags & KILN_VARIABLE_MANAGED)) continue;
    if (const auto* memory = registered.image->variable(pending.name))
      *static_cast<void**>(pending.host) = memory->at;
  }
}

}  // namespace

Image* loaded(RegisteredImage& registered, int* code, std::string* text) {
  std::lock_guard lock(registered.mutex);
  if (!registered.image && registered.load_code == 0) load_image(registered);
  if (!registered.image) {
    *code = registered.load_code;
    *text = registered.load_error;
  }
  return registered.image.get();
}

namespace {

// Requires the image's mutex.
void resolve(RegisteredFunction& function) {
  RegisteredImage& of = *function.image;
  if (!of.image && of.load_code == 0) load_image(of);
  if (!of.image) {
    function.error_code = of.load_code;
    function.error = of.load_error;
    return;
  }
  function.kernel = std::make_unique<Kernel>(*of.image, function.name);
  if (auto program = function.kernel->any(); !program) {
    const ptx::Function* known = of.image->module().find(function.name);
    function.error_code = known ? kNotSupported : kInvalidDeviceFunction;
    function.error = format(program.error());
    return;
  }
  function.ready.store(function.kernel.get(), std::memory_order_release);
}

}  // namespace

RegisteredFunction* resolved(RegisteredFunction* function, int* code, std::string* text) {
  if (function->ready.load(std::memory_order_acquire)) return function;
  std::lock_guard lock(function->image->mutex);
  if (!function->resolved) {
    resolve(*function);
    function->resolved = true;
  }
  if (!function->error_code) return function;
  *code = function->error_code;
  *text = function->error;
  return nullptr;
}

RegisteredFunction* resolved_function(const void* host_function, int* code, std::string* text) {
  RegisteredFunction* function = nullptr;
  {
    std::lock_guard lock(state().mutex);
    auto found = state().functions.find(host_function);
    if (found != state().functions.end()) function = found->second.get();
  }
  if (!function && registrations_lost.load()) {
    *code = kMemoryAllocation;
    *text =
        "no memory was left when the libraries of this process were registered: some kernels are "
        "unknown";
    return nullptr;
  }
  if (!function) {
    *code = kInvalidDeviceFunction;
    *text =
        fmt::format("cannot launch the function at {}: no library has registered it as a kernel",
                    fmt::ptr(host_function));
    return nullptr;
  }
  return resolved(function, code, text);
}

const Image::VariableMemory* resolved_variable(const void* host_variable, int* code,
                                               std::string* text) {
  RegisteredVariable variable;
  {
    std::lock_guard lock(state().mutex);
    auto found = state().variables.find(host_variable);
    if (found != state().variables.end()) variable = found->second;
  }
  if (!variable.image) {
    *code = kInvalidSymbol;
    *text =
        fmt::format("no library has registered a device variable at {}", fmt::ptr(host_variable));
    return nullptr;
  }
  Image* image = loaded(*variable.image, code, text);
  if (!image) return nullptr;
  const Image::VariableMemory* memory = image->variable(variable.name);
  if (!memory) {
    *code = kInvalidSymbol;
    *text = fmt::format("the variable '{}' is not in the library's PTX", variable.name);
  }
  return memory;
}

namespace {

int launch_or_throw(const KilnEngineLaunch& launch) {
  int code = 0;
  std::string text;
  const bool has_handle = launch.struct_bytes >= sizeof launch && launch.function;
  RegisteredFunction* function =
      has_handle ? resolved(static_cast<RegisteredFunction*>(launch.function), &code, &text)
                 : resolved_function(launch.host_function, &code, &text);
  const bool deferred = launch.flags & KILN_LAUNCH_DEFERRED;
  if (!function && deferred) {
    thread_errors().refused = code;
    thread_errors().refused_message = text;
  }
  if (!function) return fail(code, std::move(text));
  if (deferred && kept_fault()) return kSuccess;  // nothing runs after a fault
  LaunchOutcome outcome =
      launch_kernel(state().device, *function->kernel, function->shared_limit(), launch);
  if (outcome.code && outcome.ran && deferred) {
    keep_fault(outcome.code, std::move(outcome.text));
    return kSuccess;
  }
  if (outcome.code && outcome.text.empty()) return fail_without_memory(outcome.code);
  if (outcome.code) return fail(outcome.code, std::move(outcome.text));
  return kSuccess;
}

}  // namespace

int launch_now(const KilnEngineLaunch& launch) {
  try {
    return launch_or_throw(launch);
  } catch (const std::bad_alloc&) {
    // A GPU does not run out of memory here, so many programs check only the calls that wait. So
    // the launch counts as one that faults, and no later call returns memory that no kernel has
    // written.
    if (!(launch.flags & KILN_LAUNCH_DEFERRED)) return fail_without_memory(kMemoryAllocation);
    keep_fault(kMemoryAllocation, {});
    return kSuccess;
  }
}

}  // namespace kiln::engine
