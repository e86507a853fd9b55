# SPDX-License-Identifier: Apache-2.0
"""Do the rarer parts of the compat headers behave as torch's: autograd functions, named checks,
TensorInfo, settings?

The expected values and texts are torch's: with KILN_COMPAT=never the same tests run on torch's own
headers (a minute).
"""

from __future__ import annotations

import kiln
import pytest
import torch

pytestmark = pytest.mark.one_in(2)


@pytest.fixture(scope="session")
def ext(command, sources):
    return kiln.load(sources / "torch_rare.cu")


@pytest.mark.parametrize("weighted", [False, True])
def test_an_autograd_function_runs_kernels_both_ways(ext, kiln_device, weighted):
    x = torch.randn(4, 3, 2, device=kiln_device).transpose(0, 2).requires_grad_()
    weight = torch.randn_like(x).requires_grad_() if weighted else None
    y, count = ext.scale(x, 3.0, weight)
    assert (
        torch.allclose(y, x * 3 * (weight if weighted else 1))
        and count.item() == 24
        and not count.requires_grad
    )
    upstream = torch.randn_like(y)
    y.backward(upstream)
    assert torch.allclose(x.grad, upstream * 3 * (weight if weighted else 1))
    assert not weighted or torch.allclose(weight.grad, upstream * 3 * x)


def test_a_weight_that_needs_no_gradient_gets_none(ext, kiln_device):
    x = torch.randn(5, device=kiln_device, requires_grad=True)
    weight = torch.randn(5, device=kiln_device)
    ext.scale(x, 2.0, weight)[0].sum().backward()
    assert torch.allclose(x.grad, 2 * weight) and weight.grad is None


def test_without_gradients_there_is_no_graph(ext, kiln_device):
    x = torch.randn(5, device=kiln_device)
    assert not ext.scale(x, 2.0)[0].requires_grad
    with torch.no_grad():
        assert not ext.scale(x.requires_grad_(), 2.0)[0].requires_grad


def test_a_saved_tensor_that_changed_is_refused(ext, kiln_device):
    x = torch.randn(5, device=kiln_device, requires_grad=True)
    y, _ = ext.scale(x, 2.0)
    ext.bump(x.detach())
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()


def test_errors_of_forward_keep_their_type(ext):
    with pytest.raises(ValueError, match=r"^a factor of 0 has no use$"):
        ext.scale(torch.ones(2), 0.0)


def test_a_wrong_number_of_gradients_is_told(ext):
    x = torch.ones(2, requires_grad=True)
    y = ext.double_wrongly(x * 1)
    assert torch.equal(y, torch.full((2,), 2.0))
    with pytest.raises(
        RuntimeError,
        match=r"Doubled.* returned an incorrect number of gradients \(expected 1, got 3\)",
    ):
        y.sum().backward()


FLAT, OTHER = torch.zeros(4), torch.zeros(3, dtype=torch.float64)
CHECKS = [
    ("dim", "Expected 2-dimensional tensor, but got 1-dimensional tensor for argument #1 'a'"),
    ("range", "Expected 2 to 3 dimensions, but got 1-dimensional tensor for argument #1 'a'"),
    ("size", "Expected 2-dimensional tensor, but got 1-dimensional tensor for argument #1 'a'"),
    (
        "same size",
        "Expected tensor for argument #1 'a' to have same size as tensor for 'b'; but [4] does not "
        "equal [3]",
    ),
    (
        "numel",
        "Expected tensor for argument #1 'a' to have 6 elements; but it actually has 4 elements",
    ),
    (
        "same numel",
        "Expected tensor for argument #1 'a' to have same number of elements as tensor for 'b'; "
        "but 4 does not equal 3",
    ),
    (
        "type",
        "Expected tensor for argument #1 'a' to have scalar type Long; but got torch.FloatTensor "
        "instead",
    ),
    (
        "types",
        "Expected tensor for argument #1 'a' to have one of the following scalar types: Long, Int; "
        "but got torch.FloatTensor instead",
    ),
    (
        "same type",
        "Expected tensor for argument #1 'a' to have the same type as tensor for 'b'; "
        "but type torch.FloatTensor does not equal torch.DoubleTensor",
    ),
]


@pytest.mark.parametrize(("what", "text"), CHECKS)
def test_checks_name_the_argument(ext, what, text):
    with pytest.raises(RuntimeError) as failed:
        ext.check(FLAT, OTHER, what)
    assert str(failed.value).splitlines()[0] == text + " (while checking arguments for check)"


def test_checks_of_layout_and_place(ext):
    plane = torch.zeros(2, 4)
    with pytest.raises(
        RuntimeError,
        match=r"Expected contiguous tensor, but got non-contiguous tensor for 'b' \(while",
    ):
        ext.check(plane, plane.t(), "contiguous")
    with pytest.raises(
        RuntimeError,
        match=r"have size 3 at dimension 1, but got size 4 for argument #1 'a' \(while",
    ):
        ext.check(plane, plane, "size at")
    with pytest.raises(
        RuntimeError, match="to have the same dimension as tensor for 'b'; but 2 does not equal 1"
    ):
        ext.check(plane, FLAT, "same dim")
    with pytest.raises(
        RuntimeError,
        match="Tensor for argument #1 'a' is on CPU, Tensor for 'b' is on CPU, but expected",
    ):
        ext.check(plane, plane, "GPU")
    ext.check(torch.zeros(2, 3), torch.zeros(2, 3), "size")


def test_a_plain_check_is_a_runtime_error_with_its_place(ext):
    with pytest.raises(RuntimeError, match=r"check, .*torch_rare\.cu:\d+, not 1 of them"):
        ext.check(FLAT, FLAT, "plain")


@pytest.mark.parametrize(
    ("x", "kept", "expected"),
    [
        (torch.zeros(2, 3, 4), -1, 9),
        (torch.zeros(2, 3, 4), 1, 31),
        (torch.zeros(2, 3, 4).transpose(0, 1), -1, 29),
        (torch.zeros(2, 1, 4)[:, :, ::2], 2, 21),
        (torch.zeros(1, 1), -1, 10),
    ],
)
def test_dimensions_collapse(ext, x, kept, expected):
    assert ext.collapsed(x, kept) == expected


def test_settings_are_those_of_python(ext):
    assert not ext.deterministic()
    ext.alert()
    torch.use_deterministic_algorithms(True)
    try:
        assert ext.deterministic()
        with pytest.raises(
            RuntimeError, match=r"^alert does not have a deterministic implementation, but you set"
        ):
            ext.alert()
    finally:
        torch.use_deterministic_algorithms(False)
