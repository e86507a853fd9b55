# SPDX-License-Identifier: Apache-2.0
"""Does an op without a backward raise when a gradient is asked for, and only then?"""

from __future__ import annotations

import json
import subprocess

import kiln
import pytest
import torch


@pytest.fixture(scope="module")
def smooth(command, sources):
    return kiln.load(sources / "smooth.cu")


@pytest.fixture
def x(kiln_device):
    return torch.randn(4, 6, device=kiln_device)


NAMED = (
    r"error: smooth::gelu has no backward\n.*\n +fix: give it one with @op.backward, or "
    r"(.|\n)*no_grad"
)


def test_backward_raises_and_names_op_and_fix(smooth, x):
    weight = torch.ones_like(x).requires_grad_()
    result = smooth.gelu(x * weight)
    assert result.requires_grad
    with pytest.raises(RuntimeError, match=NAMED):
        (result.sum() + weight.sum()).backward()
    assert weight.grad is None


def test_autograd_grad_raises_for_each_input(smooth, x):
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    product, total = smooth.product_and_sum(a, b)
    for result in (product, total):
        for leaf in (a, b):
            with pytest.raises(RuntimeError, match="smooth::product_and_sum has no backward"):
                torch.autograd.grad(result.sum(), leaf, retain_graph=True)


def test_nothing_is_raised_where_no_gradient_is_asked_for(smooth, x):
    leaf = x.clone().requires_grad_()
    result = smooth.gelu(leaf)
    assert torch.equal(result.detach(), smooth.gelu(x)), "a forward pass alone is fine"
    result += 1  # nor is the result a view that cannot be written to
    with torch.no_grad():
        assert not smooth.gelu(leaf).requires_grad
    with torch.inference_mode():
        assert not smooth.gelu(leaf).requires_grad
    assert not smooth.gelu(leaf.detach()).requires_grad
    # Beside other paths of the graph.
    (leaf.square().sum() + smooth.gelu(leaf).detach().sum()).backward()
    assert torch.equal(leaf.grad, 2 * leaf.detach())


def test_results_without_a_gradient_stay_without(kinds, x):
    leaf = x.clone().requires_grad_()
    assert kinds.facts(leaf)[0] == 24


def test_lists_and_optionals(kinds, kiln_device):
    if not hasattr(torch.library, "opcheck") or tuple(
        map(int, torch.__version__.split(".")[:2])
    ) < (2, 10):
        pytest.skip("lists cross since torch 2.10")
    leaf = torch.ones(3, device=kiln_device, requires_grad=True)
    with pytest.raises(RuntimeError, match="kinds::total has no backward"):
        kinds.total([torch.ones(3, device=kiln_device), leaf]).sum().backward()
    made = kinds.copies(leaf, 2)
    with pytest.raises(RuntimeError, match="kinds::copies has no backward"):
        made[1].sum().backward()


def test_a_write_is_refused_before_it_happens(smooth, x):
    middle = x.clone().requires_grad_() * 1
    before = middle.detach().clone()
    with pytest.raises(
        RuntimeError,
        match=r"smooth::scale_ cannot be differentiated\n.*writes to 'x'(.|\n)*no_grad",
    ):
        smooth.scale_(middle, 2.0)
    assert torch.equal(middle.detach(), before)
    with torch.no_grad():
        smooth.scale_(middle, 2.0)
    assert torch.equal(middle.detach(), before * 2)


def test_a_backward_takes_the_refusal_away(command, sources, x):
    module = kiln.load("smooth_with", [str(sources / "smooth.cu")])
    leaf = x.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="has no backward"):
        module.gelu(leaf).sum().backward()
    module.gelu.backward(lambda ctx, grad: grad * 3)
    module.gelu(leaf).sum().backward()
    assert torch.equal(leaf.grad, torch.full_like(x, 3.0))
    step = torch.compile(lambda x: module.gelu(x).sum(), fullgraph=True, backend="aot_eager")
    leaf.grad = None
    step(leaf).backward()
    assert torch.equal(leaf.grad, torch.full_like(x, 3.0))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(smooth, x, dynamic):
    compiled = torch.compile(
        lambda x: smooth.gelu(x) * 2, fullgraph=True, backend="aot_eager", dynamic=dynamic
    )
    assert torch.equal(compiled(x), smooth.gelu(x) * 2)
    leaf = x.clone().requires_grad_()
    with torch.no_grad():
        assert torch.equal(compiled(leaf), smooth.gelu(x) * 2)
    with pytest.raises(RuntimeError, match="smooth::gelu has no backward"):
        compiled(leaf).sum().backward()


def test_opcheck_passes(smooth, x):
    torch.library.opcheck(smooth.gelu.default, (x,))


def test_without_the_python_package(command, sources, python, tmp_path):
    """torch.ops.load_library alone, as a library is used that was shipped without kiln."""
    made = subprocess.run(
        [command, "build", sources / "smooth.cu", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    library = json.loads(made.stdout)["library"]
    script = f"""
import sys, torch
torch.ops.load_library({library!r})
assert "kiln" not in sys.modules
leaf = torch.ones(3, device="cuda" if torch.cuda.is_available() else "cpu", requires_grad=True)
with torch.no_grad():
    torch.ops.smooth.gelu(leaf)
try:
    torch.ops.smooth.gelu(leaf).sum().backward()
except RuntimeError as error:
    print(error)
"""
    assert "smooth::gelu has no backward" in python(script, env={"PYTHONPATH": ""})
