// SPDX-License-Identifier: Apache-2.0
// The forward kernels for bf16.
#include "forward.h"

void fa::forward_bf16(const Work& work, int64_t head_dim, bool causal, int64_t blocks, cudaStream_t stream) {
  launch_forward<Bf16>(work, head_dim, causal, blocks, stream);
}
