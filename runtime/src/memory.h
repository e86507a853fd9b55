// SPDX-License-Identifier: Apache-2.0
// Who gives memory on a device where there is no torch? The CUDA runtime for a GPU; for the CPU the
// host, aligned to 256 bytes.
#pragma once

#include <stddef.h>

#include "kiln/tensor.h"

namespace kiln::detail {

void* memory_allocate(Device device, size_t bytes);  // throws when there is none
void memory_free(Device device, void* data);
// Of the tensors that an op makes: in the order of the stream below, so that neither waits for the
// device. They are freed in the order of `stream`, that of the allocation, whatever stream the
// thread that frees them uses by then.
void* memory_allocate_result(Device device, size_t bytes);
void memory_free_result(Device device, void* data, cudaStream_t stream);
// Where ops of this thread put their work when torch did not call them; null (the default stream)
// unless it was set.
void use_stream(cudaStream_t stream);
cudaStream_t used_stream();
void memory_copy(void* to, DeviceType to_type, const void* from, DeviceType from_type,
                 size_t bytes);
// On one device; on a GPU in the order of the stream above.
void memory_copy_in_order(void* to, const void* from, Device device, size_t bytes);
void memory_zero(Device device, void* data, size_t bytes, cudaStream_t stream);
void memory_synchronize(Device device);

}  // namespace kiln::detail
