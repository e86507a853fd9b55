// SPDX-License-Identifier: Apache-2.0
// How do the copies and fills of the CUDA runtime become work? All are three-dimensional copies,
// some of them flat.
#include <fmt/format.h>

#include <cstring>

#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

Copy3D rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
            size_t height, int kind) {
  Copy3D copy{};
  copy.from = {const_cast<void*>(from), from_pitch, width, height};
  copy.to = {to, to_pitch, width, height};
  copy.extent = {width, height, 1};
  copy.kind = kind;
  return copy;
}
// The call itself reports an invalid pointer, even if the copy runs later.
int copy_in(const void* stream, const Copy3D& copy) {
  if (int code = check_copy(copy)) {
    watch_copy(copy, stream, false, code);
    return code;
  }
  return submit(stream, copy);
}
int fill_in(const void* stream, const Fill& fill) {
  if (int code = check_fill(fill)) {
    watch_fill(fill, stream, false, code);
    return code;
  }
  return submit(stream, fill);
}

int copy_now(void* to, const void* from, size_t bytes, int kind) {
  return perform_copy(flat(to, from, bytes, kind));
}
int copy_async(void* to, const void* from, size_t bytes, int kind, void* stream) {
  return copy_in(stream, flat(to, from, bytes, kind));
}
int copy_peer(void* to, int, const void* from, int, size_t bytes) {
  return copy_now(to, from, bytes, kDeviceToDevice);
}
int copy_peer_async(void* to, int, const void* from, int, size_t bytes, void* stream) {
  return copy_async(to, from, bytes, kDeviceToDevice, stream);
}
int copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
            size_t height, int kind) {
  return perform_copy(rows(to, to_pitch, from, from_pitch, width, height, kind));
}
int copy_2d_async(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                  size_t height, int kind, void* stream) {
  return copy_in(stream, rows(to, to_pitch, from, from_pitch, width, height, kind));
}
int copy_3d(const Copy3D* copy) {
  return copy ? perform_copy(*copy) : fail(kInvalidValue, "cudaMemcpy3D: the parameters are null");
}
int copy_3d_async(const Copy3D* copy, void* stream) {
  return copy ? copy_in(stream, *copy)
              : fail(kInvalidValue, "cudaMemcpy3D: the parameters are null");
}
Copy3D without_peers(const Copy3DPeer& copy) {
  return {copy.from_array, copy.from_position, copy.from,      copy.to_array, copy.to_position,
          copy.to,         copy.extent,        kDeviceToDevice};
}
int copy_3d_peer(const Copy3DPeer* copy) {
  return copy ? perform_copy(without_peers(*copy))
              : fail(kInvalidValue, "cudaMemcpy3DPeer: the parameters are null");
}
int copy_3d_peer_async(const Copy3DPeer* copy, void* stream) {
  return copy ? copy_in(stream, without_peers(*copy))
              : fail(kInvalidValue, "cudaMemcpy3DPeer: the parameters are null");
}

Fill fill_of(void* to, size_t pitch, int value, size_t width, size_t height) {
  return {to, pitch, static_cast<unsigned>(value) & 0xff, 1, width, height};
}
int fill_now(void* to, int value, size_t bytes) {
  return perform_fill(fill_of(to, bytes, value, bytes, 1));
}
int fill_async(void* to, int value, size_t bytes, void* stream) {
  return fill_in(stream, fill_of(to, bytes, value, bytes, 1));
}
int fill_2d(void* to, size_t pitch, int value, size_t width, size_t height) {
  return perform_fill(fill_of(to, pitch, value, width, height));
}
int fill_2d_async(void* to, size_t pitch, int value, size_t width, size_t height, void* stream) {
  return fill_in(stream, fill_of(to, pitch, value, width, height));
}
// Slice by slice.
template <class Then>
int fill_slices(const PitchedPointer& to, int value, const Extent& extent, Then fill) {
  for (size_t z = 0; z < extent.depth; ++z) {
    void* slice = static_cast<std::byte*>(to.at) + z * to.height * to.pitch;
    if (int code = fill(fill_of(slice, to.pitch, value, extent.width, extent.height))) return code;
  }
  return kSuccess;
}
int fill_3d_async(PitchedPointer to, int value, Extent extent, void* stream) {
  return fill_slices(to, value, extent, [&](const Fill& fill) { return fill_in(stream, fill); });
}
int fill_3d(PitchedPointer to, int value, Extent extent) {
  return fill_slices(to, value, extent, [](const Fill& fill) { return perform_fill(fill); });
}

// ---- Variables of a library

int symbol_memory(const void* symbol, size_t bytes, size_t offset, std::byte** at) {
  int code = 0;
  std::string text;
  const Image::VariableMemory* memory = resolved_variable(symbol, &code, &text);
  if (!memory) return fail(code, std::move(text));
  *at = static_cast<std::byte*>(memory->at) + offset;
  if (offset > memory->bytes || memory->bytes - offset < bytes) {
    return fail(kInvalidValue, fmt::format("{} bytes at offset {} of a variable of {} bytes", bytes,
                                           offset, memory->bytes));
  }
  return kSuccess;
}
// A copy past the end of its variable is reported to watchers, like one past the end of its memory.
int refuse_copy(const Copy3D& copy, const void* variable, const void* stream, int code) {
  if (variable) watch_copy(copy, stream, false, code);
  return code;
}
int symbol_kind(int kind, bool to_symbol) {
  if (kind == kHostToHost) return kind;
  bool other_is_device = kind == kDeviceToDevice;
  return other_is_device    ? kDeviceToDevice
         : kind == kDefault ? kDefault
         : to_symbol        ? kHostToDevice
                            : kDeviceToHost;
}
int to_symbol_async(const void* symbol, const void* from, size_t bytes, size_t offset, int kind,
                    void* stream) {
  std::byte* at = nullptr;
  const int code = symbol_memory(symbol, bytes, offset, &at);
  const Copy3D copy = flat(at, from, bytes, symbol_kind(kind, true));
  return code ? refuse_copy(copy, at, stream, code) : copy_in(stream, copy);
}
int to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset, int kind) {
  std::byte* at = nullptr;
  const int code = symbol_memory(symbol, bytes, offset, &at);
  const Copy3D copy = flat(at, from, bytes, symbol_kind(kind, true));
  return code ? refuse_copy(copy, at, nullptr, code) : perform_copy(copy);
}
int from_symbol_async(void* to, const void* symbol, size_t bytes, size_t offset, int kind,
                      void* stream) {
  std::byte* at = nullptr;
  const int code = symbol_memory(symbol, bytes, offset, &at);
  const Copy3D copy = flat(to, at, bytes, symbol_kind(kind, false));
  return code ? refuse_copy(copy, at, stream, code) : copy_in(stream, copy);
}
int from_symbol(void* to, const void* symbol, size_t bytes, size_t offset, int kind) {
  std::byte* at = nullptr;
  const int code = symbol_memory(symbol, bytes, offset, &at);
  const Copy3D copy = flat(to, at, bytes, symbol_kind(kind, false));
  return code ? refuse_copy(copy, at, nullptr, code) : perform_copy(copy);
}
int symbol_address(void** out, const void* symbol) {
  std::byte* at = nullptr;
  if (!out)
    return fail(kInvalidValue, "cudaGetSymbolAddress: the output pointer for the address is null");
  if (int code = symbol_memory(symbol, 0, 0, &at)) return code;
  *out = at;
  return kSuccess;
}
int symbol_size(size_t* out, const void* symbol) {
  int code = 0;
  std::string text;
  if (!out)
    return fail(kInvalidValue, "cudaGetSymbolSize: the output pointer for the size is null");
  const Image::VariableMemory* memory = resolved_variable(symbol, &code, &text);
  if (!memory) return fail(code, std::move(text));
  *out = memory->bytes;
  return kSuccess;
}

}  // namespace

std::span<const RuntimeFunction> runtime_copies() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaMemcpy", waits<&copy_now>()},
      {"cudaMemcpyAsync", behind<&copy_async>()},
      {"cudaMemcpyPeer", waits<&copy_peer>()},
      {"cudaMemcpyPeerAsync", behind<&copy_peer_async>()},
      {"cudaMemcpy2D", waits<&copy_2d>()},
      {"cudaMemcpy2DAsync", behind<&copy_2d_async>()},
      {"cudaMemcpy3D", waits<&copy_3d>()},
      {"cudaMemcpy3DAsync", behind<&copy_3d_async>()},
      {"cudaMemcpy3DPeer", entry<&copy_3d_peer>()},
      {"cudaMemcpy3DPeerAsync", behind<&copy_3d_peer_async>()},
      {"cudaMemset", waits<&fill_now>()},
      {"cudaMemsetAsync", behind<&fill_async>()},
      {"cudaMemset2D", entry<&fill_2d>()},
      {"cudaMemset2DAsync", behind<&fill_2d_async>()},
      {"cudaMemset3D", entry<&fill_3d>()},
      {"cudaMemset3DAsync", behind<&fill_3d_async>()},
      {"cudaMemcpyToSymbol", entry<&to_symbol>()},
      {"cudaMemcpyToSymbolAsync", behind<&to_symbol_async>()},
      {"cudaMemcpyFromSymbol", waits<&from_symbol>()},
      {"cudaMemcpyFromSymbolAsync", behind<&from_symbol_async>()},
      {"cudaGetSymbolAddress", entry<&symbol_address>()},
      {"cudaGetSymbolSize", entry<&symbol_size>()},
  };
  return kFunctions;
}

}  // namespace kiln::engine
