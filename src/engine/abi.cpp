// SPDX-License-Identifier: Apache-2.0
// What does libkiln_engine.so export? kiln_engine(), the table of engine_abi.h.
#include <algorithm>
#include <exception>

#include "engine/environment.h"
#include "engine/fault.h"
#include "engine/level.h"
#include "engine/listener.h"
#include "engine/runtime.h"
#include "engine/state.h"
#include "engine/work.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {
namespace {

// Nothing is thrown across the C interface: no memory is the only thing that can still go wrong.
template <class Body>
int guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(kMemoryAllocation, "the engine has no memory left");
  } catch (const std::exception& error) {
    return fail(kUnknown, std::string("a bug in the engine: ") + error.what());
  }
}

void* register_image(const void* wrapper) {
  auto image = std::make_unique<RegisteredImage>();
  image->wrapper = wrapper;
  std::lock_guard lock(state().mutex);
  state().images.push_back(std::move(image));
  return state().images.back().get();
}

void register_function(void* image, const void* host_function, const char* device_name) {
  auto function = std::make_unique<RegisteredFunction>();
  function->image = static_cast<RegisteredImage*>(image);
  function->name = device_name;
  std::lock_guard lock(state().mutex);
  state().functions[host_function] = std::move(function);
}

void register_variable(void* image, void* host_variable, const char* device_name, uint64_t bytes, uint32_t flags) {
  auto* registered = static_cast<RegisteredImage*>(image);
  {
    std::lock_guard lock(registered->mutex);
    registered->variables.push_back({host_variable, device_name, bytes, flags});
  }
  std::lock_guard lock(state().mutex);
  state().variables[host_variable] = {registered, device_name};
}

void unregister_image(void* image) {
  std::lock_guard lock(state().mutex);
  std::erase_if(state().functions, [&](const auto& entry) { return entry.second->image == image; });
  std::erase_if(state().variables, [&](const auto& entry) { return entry.second.image == image; });
  std::erase_if(state().images, [&](const auto& entry) { return entry.get() == image; });
}

int launch(const KilnEngineLaunch* what) {
  return guarded([&] {
    if (!(what->flags & KILN_LAUNCH_DEFERRED)) return launch_now(*what);
    int code = 0;
    if (ended_by_fault(After::Skipped, &code)) return code;
    return launch_in_stream(*what);
  });
}

const char* last_message() { return thread_errors().message.c_str(); }

constexpr KilnEngine kEngine = {
    KILN_ENGINE_ABI_VERSION, sizeof(KilnEngine), KILN_VERSION_STRING, &register_image,
    &register_function,      &register_variable, &unregister_image,   &launch,
    &runtime_function,       &last_message,      &listen_to_launches, &serve_ops,
};

}  // namespace
}  // namespace kiln::engine

extern "C" __attribute__((visibility("default"))) const KilnEngine* kiln_engine(uint32_t abi_version_wanted) {
#if defined(KILN_ENGINE_CHOOSES_LEVEL)
  using namespace kiln::engine;
  static const KilnEngine* const kBetter = engine_of_level(
      level_for(environment().level), reinterpret_cast<const void*>(&kiln_engine), KILN_ENGINE_ABI_VERSION);
  if (kBetter && abi_version_wanted == KILN_ENGINE_ABI_VERSION) return kBetter;
#endif
  return abi_version_wanted == KILN_ENGINE_ABI_VERSION ? &kiln::engine::kEngine : nullptr;
}
