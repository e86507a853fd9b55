// SPDX-License-Identifier: Apache-2.0
// Functions of complex numbers, in a kernel and on the host, and other names that torch's headers
// bring along: cuda::std's, ranges of loops, tensor types of old.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/detail/KernelUtils.h>
#include <torch/extension.h>

#include <ATen/cuda/DeviceUtils.cuh>
#include <ATen/native/cuda/GridSampler.cuh>

using cfloat = c10::complex<float>;

template <class T>
C10_HOST_DEVICE c10::complex<T> mixed(c10::complex<T> x) {
  const c10::complex<T> y = std::exp(x) * std::conj(x) + std::sqrt(x) / std::sin(x);
  return std::pow(y, c10::complex<T>(T(0.5), T(0.25))) + std::pow(x, T(2)) +
         c10::complex<T>(std::abs(x) + std::norm(x), std::arg(x) + std::real(y) * std::imag(x)) +
         c10::polar(T(2), std::imag(y)) + std::log(x) * std::tanh(x) + std::log2(x);
}

__global__ void mix(const cfloat* x, cfloat* y, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = mixed(x[i]);
}

// c10::Half has its conversion, whatever else is included for names: here that of a rare op.
bool acceptable(torch::Tensor x) { return torch::cudnn_is_acceptable(x); }
__global__ void halve(const at::Half* x, at::Half* y, int64_t n) {
  for (const auto i : c10::irange(n)) y[i] = __hmul(x[i].operator __half(), __float2half(0.5f));
}

cuda::std::pair<dim3, dim3> shape(int64_t n) {
  return cuda::std::make_pair(dim3(at::cuda::detail::GET_BLOCKS(n, 64)), dim3(64));
}

torch::Tensor in_kernel(torch::Tensor x) {
  auto y = at::zeros_like(x, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
  const auto grid = shape(x.numel());
  mix<<<grid.first, grid.second, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<cfloat>(), y.data_ptr<cfloat>(), x.numel());
  return y;
}

torch::Tensor halves(torch::Tensor x) {
  auto y = torch::empty_like(x);
  halve<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<at::Half>(),
                                                       y.data_ptr<at::Half>(), x.numel());
  return y;
}

__global__ void sum(const cfloat* x, cfloat* y) {
  cfloat all = x[threadIdx.x];
  for (int by = 16; by > 0; by /= 2) all += WARP_SHFL_DOWN(all, by);
  if (threadIdx.x == 0) *y = all;
}
torch::Tensor summed(torch::Tensor x) {
  auto y = torch::empty({}, x.options());
  sum<<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<cfloat>(), y.data_ptr<cfloat>());
  return y;
}

torch::Tensor on_host(torch::Tensor x) {
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); i++) y.data_ptr<cfloat>()[i] = mixed(x.data_ptr<cfloat>()[i]);
  return y;
}

torch::Tensor of_old(int64_t n, bool gpu) {
  return torch::ones({n}, gpu ? at::CUDA(at::kLong) : at::CPU(at::kLong));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("in_kernel", &in_kernel);
  m.def("acceptable_inside", [](torch::Tensor x) {
    return at::native::cudnn_is_acceptable(x) || !at::native::canUse32BitIndexMath(x);
  });
  m.def("acceptable", &acceptable);
  m.def("halves", &halves);
  m.def("summed", &summed);
  m.def("on_host", &on_host);
  m.def("of_old", &of_old);
}
