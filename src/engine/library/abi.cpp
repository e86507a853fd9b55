// SPDX-License-Identifier: Apache-2.0
// What does libkiln_engine.so export? kiln_engine(), the table of engine_abi.h.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "engine/cudart/environment.h"
#include "engine/cudart/fork.h"
#include "engine/cudart/listener.h"
#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"
#include "engine/cudart/work.h"
#include "engine/library/level.h"
#include "engine/library/watching.h"
#include "engine/machine/fault.h"
#include "engine/memory/budget.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {
namespace {

// No exception crosses the C interface.
template <class Body>
int guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail_for_exception(error);
  }
}

// Registration returns no result: if something could not be kept, the launch that needs it fails.
template <class Body>
void registered(Body body) noexcept {
  if (guarded([&] {
        body();
        return int{kSuccess};
      })) {
    registrations_lost = true;
  }
}

void* register_image(const void* wrapper) {
  void* out = nullptr;
  registered([&] {
    auto image = std::make_unique<RegisteredImage>();
    image->wrapper = wrapper;
    std::lock_guard lock(state().mutex);
    state().images.push_back(std::move(image));
    out = state().images.back().get();
  });
  return out;
}

void register_function(void* image, const void* host_function, const char* device_name) {
  if (!image) return;  // there was no memory for it
  registered([&] {
    auto function = std::make_unique<RegisteredFunction>();
    function->image = static_cast<RegisteredImage*>(image);
    function->name = device_name;
    std::lock_guard lock(state().mutex);
    state().functions[host_function] = std::move(function);
  });
}

void register_variable(void* image, void* host_variable, const char* device_name, uint64_t bytes,
                       uint32_t flags) {
  if (!image) return;
  registered([&] {
    auto* of = static_cast<RegisteredImage*>(image);
    {
      std::lock_guard lock(of->mutex);
      of->variables.push_back({host_variable, device_name, bytes, flags});
    }
    std::lock_guard lock(state().mutex);
    state().variables[host_variable] = {of, device_name};
  });
}

void unregister_image(void* image) {
  registered([&] {
    std::lock_guard lock(state().mutex);
    std::erase_if(state().functions,
                  [&](const auto& entry) { return entry.second->image == image; });
    std::erase_if(state().variables,
                  [&](const auto& entry) { return entry.second.image == image; });
    std::erase_if(state().images, [&](const auto& entry) { return entry.get() == image; });
  });
}

int launch(const KilnEngineLaunch* what) {
  return guarded([&] {
    if (!(what->flags & KILN_LAUNCH_DEFERRED)) return launch_now(*what);
    int code = 0;
    if (ended_by_fault(After::Skipped, &code)) return code;
    return launch_in_stream(*what);
  });
}

void* function_handle(const void* host_function) {
  std::lock_guard lock(state().mutex);
  auto found = state().functions.find(host_function);
  return found == state().functions.end() ? nullptr : found->second.get();
}

const char* sanitize(const char* checks) {
  const char* answer = nullptr;
  guarded([&] {
    answer = sanitize_part(checks);
    return int{kSuccess};
  });
  return answer ? answer : "{\"error\": \"out of memory\"}";
}

void* find_runtime_function(const char* name) {
  // For kiln.test: found by name, so that an engine without it is not an error.
  if (std::string_view(name) == "kiln_sanitize") return reinterpret_cast<void*>(&sanitize);
  void* out = nullptr;
  guarded([&] {
    out = runtime_function(name);
    return int{kSuccess};
  });
  return out;
}

const char* last_message() {
  const ThreadErrors& errors = thread_errors();
  return errors.words ? errors.words : errors.message.c_str();
}

void listen(KilnLaunchListener listener, void* user) {
  guarded([&] {
    listen_to_launches(listener, user);
    return int{kSuccess};
  });
}

int count_launches(const char* path) {
  return guarded([&] { return count_launches_into(path); });
}

constexpr KilnEngine kEngine = {
    KILN_ENGINE_ABI_VERSION,
    sizeof(KilnEngine),
    KILN_VERSION_STRING,
    &register_image,
    &register_function,
    &register_variable,
    &unregister_image,
    &launch,
    &find_runtime_function,
    &last_message,
    &listen,
    &serve_ops,
    &function_handle,
    &count_launches,
};

// KILN_SANITIZE is invalid. Each launch fails, but a program may ignore errors; it must not end as
// if its kernels had been checked.
void refuse_launches(const std::string& problem) {
  static const std::string kept = problem;
  state().device.refusal = kept.c_str();
  std::fprintf(stderr, "error: %s\n", kept.c_str());
  ::on_exit(
      [](int code, void*) {
        if (code != 0) return;
        std::fflush(nullptr);
        ::_exit(2);
      },
      nullptr);
}

// Creates now what is otherwise created at first use: a fork in the middle of that would leave the
// child waiting for a thread that it does not have. If there is no memory, this happens later.
[[gnu::constructor]] void make_all_that_lasts() {
  guarded([] {
    state().device.make_sink = [] {
      std::string problem;
      Sink* const sink = watchers_of(environment(), &problem);
      if (!problem.empty()) refuse_launches(problem);
      return sink;
    };
    stream_of(nullptr);
    default_memory_limit();
    runtime_function("");
    rehearse_fork();
    return int{kSuccess};
  });
}

}  // namespace
}  // namespace kiln::engine

extern "C" __attribute__((visibility("default"))) const KilnEngine* kiln_engine(
    uint32_t abi_version_wanted) {
#if defined(KILN_ENGINE_CHOOSES_LEVEL)
  using namespace kiln::engine;
  static const KilnEngine* const kBetter =
      engine_of_level(level_for(environment().level), reinterpret_cast<const void*>(&kiln_engine),
                      KILN_ENGINE_ABI_VERSION);
  if (kBetter && abi_version_wanted == KILN_ENGINE_ABI_VERSION) return kBetter;
#endif
  return abi_version_wanted == KILN_ENGINE_ABI_VERSION ? &kiln::engine::kEngine : nullptr;
}
