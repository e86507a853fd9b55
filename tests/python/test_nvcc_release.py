# SPDX-License-Identifier: Apache-2.0
"""Does kiln work with the nvcc that is here? Engine, inspect and compat; tools/nvcc-matrix runs
this file with each release of CUDA 13."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import kiln
import pytest
import torch

OP = r"""
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <kiln/op.h>

namespace cg = cooperative_groups;

// A reduction by CUB, shuffles of a tile, 16-bit types, shared memory, a double atomic.
__global__ void sums_kernel(kiln::View<const float, 1> x, kiln::View<double, 1> out) {
  using Reduce = cub::BlockReduce<double, 128>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float largest;
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int64_t i = kiln::global_thread();
  const float value = i < x.size(0) ? x(i) : 0.0f;
  const double sum = Reduce(storage).Sum(static_cast<double>(value));
  if (threadIdx.x == 0) atomicAdd(&out(0), sum);
  float top = fabsf(value);
  for (int offset = 16; offset; offset /= 2) top = fmaxf(top, tile.shfl_xor(top, offset));
  if (threadIdx.x == 0) largest = top;
  __syncthreads();
  if (i == 0) {
    out(1) = __half2float(__float2half_rn(largest));
    out(2) = __bfloat162float(__float2bfloat16_rn(largest));
  }
}

kiln::Tensor sums(const kiln::Tensor& x) {
  kiln::Tensor out = kiln::zeros({3}, kiln::Dtype::f64, x.device());
  sums_kernel<<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(x.flat<const float>(),
                                                                             out.flat<double>());
  return out;
}
KILN_OP(sums, "x");
"""
MODULE = """
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>
template <class T> __global__ void scale(const T* x, T* out, T factor, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = factor * x[i];
}
at::Tensor scaled(at::Tensor x, double factor) {
  auto out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "scaled", [&] {
    scale<scalar_t><<<(x.numel() + 63) / 64, 64, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), scalar_t(factor), x.numel());
  });
  return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scaled", &scaled); }
"""


def release() -> str:
    home = os.environ.get("CUDA_HOME", "")
    nvcc = f"{home}/bin/nvcc" if home else "nvcc"
    told = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"release (\d+\.\d+)", told)
    assert found, told
    return found[1]


@pytest.fixture(scope="module")
def op(tmp_path_factory):
    source = tmp_path_factory.mktemp("nvcc") / "sums.cu"
    source.write_text(OP)
    return source


def test_engine(command, op):
    sums = kiln.load(str(op)).sums
    x = torch.linspace(-1 / 3, 0.1, 1000, device=kiln.device())
    total, half, bfloat = sums(x).tolist()
    assert total == pytest.approx(x.double().sum().item(), rel=1e-12)
    largest = x.abs()[:128].max().cpu()
    assert (half, bfloat) == (largest.half().item(), largest.bfloat16().item())


def test_inspect(command, op):
    line = [command, "build", op, "--arch", "9.0", "--json"]
    built = json.loads(subprocess.run(line, capture_output=True, check=True, text=True).stdout)
    line = [command, "inspect", built["library"], "--overview", "--kernels", "--json"]
    told = subprocess.run(line, capture_output=True, check=True, text=True).stdout
    (file,) = json.loads(told)["files"]
    assert file["compiler"] == release() and not file["faults"]
    assert "sums_kernel" in told and "sm_90" in told


def test_compat(command, tmp_path: Path):
    source = tmp_path / "scaled_by.cu"
    source.write_text(MODULE)
    module = kiln.load("scaled_by", [str(source)])
    for dtype in (torch.float16, torch.float32, torch.float64):
        x = torch.randn(200, device=kiln.device()).to(dtype)
        assert torch.equal(module.scaled(x, 0.5), x * 0.5)
        factor = torch.tensor(0.1, dtype=dtype)
        assert torch.allclose(module.scaled(x, 0.1), x * factor, rtol=1e-3)
