# SPDX-License-Identifier: Apache-2.0
"""The drawn kernels of linkedin/Liger-Kernel."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed.tensor  # noqa: F401  some functions ask for its types
from case import Run, case

LIGER, OPS = "linkedin/Liger-Kernel", "src/liger_kernel/ops/"
TESTS = "test/transformers/"


def ops(run: Run, name: str) -> Any:
    return run.module(f"liger_kernel.ops.{name}", "src", ("liger_kernel", "liger_kernel.ops"))


def twice(*tensors: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Copies with gradients, for the reference and for the kernel."""
    return tuple([one.clone().detach().requires_grad_() for one in tensors] for _ in range(2))


@case(LIGER, OPS + "attn_res.py", "_attn_res_fwd_kernel", "_attn_res_bwd_kernel")
def attn_res(run: Run) -> None:
    reference = run.part(TESTS + "test_attn_res.py", "pytorch_attn_res").pytorch_attn_res
    function = ops(run, "attn_res").LigerAttnResFunction
    v, query = run.randn(3, 5, 37, 123), run.put(torch.randn(123) * 0.02)
    given, other = twice(v, query, torch.ones_like(query))
    grad = run.randn(5, 37, 123)
    expected = reference(*given)
    expected.backward(grad)
    found = function.apply(*other, 1e-6)
    found.backward(grad)
    run.compare("out", found, expected, 1e-5, 1e-4)
    run.compare("dV", other[0].grad, given[0].grad, 1e-4, 1e-3)


@case(LIGER, OPS + "grpo_loss.py", "_selective_log_softmax_kernel")
def selective_log_softmax(run: Run) -> None:
    name = "selective_log_softmax"
    reference = getattr(run.part(TESTS + "test_grpo_loss.py", name), name)
    fused = ops(run, "grpo_loss").fused_selective_log_softmax
    # 64 of the test's 1024 tokens: each is a program of its own.
    logits = run.randn(1, 64 + 1, 64000, dtype=torch.bfloat16)
    ids = run.randint(0, 64000 - 1, (1, 100 + 64))
    expected = reference(logits.float(), ids, 0.9).to(torch.bfloat16).float()
    run.compare("log p", fused(logits, ids, 0.9), expected, 5e-1, 5e-2)


@case(LIGER, OPS + "swiglu.py", "_swiglu_backward_kernel")
def swiglu(run: Run) -> None:
    reference = run.part(TESTS + "test_swiglu.py", "_torch_silu_mul_ref")._torch_silu_mul_ref
    function = ops(run, "swiglu").LigerSiLUMulFunction
    for shape in ((2, 8, 8), (9, 7, 41)):
        given, other = twice(run.randn(*shape), run.randn(*shape))
        grad = run.randn(*shape)
        expected, found = reference(*given, 0.7, 1.3), function.apply(*other, 0.7, 1.3)
        expected.backward(grad.clone())
        found.backward(grad.clone())
        run.compare(f"out {shape}", found, expected, 1e-5, 1e-3)
        for index in range(2):
            run.compare(f"grad {index} {shape}", other[index].grad, given[index].grad, 1e-5, 1e-3)


@case(LIGER, OPS + "swiglu.py", "_swiglu_forward_kernel_tiled")
def swiglu_tiled(run: Run) -> None:
    """As the repository's test does: the path of another GPU is forced and must give equal bits."""
    module = ops(run, "swiglu")
    tensors = [run.randn(4, 11009) for _ in range(3)]

    def results(arch: str) -> list[torch.Tensor]:
        module.infer_device_arch = lambda: arch
        a, b = (one.clone().requires_grad_() for one in tensors[:2])
        out = module.LigerSiLUMulFunction.apply(a, b, 1.3)
        out.backward(tensors[2].clone())
        return [out, a.grad, b.grad]

    for name, one, other in zip(("out", "da", "db"), results("blackwell"), results("hopper")):
        run.compare(name, one, other, 0, 0)
    plain = torch.nn.functional.silu(tensors[0] * 1.3) * tensors[1]
    run.compare("against torch", results("blackwell")[0], plain, 1e-5, 1e-3)


@case(LIGER, OPS + "relu_squared.py", "_relu_squared_forward_kernel")
def relu_squared(run: Run) -> None:
    function = ops(run, "relu_squared").LigerReLUSquaredFunction
    for shape in ((2, 8), (1, 1, 1023), (3, 7, 256)):
        given, other = twice(run.randn(*shape))
        grad = run.randn(*shape)
        expected, found = torch.relu(given[0]).square(), function.apply(other[0])
        expected.backward(grad)
        found.backward(grad)
        run.compare(f"out {shape}", found, expected, 1e-5, 1e-5)
        run.compare(f"grad {shape}", other[0].grad, given[0].grad, 1e-5, 1e-5)


@case(LIGER, OPS + "layer_norm.py", "_layer_norm_forward_kernel")
def layer_norm(run: Run) -> None:
    function = ops(run, "layer_norm").LigerLayerNormFunction
    for rows, size in (((2, 8), 64), ((1, 1), 1023)):
        given, other = twice(run.randn(*rows, size), run.randn(size), run.randn(size))
        grad = run.randn(*rows, size)
        expected = torch.nn.functional.layer_norm(given[0], (size,), given[1], given[2], 1e-6)
        found = function.apply(*other, 1e-6)
        expected.backward(grad)
        found.backward(grad)
        run.compare(f"out {size}", found, expected, 1e-5, 1e-5)
        for name, one, two in zip(("dx", "dw", "db"), other, given):
            run.compare(f"{name} {size}", one.grad, two.grad, 1e-5, 1e-5)


@case(LIGER, OPS + "modulated_rms_norm.py", "_modulated_rms_norm_forward_kernel")
def modulated_rms_norm(run: Run) -> None:
    test = run.part(TESTS + "test_modulated_rms_norm.py", "ModulatedRMSNormReference")
    function = ops(run, "modulated_rms_norm").LigerModulatedRMSNormFunction
    shape = (5, 123, 123)
    for mode, offset in (("llama", 0.0), ("gemma", 1.0)):
        model = test.ModulatedRMSNormReference(123, offset=offset, casting_mode=mode)
        model = model.to(run.device)
        scale, shift = (run.put(torch.randn(123) * 0.1) for _ in range(2))
        given, other = twice(run.randn(*shape), scale, shift)
        weight = model.weight.detach().clone().requires_grad_()
        grad = run.randn(*shape)
        expected = model(*given)
        found = function.apply(other[0], weight, other[1], other[2], 1e-6, offset, mode, False)
        expected.backward(grad)
        found.backward(grad)
        run.compare(f"out {mode}", found, expected, 1e-6, 1e-4)
        run.compare(f"dx {mode}", other[0].grad, given[0].grad, 1e-6, 1e-4)
