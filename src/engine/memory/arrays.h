// SPDX-License-Identifier: Apache-2.0
// How does the engine represent CUDA arrays, textures and surfaces? As rows of elements in ordinary
// memory, and a description of how to read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/cuda/types.h"

namespace kiln::engine {

// cudaArray flags.
enum : unsigned { kLayered = 1, kSurfaceLoadStore = 2, kCubemap = 4 };

struct Array {
  ChannelDesc desc{};
  Extent extent{};  // in elements; a height or depth of 0 stays as the caller gave it
  unsigned flags = 0;
  uint32_t element_bytes = 0;
  std::vector<std::byte> bytes;

  size_t row_bytes() const { return extent.width * element_bytes; }
  size_t rows() const { return extent.height ? extent.height : 1; }
  size_t slices() const { return extent.depth ? extent.depth : 1; }
  std::byte* row(size_t y, size_t z) { return bytes.data() + (z * rows() + y) * row_bytes(); }
};

// What the handle of a texture or surface refers to.
struct TextureObject {
  ResourceDesc resource;
  TextureDesc texture;
  bool surface = false;
  // The elements, whatever the kind of resource.
  std::byte* data = nullptr;
  ChannelDesc desc{};
  uint32_t element_bytes = 0;
  size_t width = 0, height = 0, depth = 0, pitch = 0;  // height and depth at least 1
  unsigned flags = 0;                                  // of the array
};

// All live arrays and objects. The methods are thread-safe; code that changes the members locks the
// mutex.
struct Textures {
  mutable std::mutex mutex;
  std::set<const void*> arrays;
  std::unordered_map<uint64_t, std::unique_ptr<TextureObject>> objects;
  uint64_t next = 1;

  bool is_array(const void* handle) const;
  // Returns the object of a handle that a kernel received, or null.
  const TextureObject* find(uint64_t handle) const;
};

}  // namespace kiln::engine
