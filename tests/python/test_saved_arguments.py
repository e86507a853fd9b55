# SPDX-License-Identifier: Apache-2.0
"""What does a backward without a setup_context find in ctx, and does torch know what was saved?"""

from __future__ import annotations

import gc
import re
import weakref

import kiln
import pytest
import torch

THIRD = 1 / 3

pytestmark = pytest.mark.skipif(
    tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < (2, 10),
    reason="lists cross since torch 2.10",
)


@pytest.fixture
def of_list(command, sources):
    op = kiln.load("saved", [str(sources / "transformed.cu")]).of_list
    seen = []

    @op.backward
    def _(ctx, grad):
        ((first, _),) = ctx.arguments
        seen.append((ctx.saved_tensors, ctx.needs_input_grad))
        return [grad * 0.2 * first, grad]

    return op, seen


def pair():
    return [torch.full((3,), THIRD, requires_grad=True), torch.full((3,), 0.1, requires_grad=True)]


def test_lists_are_arguments(of_list):
    op, seen = of_list
    first, second = pair()
    op([first, second]).sum().backward()
    torch.testing.assert_close(first.grad, torch.full((3,), 0.2 * THIRD))
    torch.testing.assert_close(second.grad, torch.ones(3))
    assert seen[0][0] == (), "single tensors alone"


@pytest.mark.parametrize("changed", [0, 1])
def test_a_tensor_of_a_list_that_was_written_to_is_found(of_list, changed):
    tensors = [one * 1 for one in pair()]
    result = of_list[0](tensors)
    with torch.no_grad():
        tensors[changed].mul_(100)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_saved_tensors_are_let_go_of(of_list):
    tensors = [one * 1 for one in pair()]
    result = of_list[0](tensors)
    inner = weakref.ref(tensors[0])
    result.sum().backward()
    del tensors
    gc.collect()
    assert inner() is None, "ctx held the tensors of the list after the backward"
    with pytest.raises(RuntimeError, match="second time"):
        result.sum().backward()
