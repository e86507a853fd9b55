# SPDX-License-Identifier: Apache-2.0
"""Do C++ kernels under Meta, Autograd and CompositeImplicitAutograd run where torch traces:
torch.compile, export, opcheck? Fake tensors have no memory, and their sizes may be symbols."""

from __future__ import annotations

import kiln
import pytest
import torch


@pytest.fixture(scope="module")
def ops(command, sources):
    kiln.load(sources / "torch_traced.cpp")
    return torch.ops.torch_traced


CALLS = {
    "scaled": lambda ops, x: ops.scaled(x, 1 / 3),
    "centered": lambda ops, x: ops.centered(x, 1),
    "cubed": lambda ops, x: ops.cubed(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_compiled_and_exported(ops, name, capfd):
    def function(x):
        return CALLS[name](ops, x).sin() + 1

    x = torch.arange(12.0).reshape(3, 4) / 7
    expected = function(x)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), expected)
    assert torch.equal(compiled(x[:2]), function(x[:2]))

    class Module(torch.nn.Module):
        def forward(self, x):
            return function(x)

    program = torch.export.export(Module(), (x,))
    assert torch.equal(program.module()(x), expected)
    told = capfd.readouterr()
    assert "Exception in aoti_torch" not in told.err + told.out, told


def test_gradient_of_a_compiled_autograd_kernel(ops):
    x = torch.arange(4.0, requires_grad=True)
    torch.compile(lambda x: ops.cubed(x).sum(), backend="aot_eager", fullgraph=True)(x).backward()
    assert torch.equal(x.grad, 3 * x.detach() ** 2)


@pytest.mark.parametrize(
    ("name", "arguments"), [("scaled", (0.1,)), ("centered", (-1,)), ("cubed", ())]
)
def test_opcheck(ops, name, arguments):
    x = torch.randn(3, 4, requires_grad=name != "scaled")
    torch.library.opcheck(
        getattr(ops, name).default,
        (x, *arguments),
        test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_static"),
    )


def test_meta_tensors(ops):
    made = ops.scaled(torch.empty(2, 5, device="meta").t(), 2.0)
    assert made.device.type == "meta" and made.shape == (5, 2)
    with pytest.raises(RuntimeError, match="scaled takes float32"):
        ops.scaled(torch.empty(2, device="meta", dtype=torch.float64), 2.0)


def test_memory_of_a_fake_tensor(ops):
    """As torch has it: an error that names the cause. Reading would end the process."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.ones(3))
        with pytest.raises(RuntimeError, match="Cannot access data pointer of Tensor"):
            ops.reads_memory(x)
    assert ops.reads_memory(torch.full((2,), 0.1)).item() == pytest.approx(0.1)
