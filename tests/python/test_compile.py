# SPDX-License-Identifier: Apache-2.0
"""Do ops pass through torch.compile, torch.export, opcheck and autograd as torch's own do?"""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend


@pytest.fixture
def x(kiln_device):
    return torch.randn(4, 3, device=kiln_device)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()


def test_five_shapes_compile_once(kinds, kiln_device):
    counter = CompileCounterWithBackend("aot_eager")

    @torch.compile(fullgraph=True, dynamic=True, backend=counter)
    def step(a, b):
        twice, half = kinds.twice_and_half(kinds.picky(a, b))
        return kinds.scale(twice + half, 3.0, offset=1)

    for n in (2, 5, 16, 33, 100):
        a, b = torch.randn(n, n + 1, device=kiln_device), torch.randn(n, n + 1, device=kiln_device)
        torch.testing.assert_close(step(a, b), (a + b) * 2.5 * 3 + 1)
    assert counter.frame_count == 1


def test_inductor(kinds, x):
    """Ops alone, so that inductor has no C++ of its own to compile."""
    step = torch.compile(lambda a: kinds.scale(kinds.biased(a, a), 3.0), fullgraph=True)
    torch.testing.assert_close(step(x), x * 6)


def test_in_place_under_compile(kinds, x):
    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(a):
        b = a * 2
        kinds.fill_(b, 5.0)
        return b + a

    torch.testing.assert_close(step(x), x + 5)


def test_export(kinds, x):
    class Model(torch.nn.Module):
        def forward(self, a, b):
            return kinds.picky(a, b), kinds.scale(a)

    rows = torch.export.Dim("rows", min=2, max=1000)
    shapes = {"a": {0: rows}, "b": {0: rows}}
    program = torch.export.export(Model(), (x, x + 1), dynamic_shapes=shapes)
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert {"kinds.picky.default", "kinds.scale.default"} <= targets
    other = torch.randn(9, 3, device=x.device)
    summed, scaled = program.module()(other, other)
    torch.testing.assert_close(summed, other * 2)
    torch.testing.assert_close(scaled, other * 2)


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("scale", (1.5,)),
        ("biased", ()),
        ("twice_and_half", ()),
        ("shifted", (2, 0.5)),
        ("fill_", (2.0,)),
    ],
)
def test_opcheck(kinds, x, name, extra):
    torch.library.opcheck(getattr(kinds, name).default, (x.clone(), *extra))


def test_opcheck_of_an_overload(kinds, x):
    torch.library.opcheck(kinds.shift.int, (x, 3))
    torch.library.opcheck(kinds.shift.float, (x, 3.5))


def test_meta_tensors(kinds):
    made = kinds.scale(torch.empty(7, 2, device="meta"))
    assert made.device.type == "meta" and made.shape == (7, 2)


def test_a_python_function_replaces_the_rule(kinds, kiln_device):
    seen = []

    @kinds.facts.fake
    def _(x):
        seen.append(tuple(x.shape))
        return 3, 0.5, True

    assert kinds.facts(torch.empty(3, device="meta")) == (3, 0.5, True)
    assert seen == [(3,)]

    @kinds.facts.fake
    def _(x):
        return 4, 0.5, True

    assert kinds.facts(torch.empty(3, device="meta"))[0] == 4, (
        "a second function takes the place of the first"
    )


def test_backward_with_saved_arguments(kinds, kiln_device):
    x = torch.randn(5, device=kiln_device, requires_grad=True)

    @kinds.shifted.backward
    def _(ctx, grad):
        (saved,) = ctx.saved_tensors
        assert saved.shape == (5,)
        times = ctx.arguments[2]
        return grad * (1.0 if times is None else times), None, None

    kinds.shifted(x, 1, 3.0).sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 3.0))
    torch.library.opcheck(
        kinds.shifted.default, (torch.randn(5, device=kiln_device, requires_grad=True), 1, 2.0)
    )


def test_setup_context_and_a_second_backward(kinds, kiln_device):
    @kinds.biased.setup_context
    def _(ctx, inputs, output):
        ctx.has_bias = inputs[1] is not None

    @kinds.biased.backward
    def _(ctx, grad):
        return grad * 10, None

    @kinds.biased.backward
    def _(ctx, grad):
        return grad, grad if ctx.has_bias else None

    x = torch.randn(3, device=kiln_device, requires_grad=True)
    y = torch.randn(3, device=kiln_device, requires_grad=True)
    kinds.biased(x, y).sum().backward()
    torch.testing.assert_close(x.grad, torch.ones_like(x))
    torch.testing.assert_close(y.grad, torch.ones_like(y))

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(a, b):
        return kinds.biased(a, b).square().sum()

    x.grad = None
    step(x, y).backward()
    torch.testing.assert_close(x.grad, 2 * (x + y).detach())


def test_backward_of_an_op_that_writes_is_refused(kinds):
    with pytest.raises(RuntimeError, match="writes to its arguments"):

        @kinds.fill_.backward
        def _(ctx, grad):
            return grad


def test_no_autograd_key_unless_asked(kinds):
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert not has("kinds::scale", "Autograd")
    assert not has("kinds::scale", "AutogradCPU")
