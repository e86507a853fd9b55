// SPDX-License-Identifier: Apache-2.0
// How are CUDA arrays, texture objects and surface objects created, filled and found?
#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <set>
#include <unordered_map>

#include "engine/cudart/fork.h"
#include "engine/cudart/host_events.h"
#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"
#include "engine/machine/fault.h"
#include "engine/memory/arrays.h"

namespace kiln::engine {
namespace {

Textures& table() { return state().device.textures; }
bool is_array(const void* handle) { return table().is_array(handle); }
const TextureObject* texture_object(uint64_t handle) { return table().find(handle); }

}  // namespace

void fork_arrays(ForkPhase phase) { hold(table().mutex, phase); }

namespace {

int bytes_of(const ChannelDesc& desc) { return (desc.x + desc.y + desc.z + desc.w) / 8; }

int make_array(Array** out, const ChannelDesc* desc, Extent extent, unsigned flags) {
  if (!out || !desc) return fail(kInvalidValue, "cudaMallocArray: a pointer is null");
  const int bytes = bytes_of(*desc);
  if (bytes < 1 || bytes > 16 || extent.width == 0) {
    return fail(
        kInvalidChannelDescriptor,
        fmt::format("cudaMallocArray: elements of {} bytes, {} per row", bytes, extent.width));
  }
  auto array = std::make_unique<Array>();
  array->desc = *desc;
  array->extent = extent;
  array->flags = flags;
  array->element_bytes = static_cast<uint32_t>(bytes);
  array->bytes.resize(array->row_bytes() * array->rows() * array->slices());
  std::lock_guard lock(table().mutex);
  table().arrays.insert(array.get());
  watch_allocation("cudaMallocArray", array->bytes.data(), array->bytes.size(),
                   AllocationKind::Device, nullptr, true);
  *out = array.release();
  return kSuccess;
}
int malloc_array(Array** out, const ChannelDesc* desc, size_t width, size_t height,
                 unsigned flags) {
  return make_array(out, desc, {width, height, 0}, flags);
}
int malloc_3d_array(Array** out, const ChannelDesc* desc, Extent extent, unsigned flags) {
  return make_array(out, desc, extent, flags);
}
int free_array(Array* array) {
  if (!array) return kSuccess;
  {
    std::lock_guard lock(table().mutex);
    if (!table().arrays.erase(array))
      return fail(kInvalidValue, "cudaFreeArray: this is not a live array");
  }
  watch_free("cudaFreeArray", array->bytes.data(), array->bytes.size(), nullptr, true, kSuccess);
  delete array;
  return kSuccess;
}
int array_info(ChannelDesc* desc, Extent* extent, unsigned* flags, Array* array) {
  if (!is_array(array)) return fail(kInvalidResourceHandle, "this is not a live array");
  if (desc) *desc = array->desc;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return kSuccess;
}
int channel_desc(ChannelDesc* desc, Array* array) {
  return array_info(desc, nullptr, nullptr, array);
}
ChannelDesc create_channel_desc(int x, int y, int z, int w, int kind) { return {x, y, z, w, kind}; }

// ---- Copies whose offsets and widths are in bytes

// When does a copy happen: in a stream, or before the call returns?
struct When {
  const void* stream = nullptr;
  bool waits = true;
};
int array_copy(When when, Array* to_array, size_t to_x, size_t to_y, void* to, size_t to_pitch,
               Array* from_array, size_t from_x, size_t from_y, const void* from, size_t from_pitch,
               size_t width, size_t height, int kind) {
  for (Array* array : {to_array, from_array}) {
    if (array && !is_array(array)) return fail(kInvalidResourceHandle, "this is not a live array");
  }
  const uint32_t step = to_array ? to_array->element_bytes : from_array->element_bytes;
  if (width % step || to_x % step || from_x % step) {
    return fail(
        kInvalidValue,
        fmt::format("a copy of {} bytes is not a multiple of the element size {}", width, step));
  }
  Copy3D copy{};
  copy.to_array = to_array;
  copy.to_position = {to_array ? to_x / step : 0, to_y, 0};
  copy.to = {to, to_pitch, width, height};
  copy.from_array = from_array;
  copy.from_position = {from_array ? from_x / step : 0, from_y, 0};
  copy.from = {const_cast<void*>(from), from_pitch, width, height};
  copy.extent = {width / step, height, 1};
  copy.kind = kind;
  if (when.waits) return perform_copy(copy);
  if (int code = check_copy(copy)) {
    watch_copy(copy, when.stream, false, code);
    return code;
  }
  return submit(when.stream, copy);
}
int to_array_2d_async(Array* to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                      size_t height, int kind, void* stream) {
  return array_copy({stream, false}, to, x, y, nullptr, 0, nullptr, 0, 0, from, pitch, width,
                    height, kind);
}
int to_array_2d(Array* to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                size_t height, int kind) {
  return array_copy({}, to, x, y, nullptr, 0, nullptr, 0, 0, from, pitch, width, height, kind);
}
int from_array_2d_async(void* to, size_t pitch, Array* from, size_t x, size_t y, size_t width,
                        size_t height, int kind, void* stream) {
  return array_copy({stream, false}, nullptr, 0, 0, to, pitch, from, x, y, nullptr, 0, width,
                    height, kind);
}
int from_array_2d(void* to, size_t pitch, Array* from, size_t x, size_t y, size_t width,
                  size_t height, int kind) {
  return array_copy({}, nullptr, 0, 0, to, pitch, from, x, y, nullptr, 0, width, height, kind);
}
int array_to_array(Array* to, size_t to_x, size_t to_y, Array* from, size_t from_x, size_t from_y,
                   size_t width, size_t height, int kind) {
  return array_copy({}, to, to_x, to_y, nullptr, 0, from, from_x, from_y, nullptr, 0, width, height,
                    kind);
}
// A run of bytes through the rows of an array. Null: the error is the last one of this thread.
std::byte* flat_array(Array* array, size_t x, size_t y, size_t bytes) {
  if (!is_array(array)) {
    fail(kInvalidResourceHandle, "this is not a live array");
    return nullptr;
  }
  const size_t offset = y * array->row_bytes() + x;
  if (offset + bytes > array->bytes.size()) {
    fail(kInvalidValue, "the copy reaches beyond the array");
    return nullptr;
  }
  return array->bytes.data() + offset;
}
void watch_flat(const void* to, const void* from, size_t bytes) {
  watch_host(HostKind::Copy, nullptr, [&](HostEvent& event) {
    event.to.at = reinterpret_cast<uint64_t>(to);
    event.from.at = reinterpret_cast<uint64_t>(from);
    event.width = bytes;
    event.waits = true;
  });
}
int to_array(Array* to, size_t x, size_t y, const void* from, size_t bytes, int) {
  std::byte* at = flat_array(to, x, y, bytes);
  if (!at) return thread_errors().last;
  std::memmove(at, from, bytes);
  watch_flat(at, from, bytes);
  return kSuccess;
}
int from_array(void* to, Array* from, size_t x, size_t y, size_t bytes, int) {
  const std::byte* at = flat_array(from, x, y, bytes);
  if (!at) return thread_errors().last;
  std::memmove(to, at, bytes);
  watch_flat(to, at, bytes);
  return kSuccess;
}

// ---- Objects

int describe(TextureObject* object) {
  const ResourceDesc& resource = object->resource;
  switch (resource.type) {
    case kArrayResource: {
      Array* array = resource.array;
      if (!is_array(array)) return fail(kInvalidResourceHandle, "the texture's array is not alive");
      object->data = array->bytes.data();
      object->desc = array->desc;
      object->width = array->extent.width;
      object->height = array->rows();
      object->depth = array->slices();
      object->pitch = array->row_bytes();
      object->flags = array->flags;
      break;
    }
    case kLinearResource:
      object->data = static_cast<std::byte*>(resource.linear.at);
      object->desc = resource.linear.desc;
      object->width =
          resource.linear.bytes / static_cast<size_t>(std::max(bytes_of(object->desc), 1));
      object->height = object->depth = 1;
      object->pitch = resource.linear.bytes;
      break;
    case kPitch2DResource:
      object->data = static_cast<std::byte*>(resource.pitch_2d.at);
      object->desc = resource.pitch_2d.desc;
      object->width = resource.pitch_2d.width;
      object->height = resource.pitch_2d.height;
      object->depth = 1;
      object->pitch = resource.pitch_2d.pitch;
      break;
    default:
      return fail(kNotSupported, "textures of mipmapped arrays are not supported on the engine");
  }
  object->element_bytes = static_cast<uint32_t>(bytes_of(object->desc));
  if (!object->data || !object->element_bytes)
    return fail(kInvalidValue, "the texture has no elements");
  return kSuccess;
}
int make_object(uint64_t* out, const ResourceDesc* resource, const TextureDesc* texture,
                bool surface) {
  if (!out || !resource || (!texture && !surface)) return fail(kInvalidValue, "a pointer is null");
  auto object = std::make_unique<TextureObject>();
  object->resource = *resource;
  if (texture) object->texture = *texture;
  object->surface = surface;
  if (int code = describe(object.get())) return code;
  std::lock_guard lock(table().mutex);
  *out = table().next++;
  table().objects[*out] = std::move(object);
  return kSuccess;
}
int create_texture(uint64_t* out, const ResourceDesc* resource, const TextureDesc* texture,
                   const void* view) {
  if (view)
    return fail(kNotSupported, "textures with a resource view are not supported on the engine");
  return make_object(out, resource, texture, false);
}
int create_surface(uint64_t* out, const ResourceDesc* resource) {
  return make_object(out, resource, nullptr, true);
}
int destroy_object(uint64_t handle) {
  std::lock_guard lock(table().mutex);
  if (handle == 0 || table().objects.erase(handle)) return kSuccess;
  return fail(kInvalidValue, "this is not a live texture or surface object");
}
int object_resource(ResourceDesc* out, uint64_t handle) {
  const TextureObject* object = texture_object(handle);
  if (!object || !out) return fail(kInvalidValue, "this is not a live texture object");
  *out = object->resource;
  return kSuccess;
}
int object_texture(TextureDesc* out, uint64_t handle) {
  const TextureObject* object = texture_object(handle);
  if (!object || !out) return fail(kInvalidValue, "this is not a live texture object");
  *out = object->texture;
  return kSuccess;
}
int linear_max_width(size_t* width, const ChannelDesc*, int) {
  *width = size_t{1} << 28;
  return kSuccess;
}

}  // namespace

std::span<const RuntimeFunction> runtime_arrays() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaMallocArray", entry<&malloc_array>()},
      {"cudaMalloc3DArray", entry<&malloc_3d_array>()},
      {"cudaFreeArray", entry<&free_array>()},
      {"cudaArrayGetInfo", entry<&array_info>()},
      {"cudaGetChannelDesc", entry<&channel_desc>()},
      {"cudaCreateChannelDesc", reinterpret_cast<void*>(&create_channel_desc)},
      {"cudaMemcpy2DToArray", entry<&to_array_2d>()},
      {"cudaMemcpy2DToArrayAsync", behind<&to_array_2d_async>()},
      {"cudaMemcpy2DFromArray", entry<&from_array_2d>()},
      {"cudaMemcpy2DFromArrayAsync", behind<&from_array_2d_async>()},
      {"cudaMemcpy2DArrayToArray", entry<&array_to_array>()},
      {"cudaMemcpyToArray", entry<&to_array>()},
      {"cudaMemcpyFromArray", entry<&from_array>()},
      {"cudaCreateTextureObject", entry<&create_texture>()},
      {"cudaDestroyTextureObject", entry<&destroy_object>()},
      {"cudaGetTextureObjectResourceDesc", entry<&object_resource>()},
      {"cudaGetTextureObjectTextureDesc", entry<&object_texture>()},
      {"cudaCreateSurfaceObject", entry<&create_surface>()},
      {"cudaDestroySurfaceObject", entry<&destroy_object>()},
      {"cudaGetSurfaceObjectResourceDesc", entry<&object_resource>()},
      {"cudaDeviceGetTexture1DLinearMaxWidth", entry<&linear_max_width>()},
  };
  return kFunctions;
}

}  // namespace kiln::engine
