// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include "add_kernel.cuh"

#define CHECK_INPUT(x)                                   \
  TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor"); \
  TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")

torch::Tensor add_cuda(torch::Tensor a, torch::Tensor b, double alpha) {
  CHECK_INPUT(a);
  CHECK_INPUT(b);
  TORCH_CHECK(a.sizes() == b.sizes(), "shapes differ: ", a.sizes(), " and ", b.sizes());
  const at::cuda::OptionalCUDAGuard guard(device_of(a));
  auto out = torch::empty_like(a);
  const int threads = 256;
  const int64_t n = a.numel();
  const auto blocks = static_cast<unsigned>((n + threads - 1) / threads);
  if (n == 0) return out;
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "add_cuda", ([&] {
                               add_kernel<scalar_t>
                                   <<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
                                       a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(),
                                       out.data_ptr<scalar_t>(), static_cast<scalar_t>(alpha), n);
                             }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
