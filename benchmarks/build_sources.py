# SPDX-License-Identifier: Apache-2.0
"""What is built when builds are measured? One kernel as an op and as a C function; the same with
heavy headers."""

PLAIN = """#include <kiln/op.h>
template <class T>
__global__ void scale_kernel(const T* a, T* out, long long n) {
  long long i = kiln::global_thread();
  if (i < n) out[i] = a[i] * T(2); /*edit*/
}
kiln::Tensor scale(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  scale_kernel<float><<<kiln::blocks_for(out.numel(), 256), 256, 0, kiln::stream(a)>>>(
      a.data<const float>(), out.data<float>(), out.numel());
  return out;
}
KILN_OP(scale, "a").fake("like(a)");
"""
BARE = """__global__ void scale_kernel(const float* a, float* out, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * 2.0f; /*edit*/
}
extern "C" int scale(const float* a, float* out, long long n) {
  scale_kernel<<<(n + 255) / 256, 256>>>(a, out, n);
  return cudaGetLastError();
}
"""
# A question that NVRTC answers otherwise: the slice is refused, and the device chain compiles every
# edit.
DEVICE = PLAIN + "#ifdef __NVCC__\n#endif\n"
CUB_KERNEL = """#include <cub/block/block_reduce.cuh>
__global__ void sum_kernel(const float* a, float* out, long long n) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage room;
  float x = threadIdx.x < n ? a[threadIdx.x] : 0.0f;
  float sum = Reduce(room).Sum(x);
  if (threadIdx.x == 0) out[0] = sum * 1.0f; /*edit*/
}
"""
HEAVY_OP = """#include <kiln/op.h>
kiln::Tensor total(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  sum_kernel<<<1, 256, 0, kiln::stream(a)>>>(a.data<const float>(), out.data<float>(), a.numel());
  return out;
}
KILN_OP(total, "a").fake("like(a)");
"""
HEAVY_BARE = """
extern "C" int total(const float* a, float* out, long long n) {
  sum_kernel<<<1, 256>>>(a, out, n);
  return cudaGetLastError();
}
"""
CUTE_KERNEL = """#include <cute/tensor.hpp>
__global__ void sum_kernel(const float* a, float* out, long long n) {
  auto shape = cute::make_shape(cute::Int<16>{}, cute::Int<16>{});
  auto tile = cute::make_tensor(cute::make_gmem_ptr(a), cute::make_layout(shape));
  float sum = 0.0f;
  for (int i = 0; i < cute::size(tile); ++i) sum += tile(i);
  if (threadIdx.x == 0) out[0] = sum * 1.0f; /*edit*/
}
"""


def edited(text: str, number: int) -> str:
    """Another body of the kernel on the same line."""
    return text.replace("/*edit*/", f"/*edit*/ if (n < -{number + 1}) out[0] = {number}.0f;")
