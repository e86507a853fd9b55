// SPDX-License-Identifier: Apache-2.0
// The portable kernels for bf16.
#include "portable.h"

void fa::portable_bf16(const PortableWork& work, int64_t head_dim, bool causal, int64_t batch,
                       cudaStream_t stream) {
  launch_portable<Bf16>(work, head_dim, causal, batch, stream);
}
