// SPDX-License-Identifier: Apache-2.0
// Which functions does libtorch's C shim (torch/csrc/inductor/aoti_torch/c/shim.h and
// torch/csrc/stable/c/shim.h) give to the runtime? Nothing in it was removed from 2.5 to 2.15; what
// came later than our floor, 2.7, is optional here.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "autograd.h"
#include "text.h"

namespace kiln::detail {

using Boxed = void (*)(uint64_t*, uint64_t, uint64_t);

// X(member, symbol, type): every function of the shim that is used. REQUIRED ones are in torch 2.7.
#define SHIM_REQUIRED(X)                                                                 \
  X(data_ptr, "aoti_torch_get_data_ptr", int (*)(void*, void**))                         \
  X(dim, "aoti_torch_get_dim", int (*)(void*, int64_t*))                                 \
  X(sizes, "aoti_torch_get_sizes", int (*)(void*, int64_t**))                            \
  X(strides, "aoti_torch_get_strides", int (*)(void*, int64_t**))                        \
  X(dtype, "aoti_torch_get_dtype", int (*)(void*, int32_t*))                             \
  X(device_type, "aoti_torch_get_device_type", int (*)(void*, int32_t*))                 \
  X(device_index, "aoti_torch_get_device_index", int (*)(void*, int32_t*))               \
  X(delete_tensor, "aoti_torch_delete_tensor_object", int (*)(void*))                    \
  X(new_handle, "aoti_torch_new_tensor_handle", int (*)(void*, void**))                  \
  X(empty_strided, "aoti_torch_empty_strided",                                           \
    int (*)(int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t, void**)) \
  X(init_fragment, "aoti_torch_library_init_fragment",                                   \
    int (*)(const char*, const char*, uint32_t, void**))                                 \
  X(init_impl, "aoti_torch_library_init_impl",                                           \
    int (*)(const char*, const char*, const char*, uint32_t, void**))                    \
  X(define, "aoti_torch_library_def", int (*)(void*, const char*))                       \
  X(implement, "aoti_torch_library_impl", int (*)(void*, const char*, Boxed))            \
  X(delete_library, "aoti_torch_delete_library_object", int (*)(void*))
#define SHIM_SINCE_2_10(X)                                                              \
  X(implement_2_10, "torch_library_impl", int (*)(void*, const char*, Boxed, uint64_t)) \
  X(new_list, "torch_new_list_reserve_size", int (*)(size_t, void**))                   \
  X(list_size, "torch_list_size", int (*)(void*, size_t*))                              \
  X(list_get, "torch_list_get_item", int (*)(void*, size_t, uint64_t*))                 \
  X(list_push, "torch_list_push_back", int (*)(void*, uint64_t))                        \
  X(delete_list, "torch_delete_list", int (*)(void*))                                   \
  X(string_length, "torch_string_length", int (*)(void*, size_t*))                      \
  X(string_text, "torch_string_c_str", int (*)(void*, const char**))                    \
  X(delete_string, "torch_delete_string", int (*)(void*))

struct Shim {
#define X(member, symbol, ...) decltype(static_cast<__VA_ARGS__>(nullptr)) member = nullptr;
  SHIM_REQUIRED(X)
  SHIM_SINCE_2_10(X)
#undef X
  int (*current_cuda_stream)(int32_t, void**) = nullptr;  // of libtorch_cuda.so
  RequiresGradient* requires_gradient =
      nullptr;                                  // of libc10.so; null: gradients are torch's affair
  ForwardGradient* forward_gradient = nullptr;  // the same
  const void* undefined_tensor = nullptr;
};

struct Bridge {
  Shim shim;
  bool registered = false;
  void* definitions = nullptr;
  void* implementations[5] = {};  // by dispatch key: torch_register.cpp
};
inline Bridge the_bridge{};  // constant from the start, so nobody initialises it; never destroyed
inline Bridge& bridge() { return the_bridge; }

// False: `why` has the message.
bool load_shim(Shim& shim, Text& why);

}  // namespace kiln::detail
