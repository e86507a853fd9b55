// SPDX-License-Identifier: Apache-2.0
// What did the environment ask of the engine?
#include "engine/environment.h"

#include <cstdlib>

namespace kiln::engine {
namespace {

uint64_t number_from(const char* name) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : 0;
}

}  // namespace

Environment environment() {
  Environment out;
  out.threads = static_cast<uint32_t>(number_from("KILN_ENGINE_THREADS"));
  out.step_limit = number_from("KILN_ENGINE_STEP_LIMIT");
  out.memory_mb = number_from("KILN_ENGINE_MEMORY_MB");
  if (const char* level = std::getenv("KILN_ENGINE_LEVEL")) out.level = level;
  return out;
}

}  // namespace kiln::engine
