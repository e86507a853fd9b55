// SPDX-License-Identifier: Apache-2.0
// What are CUDA arrays, textures and surfaces on the engine? Rows of elements in ordinary memory,
// and how to read them.
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
  Extent extent{};  // in elements; a height or depth of 0 as the caller gave it
  unsigned flags = 0;
  uint32_t element_bytes = 0;
  std::vector<std::byte> bytes;

  size_t row_bytes() const { return extent.width * element_bytes; }
  size_t rows() const { return extent.height ? extent.height : 1; }
  size_t slices() const { return extent.depth ? extent.depth : 1; }
  std::byte* row(size_t y, size_t z) { return bytes.data() + (z * rows() + y) * row_bytes(); }
};

// What a texture or surface object stands for.
struct TextureObject {
  ResourceDesc resource;
  TextureDesc texture;
  bool surface = false;
  // Where the elements are, whatever the resource is.
  std::byte* data = nullptr;
  ChannelDesc desc{};
  uint32_t element_bytes = 0;
  size_t width = 0, height = 0, depth = 0, pitch = 0;  // height and depth at least 1
  unsigned flags = 0;                                  // of the array
};

// The arrays and objects that are alive. Its methods are thread-safe; who changes it takes the
// mutex.
struct Textures {
  mutable std::mutex mutex;
  std::set<const void*> arrays;
  std::unordered_map<uint64_t, std::unique_ptr<TextureObject>> objects;
  uint64_t next = 1;

  bool is_array(const void* handle) const;
  // The object behind the handle that a kernel was given; null: none.
  const TextureObject* find(uint64_t handle) const;
};

}  // namespace kiln::engine
