// SPDX-License-Identifier: Apache-2.0
// A kernel that ends only when its flag is set, for tests of Ctrl-C.
#include <kiln/op.h>

namespace {

__global__ void spin(const volatile float* flag) {
  while (*flag == 0.0f) {
  }
}

void wait_for_(kiln::Tensor& flag) { spin<<<4, 64>>>(flag.data<float>()); }
KILN_OP(wait_for_, "flag");

}  // namespace
