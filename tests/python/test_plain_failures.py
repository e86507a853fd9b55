# SPDX-License-Identifier: Apache-2.0
"""What does a failing op say? Its own words, once, with as many digits as there are; without a GPU,
how to run a source that asks for one."""

from __future__ import annotations

import re

import pytest

import kiln
from kiln._checks.compare import shortest


@pytest.fixture(scope="module")
def ops(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    (folder / "plain.cu").write_text("""
#include <kiln/op.h>
__global__ void third_kernel(kiln::View<const float, 1> x, kiln::View<float, 1> out) {
  int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = x(i) / 3.0f;
}
kiln::Tensor third(const kiln::Tensor& x) {
  kiln::Tensor out = kiln::empty_like(x);
  third_kernel<<<1, 64, 0, kiln::stream(x)>>>(x.flat<const float>(), out.flat<float>());
  return out;
}
KILN_OP(third, "x").fake("like(x)");

kiln::Tensor first(kiln::TensorList xs, kiln::Optional<kiln::Tensor> otherwise) {
  KILN_CHECK(xs.size() > 0, "the list of tensors is empty");
  return kiln::empty_like(xs[0]);
}
KILN_OP(first, "xs, otherwise=None").fake("like(xs[0])");
int64_t count(kiln::TensorList xs) { return static_cast<int64_t>(xs.size()); }
KILN_OP(count, "xs");
""")
    return kiln.load(folder / "plain.cu")


def test_a_difference_is_told_once_in_the_digits_of_its_dtype(ops):
    import torch

    x = torch.ones(8, device=kiln.device())
    with pytest.raises(kiln.Mismatch) as caught:
        kiln.test(ops.third, x, reference=lambda x: x / 4)
    text = str(caught.value)
    assert text.count("differs at [0]") == 1, text
    assert "got 0.33333334, expected 0.25 " in text
    assert "  as given  FAILED" in text
    # A report that is printed by itself has the detail.
    assert "differs at [0]" in str(caught.value.report)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, "float32", "0.1"), (1 / 3, "float32", "0.33333334"), (1 / 3, "float16", "0.3333"),
        (1 / 3, "bfloat16", "0.334"), (1 / 3, "float64", "0.3333333333333333"),
        (1e20, "float32", "1e+20"), (2.0, "float32", "2.0"), (7, "int64", "7"),
        (float("nan"), "float32", "nan"), (float("-inf"), "float16", "-inf"),
        (0.0, "float32", "0.0"),
    ],
)  # fmt: skip
def test_digits(value, dtype, text):
    import torch

    assert shortest(torch.tensor(value, dtype=getattr(torch, dtype))) == text


def test_empty_lists_reach_the_op(ops):
    import torch

    with pytest.raises(RuntimeError, match="first: the list of tensors is empty"):
        ops.first([])
    assert ops.count([]) == 0
    x = torch.ones(3, device=kiln.device())
    assert ops.first([x]).shape == x.shape and ops.count([x, x]) == 2


ASKS = """
#include <torch/extension.h>
__global__ void one_kernel(float* x) { x[threadIdx.x] = 1; }
#define CHECK_PLACE(x) TORCH_CHECK(x.device().is_cuda(), #x " has to be on the graphics card")
torch::Tensor ones(torch::Tensor x) {
  CHECK_PLACE(x);
  auto out = torch::empty_like(x);
  one_kernel<<<1, x.numel()>>>(out.data_ptr<float>());
  return out;
}
torch::Tensor positive(torch::Tensor x) {
  TORCH_CHECK(x.numel() > 100, "x is small");
  return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("ones", &ones);
  m.def("positive", &positive);
}
"""


def test_a_source_that_asks_for_a_gpu_says_how_it_runs_without(command, python, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (tmp_path / "asks.cu").write_text(ASKS)
    script = """
import torch, kiln
m = kiln.load("asks", ["asks.cu"])
for call in (m.ones, m.positive):
    try:
        print(call(torch.zeros(3)).tolist())
    except RuntimeError as error:
        print(error)
"""
    told = python(script)
    assert "x has to be on the graphics card" in told
    assert re.search(r"fix: set KILN_DEVICE=engine", told), told
    assert told.count("KILN_DEVICE") == 1  # not for a check of something else
    assert python(script, env={"KILN_DEVICE": "engine"}).startswith("[1.0, 1.0, 1.0]")


FOR_CPUS = """
#include <torch/extension.h>
at::Tensor same(at::Tensor x) {
  TORCH_CHECK(x.device().is_cpu(), "this extension is for CPUs");
  return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("same", &same); }
"""


def test_a_source_for_cpus_says_what_the_variable_does(command, python, tmp_path):
    (tmp_path / "for_cpus.cpp").write_text(FOR_CPUS)
    script = """
import torch, kiln
m = kiln.load("for_cpus", ["for_cpus.cpp"])
try:
    print(m.same(torch.ones(2)).tolist())
except RuntimeError as error:
    print(error)
"""
    assert python(script).strip() == "[1.0, 1.0]"
    told = python(script, env={"KILN_DEVICE": "engine"})
    assert "this extension is for CPUs" in told and "fix: unset KILN_DEVICE" in told, told
