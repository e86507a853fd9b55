// SPDX-License-Identifier: Apache-2.0
// Kernels that read shared and local memory which they have not written, a printf with a format of
// any kind, and one that needs much local memory: for tests of what the engine makes of them.
#include <kiln/op.h>

#include <cstdio>

namespace {

__global__ void forget_shared(float* out) {
  __shared__ volatile float tile[128];
  extern __shared__ volatile float more[];
  out[threadIdx.x] = tile[threadIdx.x] + more[threadIdx.x];
}
void shared_(kiln::Tensor& out) { forget_shared<<<1, 128, 512>>>(out.data<float>()); }
KILN_OP(shared_, "out");

__global__ void forget_local(float* out) {
  volatile float room[8];
  out[threadIdx.x] = room[threadIdx.x % 8];
}
void local_(kiln::Tensor& out) { forget_local<<<1, 128>>>(out.data<float>()); }
KILN_OP(local_, "out");

__global__ void print_all(float* out) {
  int count = 42;
  const int arguments = printf("%d %n|", 1, &count) + printf("|%.2f %k\n", 1.5);
  out[0] = static_cast<float>(arguments);
  out[1] = static_cast<float>(count);
}
void print_(kiln::Tensor& out) { print_all<<<1, 1>>>(out.data<float>()); }
KILN_OP(print_, "out");

__global__ void use_much(float* out) {
  volatile float room[16384];
  for (int i = 0; i < 16384; i += 512) room[i] = static_cast<float>(i);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = room[512];
}
void much_(kiln::Tensor& out) { use_much<<<8, 128>>>(out.data<float>()); }
KILN_OP(much_, "out");

}  // namespace
