// SPDX-License-Identifier: Apache-2.0
// What does the runtime use of torch? Its C shim, found in the process at run time: no torch
// header, no link, no Python.
#pragma once

#include "call.h"

namespace kiln::detail {

// Registers the ops with the torch in this process. False: `why` has the message. Done once;
// repeating is free.
bool torch_register(Text& why);
void torch_unregister();  // takes the kernels away and leaves the definitions: a cached torch.ops
                          // object must stay valid
bool torch_is_registered();

TensorRep* torch_empty(Span<const int64_t> sizes, Span<const int64_t> strides, Dtype dtype,
                       Device device);
void torch_delete(void* handle);

// For the compat archive, which has tensors outside of kiln's own ops.
void torch_require();  // throws when there is no torch in the process, or one that is too old
Rep* torch_adopt(void* handle);  // owns the handle from here; kernels may touch all of its storage
// A tensor without memory, whose sizes the caller has: a fake one, as torch.compile traces with.
Rep* torch_adopt_fake(void* handle, const int64_t* sizes, const int64_t* strides, int ndim);
void torch_describe_again(Rep*);  // after an op that changed the tensor's sizes or memory
void* torch_library_of_shim();    // libtorch_cpu.so, for further functions of the shim
void* torch_current_stream(int32_t device_index);

}  // namespace kiln::detail
