// SPDX-License-Identifier: Apache-2.0
// The backward kernels for f16.
#include "backward.h"

#ifdef FA_PORTABLE_ALONE
void fa::backward_f16(const BackwardWork&, const BackwardWork&, const BackwardPlan&, cudaStream_t) {
  KILN_CHECK(false, "this build has the portable path alone: -D FA_PORTABLE_ALONE");
}
#elif defined(B_BF16_ALONE)
void fa::backward_f16(const BackwardWork&, const BackwardWork&, const BackwardPlan&, cudaStream_t) {
  KILN_CHECK(false, "this build has bf16 alone: -D B_BF16_ALONE");
}
#else
void fa::backward_f16(const BackwardWork& queries, const BackwardWork& keys,
                      const BackwardPlan& plan, cudaStream_t stream) {
  launch_backward<Half>(queries, keys, plan, stream);
}
#endif
