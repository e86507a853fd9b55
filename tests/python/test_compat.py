# SPDX-License-Identifier: Apache-2.0
"""Does a source for torch.utils.cpp_extension build through kiln's compat headers, unchanged, and
behave as torch's do?

The expected values and texts are torch's; tools/compat-equal builds the source both ways, with
torch's own headers too, and runs all of this on each.
"""

from __future__ import annotations

import json
import subprocess

import kiln
import pytest
import torch


@pytest.fixture(scope="session")
def ext(command, sources):
    return kiln.load(sources / "torch_add.cu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_kernels_run(ext, kiln_device, dtype, size):
    a, b = (torch.randn(size, device=kiln_device, dtype=torch.float32).to(dtype) for _ in range(2))
    assert torch.equal(ext.my_add(a, b), a + b)


def test_packed_accessors_and_strides(ext, kiln_device):
    x = torch.randn(4, 6, device=kiln_device).t()[
        1:5
    ]  # neither contiguous nor at the beginning of its storage
    expected = x * 3
    ext.scale_rows_(x, factor=3)
    assert torch.equal(x, expected)
    ext.scale_rows_(x)
    assert torch.equal(x, expected * 2)


def test_values_cross(ext):
    x = torch.randn(4, 6)
    transposed, dims, contiguous = ext.facts(x)
    assert torch.equal(transposed, x.t()) and (dims, contiguous) == (2, True)
    halves = ext.halves(x, dim=1)
    assert isinstance(halves, list) and all(map(torch.equal, halves, x.split(3, 1)))
    assert ext.twice(4) == 8 and ext.twice("ab") == "abab"
    assert ext.answer == 42 and ext.__doc__ == "an extension" and ext.__name__ == "torch_add"
    assert (
        ext.my_add.__doc__
        == "my_add(arg0: torch.Tensor, arg1: torch.Tensor) -> torch.Tensor\n\na + b\n"
    )
    assert ext.halves.__doc__.startswith(
        "halves(x: torch.Tensor, dim: typing.SupportsInt = 0) -> list[torch.Tensor]"
    )


def test_optional_lists_defaults_and_ops(ext):
    x, bias = torch.randn(2, 6), torch.randn(6)
    assert torch.equal(ext.mixed(x, shape=[3, 4]), (x * 1.0 + 1).view(3, 4))
    assert torch.equal(ext.mixed(x, None, (12,), negate=True), -(x + 1).view(12))
    assert torch.equal(ext.mixed(x, bias, [2, 6], 2, False, "sum"), (x * 2 + 1 + bias).sum(0))
    assert torch.equal(
        ext.mixed(x, bias=bias, shape=[2, 6], reduce="mean"), (x + 1 + bias).mean([0], keepdim=True)
    )


def test_indexing(ext):
    x = torch.arange(12.0).view(3, 4)
    y = x.clone()
    y[0, :2] = 7
    y[1] = y[0]
    assert torch.equal(ext.indexed(x), torch.cat([y[:, 0], y[..., -1], torch.arange(3.0)]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex64])
def test_options_and_factories(ext, dtype):
    made = ext.options_of(torch.zeros(1), dtype)
    full = torch.full((2, 3), 4, dtype=dtype)
    assert torch.equal(made, torch.stack([full, torch.ones_like(full), torch.zeros_like(full)]))


CASES = [
    (
        lambda e: e.my_add(torch.zeros(2), torch.zeros(3)),
        RuntimeError,
        "shapes differ: [2] and [3]",
    ),
    (
        lambda e: e.my_add(torch.zeros(2, 2).t(), torch.zeros(2, 2)),
        RuntimeError,
        "a must be contiguous",
    ),
    (
        lambda e: e.my_add(torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)),
        NotImplementedError,
        "\"my_add\" not implemented for 'Int'",
    ),
    (
        lambda e: e.my_add(torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        RuntimeError,
        "expected scalar type Float but found Double",
    ),
    (
        lambda e: e.as_float(torch.zeros(2, dtype=torch.int64)),
        RuntimeError,
        "expected scalar type Float but found Long",
    ),
    (
        lambda e: e.scale_rows_(torch.zeros(2)),
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    (
        lambda e: e.size_of(torch.zeros(2, 3), 5),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 5)",
    ),
    (
        lambda e: e.size_of(torch.zeros(()), 0),
        IndexError,
        "Dimension specified as 0 but tensor has no dimensions",
    ),
    (
        lambda e: e.mixed(torch.zeros(4), shape=[3]),
        RuntimeError,
        "shape '[3]' is invalid for input of size 4",
    ),
    (
        lambda e: e.mixed(torch.zeros(4), shape=[4], reduce="max"),
        ValueError,
        "unknown reduction max",
    ),
    (
        lambda e: e.halves(torch.zeros(4), 3),
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 3)",
    ),
    (lambda e: e.refuse("index"), IndexError, "an index error"),
    (lambda e: e.refuse("value"), ValueError, "a value error"),
    (lambda e: e.refuse("type"), TypeError, "a type error"),
    (lambda e: e.refuse("not implemented"), NotImplementedError, "not implemented at all"),
    (
        lambda e: e.refuse("bare"),
        RuntimeError,
        'Expected how != "bare" to be true, but got false.  (Could this error message be improved? '
        " If so, please report "
        "an enhancement request to PyTorch.)",
    ),
    (lambda e: e.refuse("std"), IndexError, "out of range"),
    (lambda e: e.refuse("x"), RuntimeError, "refused: x 1.5 Half cuda:1"),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_errors_have_torchs_type_and_text(ext, case):
    call, kind, text = CASES[case]
    with pytest.raises(kind) as raised:
        call(ext)
    assert type(raised.value) is kind
    assert str(raised.value).split("\nException raised from")[0] == text


def test_wrong_arguments_are_a_type_error(ext):
    for call in (
        lambda: ext.my_add(1, 2),
        lambda: ext.my_add(torch.zeros(1)),
        lambda: ext.size_of(torch.zeros(1), 1.5),
        lambda: ext.scale_rows_(torch.zeros(1, 1), fctor=2),
        lambda: ext.twice(2**70),
    ):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call()


def test_load_inline_with_torchs_names(command, kiln_device):
    cuda = """
__global__ void square_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * x[i];
}
torch::Tensor square(torch::Tensor x) {
  auto out = torch::empty_like(x);
  square_kernel<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(),
                                                  x.numel());
  return out;
}
"""
    module = kiln.load_inline(
        "inline_square", "torch::Tensor square(torch::Tensor x);", cuda, functions=["square"]
    )
    x = torch.randn(300, device=kiln_device)
    assert torch.equal(module.square(x), x * x)


def build(command, *words):
    done = subprocess.run(
        [command, "build", *map(str, words), "--json"], capture_output=True, text=True, check=False
    )
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize(
    ("line", "symbol"),
    [
        ('struct Own {}; static auto own = torch::class_<Own>("a", "Own");', "class_"),
        ("#include <ATen/native/TensorIterator.h>", "ATen/native/TensorIterator.h"),
    ],
)
def test_what_compat_lacks_is_told_with_its_line(command, tmp_path, line, symbol):
    path = tmp_path / "more.cpp"
    path.write_text(f"#include <torch/extension.h>\n{line}\n")
    answer, _ = build(command, path, "--compat=require")
    error = answer["error"]
    assert "more.cpp" in error["why"] and symbol in error["why"]
    assert "compat headers lack" in error["fix"] and "--compat=require" in error["fix"]
