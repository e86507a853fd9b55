// SPDX-License-Identifier: Apache-2.0
// The backward kernels for bf16.
#include "backward.h"

#ifdef FA_PORTABLE_ALONE
void fa::backward_bf16(const BackwardWork&, const BackwardWork&, const BackwardPlan&,
                       cudaStream_t) {
  KILN_CHECK(false, "this build has the portable path alone: -D FA_PORTABLE_ALONE");
}
#else
void fa::backward_bf16(const BackwardWork& queries, const BackwardWork& keys,
                       const BackwardPlan& plan, cudaStream_t stream) {
  launch_backward<Bf16>(queries, keys, plan, stream);
}
#endif
