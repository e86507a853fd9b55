# SPDX-License-Identifier: Apache-2.0
"""Does every kind of argument and result cross, and does an op look like a documented Python
callable?"""

from __future__ import annotations

import inspect
import re

import pytest
import torch


@pytest.fixture
def x(kiln_device):
    return torch.arange(6, dtype=torch.float32, device=kiln_device).reshape(2, 3)


SINCE_2_10 = pytest.mark.skipif(
    tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < (2, 10),
    reason="lists and strings cross since torch 2.10",
)


def same(seen, wanted):
    assert seen.dtype == wanted.dtype and seen.device == wanted.device
    assert torch.equal(seen, wanted), (seen, wanted)


def test_numbers_defaults_and_keywords(kinds, x):
    same(kinds.scale(x), x * 2)
    same(kinds.scale(x, 3), x * 3)
    same(kinds.scale(x, factor=0.5, offset=7), x * 0.5 + 7)
    same(kinds.scale(x, negate=True), x * -2)
    with pytest.raises(RuntimeError, match=r"keyword|positional"):
        kinds.scale(x, 1.0, 2)


def test_optional_tensor(kinds, x):
    same(kinds.biased(x), x)
    same(kinds.biased(x, None), x)
    same(kinds.biased(x, x), x + x)


@SINCE_2_10
def test_list_of_tensors(kinds, x):
    same(kinds.total([x]), x)
    same(kinds.total([x, x + 1, x * 2]), x + x + 1 + x * 2)


@SINCE_2_10
def test_lists_of_numbers(kinds, x):
    same(kinds.ramp(x, [2, 2], [1.0, 0.5]), torch.tensor([[1.0, 1.5], [2.0, 2.5]], device=x.device))
    with pytest.raises(RuntimeError, match="start_and_step has 3 values, 2 are wanted"):
        kinds.ramp(x, [2], [1.0, 2.0, 3.0])


@SINCE_2_10
def test_strings(kinds, x):
    same(kinds.named(x), x * 2)
    same(kinds.named(x, how="negate"), -x)
    with pytest.raises(RuntimeError, match="how is 'äöü'; it can be"):
        kinds.named(x, "äöü")


def test_before_2_10_lists_and_strings_are_refused(kinds, x):
    if SINCE_2_10.args[0] is False:
        pytest.skip("this torch is 2.10 or later")
    for call in (lambda: kinds.total([x]), lambda: kinds.named(x, "double")):
        with pytest.raises(RuntimeError, match=r"2\.10"):
            call()


def test_dtype_and_device(kinds, kiln_device):
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
        same(
            kinds.count_up(5, dtype, kiln_device), torch.arange(5, dtype=dtype, device=kiln_device)
        )
    with pytest.raises(RuntimeError, match="f16"):
        kinds.count_up(5, torch.float16, kiln_device)


def test_optional_numbers(kinds, x):
    same(kinds.shifted(x), x)
    same(kinds.shifted(x, 4), x + 4)
    same(kinds.shifted(x, times=0.1), x * 0.1)


def test_several_results(kinds, x):
    twice, half = kinds.twice_and_half(x)
    same(twice, x * 2)
    same(half, x * 0.5)


def test_results_that_are_no_tensors(kinds, x):
    assert kinds.facts(x) == (6, 1.0, True)
    assert kinds.facts(x.t()) == (6, 1.0, False)


@SINCE_2_10
def test_a_list_of_results(kinds, x):
    made = kinds.copies(x, 3)
    assert isinstance(made, list)
    for index, one in enumerate(made):
        same(one, x * index)
    assert kinds.copies(x, 0) == []


def test_copies_and_fills_of_the_runtime(kinds, x):
    assert torch.equal(kinds.moved(x).flatten(), x.flatten().roll(1))


def test_in_place(kinds, x):
    version = x._version
    assert kinds.fill_(x, 3.5) is None
    same(x, torch.full_like(x, 3.5))
    assert x._version > version, "autograd must see the write"


def test_a_write_to_a_saved_tensor_is_seen_by_autograd(kinds, x):
    leaf = x.clone().requires_grad_()
    middle = leaf * 1
    result = middle.square().sum()
    kinds.fill_(middle.detach(), value=1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()
    with torch.inference_mode():
        kinds.fill_(torch.ones(2, device=x.device), 2.0)


def test_overloads_are_chosen_by_type(kinds, x):
    same(kinds.shift(x, 2), x + 2)
    same(kinds.shift(x, 0.1), x + 0.1)
    assert kinds.shift.overloads() == ["int", "float"]
    same(kinds.shift.float(x, 2), x + 2)


def test_an_op_is_the_one_in_torch_ops(kinds):
    assert kinds.scale is torch.ops.kinds.scale
    assert kinds.scale.default is torch.ops.kinds.scale.default


def test_an_op_is_documented(kinds):
    op = kinds.scale
    assert op.__name__ == "scale"
    signature = inspect.signature(op)
    assert (
        str(signature)
        == "(x: 'Tensor', factor: 'float' = 2.0, *, offset: 'int' = 0, negate: 'bool' = False) -> "
        "'Tensor'"
    )
    lines = inspect.getdoc(op).splitlines()
    assert (
        lines[0]
        == "kinds::scale(Tensor x, float factor=2.0, *, SymInt offset=0, bool negate=False) -> "
        "Tensor"
    )
    assert "x * factor + offset, or the same with -factor." in lines
    assert re.fullmatch(r"Source: .*kinds\.cu:\d+", lines[-1])
    assert op.schema.startswith("kinds::scale(Tensor x, float factor=2")
    assert len(kinds.shift.schemas) == 2
    assert str(inspect.signature(kinds.shift)) == "(*args, **kwargs)"
    assert repr(op) == "<kiln op kinds.scale>"


def test_errors_name_op_and_place(kinds, x):
    with pytest.raises(
        RuntimeError, match=r"picky: x has 1 dimensions, 2 are wanted\n.*kinds\.cu:\d+"
    ):
        kinds.picky(x[0], x[0])
    with pytest.raises(RuntimeError, match=r"picky: sizes differ: \[2, 3\] and \[2, 2\]"):
        kinds.picky(x, x[:, :2])
    with pytest.raises(RuntimeError, match=r"flat<f32>\(\) on a tensor of f64(.|\n)*dispatch"):
        kinds.scale(x.double())
    with pytest.raises(RuntimeError, match=r"not contiguous: sizes \[3, 2\], strides \[1, 3\]"):
        kinds.scale(x.t())
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'x'"):
        kinds.scale("x")
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        kinds.scale()


def test_refusals_lose_no_later_launch(kinds, x):
    """An argument of <<<>>> that throws leaves a launch begun; 16 of them once made every later one
    do nothing."""
    for _ in range(40):
        with pytest.raises(RuntimeError, match="not contiguous"):
            kinds.scale(x.t())
    same(kinds.scale(x), x * 2)


def test_a_device_without_a_kernel(kinds):
    with pytest.raises((RuntimeError, NotImplementedError)):
        kinds.facts(torch.sparse_coo_tensor([[0]], [1.0], (2,)))


@pytest.mark.kiln_gpu
def test_tensors_on_two_devices(kinds):
    here, there = torch.ones(2, 2, device="cuda"), torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="device"):
        kinds.picky(here, there)


def test_sizes_zero_and_one(kinds, kiln_device):
    for n in (0, 1):
        x = torch.ones(n, device=kiln_device)
        same(kinds.scale(x), x * 2)


def test_an_op_works_in_threads(kinds, x):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        for index, made in enumerate(pool.map(lambda n: kinds.scale(x, float(n)), range(32))):
            same(made, x * index)
