// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/arrays.h"

namespace kiln::engine {

bool Textures::is_array(const void* handle) const {
  std::lock_guard lock(mutex);
  return arrays.count(handle) != 0;
}

const TextureObject* Textures::find(uint64_t handle) const {
  std::lock_guard lock(mutex);
  auto found = objects.find(handle);
  return found == objects.end() ? nullptr : found->second.get();
}

}  // namespace kiln::engine
