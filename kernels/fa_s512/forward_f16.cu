// SPDX-License-Identifier: Apache-2.0
// The forward kernels for f16.
#include "forward.h"

void fa::forward_f16(const Work& work, int64_t head_dim, bool causal, int64_t blocks, cudaStream_t stream) {
  launch_forward<Half>(work, head_dim, causal, blocks, stream);
}
