// SPDX-License-Identifier: Apache-2.0
#include "ffi_host.h"

#include "dynamic.h"
#include "kiln/ffi_abi.h"
#include "memory.h"

namespace kiln::detail {
namespace {

// Looked for in each call that needs it until it is found: tvm_ffi may be loaded after the op
// library.
void* host_function(const char* name) {
  void* library = open_mapped("libtvm_ffi.so");
  return library ? find_symbol(library, name) : nullptr;
}

}  // namespace

void raise_in_host(const char* text) {
  using Raise = void (*)(const char* kind, const char* message);
  if (auto raise = reinterpret_cast<Raise>(host_function("TVMFFIErrorSetRaisedFromCStr")))
    raise("RuntimeError", text);
}

UsedStream::UsedStream(Device device) : before_(used_stream()) {
  if (device.type != DeviceType::cuda) return;
  using Stream = void* (*)(int32_t type, int32_t index);
  static Stream found = nullptr;
  auto stream = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (!stream) {
    stream = reinterpret_cast<Stream>(host_function("TVMFFIEnvGetStream"));
    __atomic_store_n(&found, stream, __ATOMIC_RELAXED);
  }
  if (stream) use_stream(static_cast<cudaStream_t>(stream(ffi::kDlCuda, device.index)));
}

UsedStream::~UsedStream() { use_stream(before_); }

}  // namespace kiln::detail
