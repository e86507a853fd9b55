# SPDX-License-Identifier: Apache-2.0
"""Triton's tutorials 01 to 06: each runs as it is, which compares with torch by itself, and is then
called once more with inputs that a GPU gets too."""

from __future__ import annotations

import torch
from case import Run, case

TRITON, FOLDER = "triton-lang/triton", "python/tutorials/"


@case(TRITON, FOLDER + "01-vector-add.py", "add_kernel")
def vector_add(run: Run) -> None:
    names = run.script(FOLDER + "01-vector-add.py")
    x, y = run.rand(98432), run.rand(98432)
    run.compare("sum", names["add"](x, y), x + y, 0, 0)


@case(TRITON, FOLDER + "02-fused-softmax.py", "softmax_kernel")
def softmax(run: Run) -> None:
    names = run.script(FOLDER + "02-fused-softmax.py")
    x = run.randn(1823, 781)
    run.compare("softmax", names["softmax"](x), torch.softmax(x, 1), 1e-5, 1e-8)


@case(TRITON, FOLDER + "03-matrix-multiplication.py", "matmul_kernel")
def matmul(run: Run) -> None:
    names = run.script(FOLDER + "03-matrix-multiplication.py")
    a, b = (run.put((torch.rand(512, 512) - 0.5).half()) for _ in range(2))
    run.compare("fp16", names["matmul"](a, b), a @ b, 0, 1e-2)
    a, b = (run.randn(512, 512, dtype=torch.float16).to(torch.float8_e5m2) for _ in range(2))
    b = b.T
    run.compare("fp8", names["matmul"](a, b), a.half() @ b.half(), 0, 0.125)


@case(TRITON, FOLDER + "04-low-memory-dropout.py", "_seeded_dropout")
def dropout(run: Run) -> None:
    names = run.script(FOLDER + "04-low-memory-dropout.py")
    x, p = run.randn(5000), 0.5
    keep = run.put((torch.rand(5000) > p).int())
    found = names["dropout"](x, x_keep=keep, p=p)
    run.compare("dropout", found, torch.where(keep > 0, x / (1 - p), 0.0), 0, 0)
    # The tutorial shows that a seed decides; which elements are kept is Triton's own rand.
    found = names["seeded_dropout"](x, p=p, seed=123)
    again = names["seeded_dropout"](x, p=p, seed=123)
    run.compare("seeded dropout", found, again, 0, 0)
    run.compare("kept", torch.where(found != 0, x / (1 - p), 0.0), found, 0, 0)


@case(TRITON, FOLDER + "05-layer-norm.py", "_layer_norm_fwd_fused")
def layer_norm(run: Run) -> None:
    """Torch's sums of the gradients on a CPU are of fp16 and off by more than the tolerance: the
    reference is torch's in fp64."""
    names = layer_norm_names(run)
    shape, eps = (1151, 8192), 1e-5
    weight, bias = (run.rand(8192, dtype=torch.float16, grad=True) for _ in range(2))
    x = run.put((-2.3 + 0.5 * torch.randn(shape)).half(), grad=True)
    dy = run.put((0.1 * torch.randn(shape)).half())
    found = names["layer_norm"](x, (8192,), weight, bias, eps)
    found.backward(dy)
    wide = [one.detach().double().requires_grad_() for one in (x, weight, bias)]
    expected = torch.nn.functional.layer_norm(wide[0], (8192,), wide[1], wide[2], eps)
    expected.backward(dy.double())
    run.compare("y", found, expected.half(), 0, 1e-2)
    for name, one, other in zip(("dx", "dw", "db"), (x, weight, bias), wide):
        run.compare(name, one.grad, other.grad.half(), 0, 1e-2)


def layer_norm_names(run: Run) -> dict:
    """The script's own comparison is with torch in fp16: its functions are called instead."""
    real = torch.allclose
    torch.allclose = lambda *_, **__: True
    try:
        return run.script(FOLDER + "05-layer-norm.py")
    finally:
        torch.allclose = real


@case(TRITON, FOLDER + "06-fused-attention.py", "_attn_fwd")
def attention(run: Run) -> None:
    """As test_op does, at its smallest sizes."""
    names = run.script(FOLDER + "06-fused-attention.py")
    q, k, v = (run.put((torch.randn(1, 2, 128, 64) * 0.5).half(), grad=True) for _ in range(3))
    seen = torch.tril(torch.ones(128, 128, device=run.device))
    p = torch.matmul(q, k.transpose(2, 3)) * 0.5
    p[:, :, seen == 0] = float("-inf")
    expected = torch.matmul(torch.softmax(p.float(), dim=-1).half(), v).half()
    dout = run.randn(1, 2, 128, 64, dtype=torch.float16)
    expected.backward(dout)
    wanted = [one.grad.clone() for one in (q, k, v)]
    for one in (q, k, v):
        one.grad = None
    found = names["attention"](q, k, v, True, 0.5, False).half()
    found.backward(dout)
    run.compare("out", found, expected, 0, 1e-2)
    for name, one, other in zip(("dq", "dk", "dv"), (q, k, v), wanted):
        run.compare(name, one.grad, other, 0, 1e-2)
