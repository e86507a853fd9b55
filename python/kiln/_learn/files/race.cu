// SPDX-License-Identifier: Apache-2.0
// Lesson 7. histogram counts how often each of the numbers 0 to 9 appears, and loses counts: two
// threads read the same counter, add 1, and write the same value.
#include <kiln/op.h>

__global__ void histogram_kernel(const int* x, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) counts[x[i]] += 1;
}

kiln::Tensor histogram(const kiln::Tensor& x) {
  kiln::Tensor counts = kiln::zeros({10}, x.dtype(), x.device());
  int n = x.numel();
  histogram_kernel<<<kiln::blocks_for(n, 128), 128, 0, kiln::stream(x)>>>(x.data<const int>(),
                                                                          counts.data<int>(), n);
  return counts;
}
KILN_OP(histogram, "x");
