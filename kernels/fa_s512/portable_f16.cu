// SPDX-License-Identifier: Apache-2.0
// The portable kernels for f16.
#include "portable.h"

#ifdef P_BF16_ALONE
void fa::portable_f16(const PortableWork&, int64_t, bool, int64_t, cudaStream_t) {
  KILN_CHECK(false, "this build has bf16 alone: -D P_BF16_ALONE");
}
#else
void fa::portable_f16(const PortableWork& work, int64_t head_dim, bool causal, int64_t batch,
                      cudaStream_t stream) {
  launch_portable<Half>(work, head_dim, causal, batch, stream);
}
#endif
