# SPDX-License-Identifier: Apache-2.0
"""Do the rarer families of torch's C++ API behave as torch's? Printing, generators, the dispatcher,
guards and streams, allocators, 8-bit floats, versions, small helpers. The expected values are
torch's own, by its Python functions or its documented texts."""

from __future__ import annotations

import kiln
import pytest
import torch

SOURCE = r"""
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/PhiloxUtils.cuh>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ceil_div.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/relu.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/irange.h>
#include <iostream>
#include <sstream>
#include <torch/extension.h>

enum Color { kRed = 3 };
struct Own { int x; };
std::ostream& operator<<(std::ostream& out, const Own& own) {
  return out << "Own(" << own.x << ")";
}

std::string printed(torch::Tensor x) {
  std::ostringstream out;
  out << x.options() << " | " << x.scalar_type() << " | " << x.dtype() << " | " << x.device()
      << " | " << x.sizes() << " | " << x.layout() << " | " << at::Scalar(2.5) << " | "
      << c10::Half(1.5f) << " | " << c10::complex<float>(1, 2) << " | " << x.type() << " | "
      << at::MemoryFormat::Preserve;
  return out.str();
}
std::string message() {
  return c10::str(Own{4}, " ", kRed, " ", at::IntArrayRef({1, 2}));
}
std::vector<int64_t> draws(int64_t count) {
  auto* gen = at::get_generator_or_default<at::CUDAGeneratorImpl>(
      c10::nullopt, at::cuda::detail::getDefaultCUDAGenerator());
  std::lock_guard<std::mutex> lock(gen->mutex_);
  at::PhiloxCudaState state = gen->philox_cuda_state(count);
  auto seeds = at::cuda::philox::unpack(state);
  return {static_cast<int64_t>(std::get<0>(seeds)), static_cast<int64_t>(std::get<1>(seeds))};
}
torch::Tensor dispatched(const torch::Tensor& a, const torch::Tensor& b) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("aten::maximum", "")
                       .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return op.call(a, b);
}
bool has_op(const std::string& name) {
  return c10::Dispatcher::singleton().findSchema({name, ""}).has_value();
}
double scratch(int64_t n) {
  const c10::OptionalDeviceGuard guard;
  auto data = c10::cuda::CUDACachingAllocator::get()->allocate(n * sizeof(float));
  void* raw = c10::cuda::CUDACachingAllocator::raw_alloc(16);
  C10_CUDA_CHECK(cudaMemset(raw, 0, 16));
  c10::cuda::CUDACachingAllocator::raw_delete(raw);
  at::cuda::CUDAEvent event;
  return data.get() != nullptr && !event.isCreated();
}
std::vector<double> bytes(double value) {
  return {static_cast<float>(c10::Float8_e4m3fn(static_cast<float>(value))),
          static_cast<float>(c10::Float8_e5m2(static_cast<float>(value)))};
}
int64_t summed(int64_t n) {
  int64_t total = 0;
  for (const auto i : c10::irange(n)) total += i;
  static_assert(C10_WARP_SIZE == 32 && at::CppTypeToScalarType<float>() == at::kFloat, "");
  return total;
}
std::vector<int64_t> version() { return {TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR}; }
torch::Tensor reduced(torch::Tensor x) {
  return torch::stack({x.all().to(torch::kFloat), x.any().to(x.type()), x.std(), x.var(),
                       x.std(false)});
}
at::ScalarType promoted(at::ScalarType a, at::ScalarType b) { return c10::promoteTypes(a, b); }
std::vector<int64_t> broadcast(std::vector<int64_t> a, std::vector<int64_t> b) {
  return at::infer_size(a, b);
}

__global__ void shift(float* x, int n, at::PhiloxCudaState state) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto seeds = at::cuda::philox::unpack(state);
  CUDA_KERNEL_ASSERT(std::get<0>(seeds) == 7);
  if (i < n) x[i] += static_cast<float>(std::get<1>(seeds)) + at::ceil_div(3, 2);
}
torch::Tensor shifted(torch::Tensor x) {
  auto out = x.clone();
  shift<<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(out.data_ptr<float>(), out.numel(), {7, 4});
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("printed", &printed);
  m.def("message", &message);
  m.def("draws", &draws);
  m.def("dispatched", &dispatched);
  m.def("has_op", &has_op);
  m.def("scratch", &scratch);
  m.def("bytes", &bytes);
  m.def("summed", &summed);
  m.def("version", &version);
  m.def("reduced", &reduced);
  m.def("promoted", &promoted);
  m.def("broadcast", &broadcast);
  m.def("shifted", &shifted);
}
"""


@pytest.fixture(scope="module")
def families(command, tmp_path_factory):
    path = tmp_path_factory.mktemp("families") / "families.cu"
    path.write_text(SOURCE)
    return kiln.load("families_ext", [path])


def test_printing(families):
    text = families.printed(torch.ones(2, 3))
    assert text == (
        "TensorOptions(dtype=float, device=cpu, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt)) | Float | float | cpu | [2, 3] | "
        "Strided | 2.5 | 1.5 | (1,2) | CPUFloatType | Preserve"
    )
    assert families.message() == "Own(4) 3 [1, 2]"


def test_generators_follow_the_seed(families):
    torch.manual_seed(1234)
    assert families.draws(5) == [1234, 0]
    assert families.draws(1) == [1234, 8]  # five numbers reserve eight
    torch.manual_seed(99)
    assert families.draws(4) == [99, 0]


def test_the_dispatcher(families):
    a, b = torch.tensor([1.0, 5.0]), torch.tensor([4.0, 2.0])
    assert torch.equal(families.dispatched(a, b), torch.maximum(a, b))
    assert families.has_op("aten::relu") and not families.has_op("aten::no_such_op")


@pytest.mark.parametrize("value", [0.0, 1.0, -1.5, 0.0019, 447.0, 464.0, 465.0, 57344.0, 1e-9, 3.3])
def test_eight_bit_floats(families, value):
    types = (torch.float8_e4m3fn, torch.float8_e5m2)
    expected = [torch.tensor(value).to(dtype).float().item() for dtype in types]
    assert str(families.bytes(value)) == str(expected)


def test_helpers(families):
    if torch.cuda.is_available():
        torch.cuda.init()  # torch's allocator does not do that for whom asks it first
    assert families.summed(5) == 10 and families.scratch(10)
    assert families.version() == [int(part) for part in torch.__version__.split(".")[:2]]
    x = torch.tensor([1.0, 2.0, 4.0])
    expected = [x.all().float(), x.any().float(), x.std(), x.var(), x.std(unbiased=False)]
    assert torch.allclose(families.reduced(x), torch.stack(expected))
    assert families.promoted(torch.int32, torch.float16) == torch.float16
    assert families.broadcast([3, 1], [2]) == [3, 2]
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        families.broadcast([3], [2])


def test_kernels_take_a_state(families):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    assert families.shifted(torch.zeros(3, device=device)).tolist() == [6.0, 6.0, 6.0]
