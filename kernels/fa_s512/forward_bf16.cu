// SPDX-License-Identifier: Apache-2.0
// The forward kernels for bf16.
#include "forward.h"

#ifdef FA_PORTABLE_ALONE
void fa::forward_bf16(const Work&, const Plan&, int64_t, cudaStream_t) {
  KILN_CHECK(false, "this build has the portable path alone: -D FA_PORTABLE_ALONE");
}
#else
void fa::forward_bf16(const Work& work, const Plan& plan, int64_t blocks, cudaStream_t stream) {
  launch_forward<Bf16>(work, plan, blocks, stream);
}
#endif
