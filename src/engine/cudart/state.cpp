// SPDX-License-Identifier: Apache-2.0
// How are images, kernels and variables found, each made ready when it is first used?
#include "engine/cudart/state.h"

#include <fmt/format.h>

#include <cstring>

#include "binary/fatbin.h"
#include "engine/cudart/fork.h"
#include "engine/cudart/threads.h"
#include "engine/machine/fault.h"

namespace kiln::engine {

State& state() {
  static State* kept = [] {
    auto* made = new State;
    made->device.pool = &process_pool;
    watch_forks();
    return made;
  }();
  return *kept;
}

ThreadErrors& thread_errors() {
  thread_local ThreadErrors errors;
  return errors;
}

int fail(int code, std::string message) noexcept {
  ThreadErrors& errors = thread_errors();
  errors.last = code;
  errors.message = std::move(message);
  errors.words = nullptr;
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
  if (phase == ForkPhase::Child) state().device.budget->forget();
}

namespace {

void load_image(RegisteredImage& registered) {
  auto texts = binary::ptx_in_wrapper(registered.wrapper);
  if (!texts) {
    registered.load_code = kInvalidKernelImage;
    registered.load_error = format(texts.error());
    return;
  }
  // The newest that the virtual device can run; else the oldest of those that are too new, which
  // the engine reads all the same.
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
    registered.load_error = format(
        Error{Fault::Work, "cannot run this library on the engine", "its fat binary holds no PTX",
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
  // The host reads a managed variable through a pointer of its own.
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
  std::lock_guard lock(function->image->mutex);
  if (!function->resolved) {
    if (!function->image->image && function->image->load_code == 0) load_image(*function->image);
    if (!function->image->image) {
      function->error_code = function->image->load_code;
      function->error = function->image->load_error;
    } else {
      auto program = function->image->image->kernel(function->name);
      if (program) {
        function->facts.program = *program;
        if (auto rows = function->image->image->kernel(function->name, true))
          function->facts.program_for_rows = *rows;
        function->facts.static_shared_bytes =
            function->image->image->static_shared_bytes(**program);
      } else {
        const ptx::Function* known = function->image->image->module().find(function->name);
        function->error_code = known ? kNotSupported : kInvalidDeviceFunction;
        function->error = format(program.error());
      }
    }
    function->resolved = true;
  }
  if (function->error_code) {
    *code = function->error_code;
    *text = function->error;
    return nullptr;
  }
  return function;
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
  RegisteredFunction* function = resolved_function(launch.host_function, &code, &text);
  const bool deferred = launch.flags & KILN_LAUNCH_DEFERRED;
  if (!function && deferred) {
    thread_errors().refused = code;
    thread_errors().refused_message = text;
  }
  if (!function) return fail(code, std::move(text));
  if (deferred && kept_fault()) return kSuccess;  // behind a fault nothing runs
  KernelFacts facts = function->facts;
  facts.shared_limit = function->shared_limit();
  LaunchOutcome outcome = launch_kernel(*function->image->image, state().device, facts, launch);
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
    // A GPU does not run out of memory here, so many a program asks only the calls that wait: for
    // it the launch is lost as one that faults, and no later call hands out memory that no kernel
    // has written.
    if (!(launch.flags & KILN_LAUNCH_DEFERRED)) return fail_without_memory(kMemoryAllocation);
    keep_fault(kMemoryAllocation, {});
    return kSuccess;
  }
}

}  // namespace kiln::engine
