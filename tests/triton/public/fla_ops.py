# SPDX-License-Identifier: Apache-2.0
"""The drawn kernels of fla-org/flash-linear-attention."""

from __future__ import annotations

import sys
from typing import Any

import torch
from case import Run, case

FLA = "fla-org/flash-linear-attention"
EMPTY = (
    "fla", "fla.ops", "fla.modules", "fla.ops.delta_rule", "fla.ops.gated_delta_rule",
    "fla.ops.rwkv6", "fla.ops.common",
)  # fmt: skip


def module(run: Run, name: str) -> Any:
    run.module("types", empty=EMPTY)  # the packages are there
    sys.modules["fla"].__version__ = "0.5.2"  # which the package's own file would say
    return run.module("fla." + name, empty=EMPTY)


def close(run: Run, name: str, found: Any, expected: Any, ratio: float) -> None:
    """As fla.utils.assert_close: the error's mean square against the values'."""
    gap = (found.detach().float() - expected.detach().float()).square().mean().sqrt()
    base = expected.detach().float().square().mean().sqrt()
    rate = float(gap / (base + 1e-8))
    small = float((found - expected).detach().float().abs().max()) <= 1e-6
    scale = float(expected.detach().float().abs().max())
    run.judge(name, found, small or rate < ratio, f"ratio {rate:.5f}", ratio, ratio * scale)


@case(FLA, "fla/ops/gated_delta_rule/gate.py", "gdn_gate_bwd_kernel")
def gdn_gate(run: Run) -> None:
    gate = module(run, "ops.gated_delta_rule.gate")
    for batch, length, heads, has_bias in ((1, 32, 2, False), (2, 64, 4, True)):
        given = [run.randn(batch, length, heads), run.put((torch.rand(heads) * 15 + 1).log())]
        given += [run.randn(heads)] if has_bias else []
        grad = run.randn(batch, length, heads)
        grads, outs = [], []
        for function in (gate.naive_gdn_gate, gate.fused_gdn_gate):
            inputs = [one.clone().requires_grad_() for one in given]
            out = function(*inputs, *([] if has_bias else [None]))
            (out * grad).sum().backward()
            outs.append(out)
            grads.append([one.grad for one in inputs])
        close(run, f"out {length}", outs[1], outs[0], 1e-4)
        for name, one, other in zip(("dg", "dA", "dbias"), grads[1], grads[0]):
            close(run, f"{name} {length}", one, other, 1e-4)


@case(FLA, "fla/modules/activations.py", "swish_fwd_kernel")
def swish(run: Run) -> None:
    activations = module(run, "modules.activations")
    for shape in ((1, 1, 64), (2, 512, 128)):
        x, grad = run.randn(*shape, grad=True), run.randn(*shape)
        expected, found = torch.nn.functional.silu(x), activations.swish(x)
        close(run, f"out {shape}", found, expected, 1e-3)
        wanted = torch.autograd.grad(expected, x, grad)[0]
        close(run, f"dx {shape}", torch.autograd.grad(found, x, grad)[0], wanted, 1e-3)


@case(FLA, "fla/ops/delta_rule/fused_recurrent.py", "fused_recurrent_delta_rule_fwd_kernel")
def recurrent_delta_rule(run: Run) -> None:
    fused = module(run, "ops.delta_rule.fused_recurrent").fused_recurrent_delta_rule
    reference = run.part("fla/ops/delta_rule/naive.py", "delta_rule_recurrence")
    b, t, h, d = 1, 63, 1, 64
    q, v = run.randn(b, t, h, d), run.randn(b, t, h, d)
    k = torch.nn.functional.normalize(run.randn(b, t, h, d), dim=-1)
    beta, state = run.rand(b, t, h).sigmoid(), run.randn(b, h, d, d)
    found = fused(q, k, v, beta, initial_state=state.clone(), output_final_state=True)
    turned = [one.transpose(1, 2) for one in (q, k, v, beta)]
    expected = reference.delta_rule_recurrence(*turned, initial_state=state.clone())
    close(run, "out", found[0], expected[0].transpose(1, 2), 0.005)
    close(run, "state", found[1], expected[1], 0.005)


@case(FLA, "fla/ops/gated_delta_rule/wy_fast.py", "recompute_w_u_fwd_kernel")
def gated_recompute_w_u(run: Run) -> None:
    recompute = module(run, "ops.gated_delta_rule.wy_fast").recompute_w_u_fwd
    compare_w_u(run, lambda k, v, beta, a: recompute(k, v, beta, a, None))


@case(FLA, "fla/ops/delta_rule/wy_fast.py", "recompute_w_u_fwd_kernel")
def recompute_w_u(run: Run) -> None:
    recompute = module(run, "ops.delta_rule.wy_fast").recompute_w_u_fwd
    compare_w_u(run, lambda k, v, beta, a: recompute(k, v, beta, a, None))


def compare_w_u(run: Run, function: Any) -> None:
    test = run.part(
        "tests/ops/test_gdn_kernels.py", "recompute_w_u_fwd_ref", "_make_wy_inverse", device="cpu"
    )
    b, t, h, d, dtype = 2, 128, 2, 64, torch.bfloat16
    k, v = run.randn(b, t, h, d, dtype=dtype), run.randn(b, t, h, d, dtype=dtype)
    beta = run.rand(b, t, h, dtype=dtype).sigmoid()
    inverse = run.put(test._make_wy_inverse(b, t, h, 64, dtype))
    expected = test.recompute_w_u_fwd_ref(k, v, beta, inverse, None)
    for name, one, other in zip("wu", function(k, v, beta, inverse), expected):
        close(run, name, one, other, 0.005)


@case(FLA, "fla/modules/l2norm.py", "l2norm_fwd_kernel")
def l2norm(run: Run) -> None:
    """fla takes this kernel for wide rows, another one up to 512."""
    normalize = module(run, "modules.l2norm").l2_norm
    for shape in ((1, 63, 1, 60), (2, 500, 4, 64), (4, 64, 5, 1024)):
        x = run.put(torch.randn(*shape) * 0.5 + 0.3, grad=True)
        expected, found = torch.nn.functional.normalize(x, dim=-1, p=2), normalize(x)
        close(run, f"out {shape}", found, expected, 0.005)
        wanted = torch.autograd.grad(expected.sum(), x)[0]
        close(run, f"dx {shape}", torch.autograd.grad(found.sum(), x)[0], wanted, 0.005)


@case(FLA, "fla/modules/fused_kl_div.py", "elementwise_mul_kernel")
def fused_kl_div(run: Run) -> None:
    loss = module(run, "modules.fused_kl_div").FusedKLDivLoss(reduction="batchmean")
    x, weight = run.randn(64, 128, grad=True), run.randn(1000, 128, grad=True)
    target, target_weight = run.randn(64, 128), run.randn(1000, 128)
    linear = torch.nn.functional.linear
    expected = torch.nn.functional.kl_div(
        linear(x, weight).log_softmax(-1), linear(target, target_weight).softmax(-1),
        reduction="batchmean",
    )  # fmt: skip
    grad = run.put(torch.randn(()))
    wanted = torch.autograd.grad(expected, (x, weight), grad)
    found = loss(x, target, weight, target_weight)
    grads = torch.autograd.grad(found, (x, weight), grad)
    close(run, "loss", found, expected, 1e-2)
    close(run, "dx", grads[0], wanted[0], 1e-2)
    close(run, "dw", grads[1], wanted[1], 1e-2)


@case(FLA, "fla/ops/rwkv6/fused_recurrent.py", "fused_recurrent_rwkv6_bwd_kernel_dq")
def recurrent_rwkv6(run: Run) -> None:
    fused = module(run, "ops.rwkv6.fused_recurrent").fused_recurrent_rwkv6
    naive = run.part("fla/ops/rwkv6/recurrent_naive.py", "naive_recurrent_rwkv6")
    b, t, h, d = 1, 63, 1, 64
    given = [run.randn(b, t, h, d) for _ in range(3)]
    given += [torch.nn.functional.logsigmoid(run.randn(b, t, h, d)), run.randn(h, d)]
    grad = run.randn(b, t, h, d)
    results = []
    for function in (fused, by_head(naive.naive_recurrent_rwkv6)):
        inputs = [one.detach().clone().requires_grad_() for one in given]
        out = function(*inputs, scale=1.0)[0]
        results.append([out, *torch.autograd.grad(out, inputs, grad)])
    for name, one, other in zip(("out", "dr", "dk", "dv", "dw", "du"), *results):
        close(run, name, one, other, 0.005)


def by_head(function: Any) -> Any:
    """The naive form takes heads before time."""

    def turned(q: Any, k: Any, v: Any, w: Any, u: Any, scale: float) -> Any:
        inputs = [one.transpose(1, 2) for one in (q, k, v, w)]
        return [function(*inputs, u, scale=scale)[0].transpose(1, 2)]

    return turned
