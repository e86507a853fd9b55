// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAContext.h>
#include <cuda_fp16.h>
#include <torch/extension.h>
#include <torch/library.h>

__global__ void add_float4(const float4* a, const float4* b, float4* out, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  float4 x = a[i], y = b[i];
  out[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

template <typename T>
__global__ void add_tail(const T* a, const T* b, T* out, int64_t begin, int64_t n) {
  int64_t i = begin + blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

__global__ void add_half2(const __half2* a, const __half2* b, __half2* out, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = __hadd2(a[i], b[i]);
}

static unsigned blocks(int64_t n) { return unsigned((n + MY_THREADS - 1) / MY_THREADS); }

at::Tensor fast_add(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.is_cuda() && b.is_cuda(), "expected CUDA tensors");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dtypes differ");
  auto x = a.contiguous(), y = b.contiguous();
  auto out = at::empty_like(x);
  int64_t n = x.numel();
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  if (n == 0) return out;
  if (x.scalar_type() == at::kHalf && n % 2 == 0) {
    add_half2<<<blocks(n / 2), MY_THREADS, 0, stream>>>(
        reinterpret_cast<const __half2*>(x.data_ptr<at::Half>()),
        reinterpret_cast<const __half2*>(y.data_ptr<at::Half>()),
        reinterpret_cast<__half2*>(out.data_ptr<at::Half>()), n / 2);
    return out;
  }
  TORCH_CHECK(x.scalar_type() == at::kFloat, "expected float or half, got ", x.scalar_type());
  const float *px = x.data_ptr<float>(), *py = y.data_ptr<float>();
  int64_t whole = n / 4 * 4;
  if (whole)
    add_float4<<<blocks(n / 4), MY_THREADS, 0, stream>>>(
        reinterpret_cast<const float4*>(px), reinterpret_cast<const float4*>(py),
        reinterpret_cast<float4*>(out.data_ptr<float>()), n / 4);
  if (whole < n)
    add_tail<float><<<1, MY_THREADS, 0, stream>>>(px, py, out.data_ptr<float>(), whole, n);
  return out;
}

TORCH_LIBRARY(my_fast_add, m) { m.def("add(Tensor a, Tensor b) -> Tensor"); }
TORCH_LIBRARY_IMPL(my_fast_add, CUDA, m) { m.impl("add", &fast_add); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
