# SPDX-License-Identifier: Apache-2.0
"""The drawn kernels of FlagOpen/FlagGems. Tolerances are those of its gems_assert_close."""

from __future__ import annotations

import os
from typing import Any

import torch
from case import Run, case

GEMS, SOURCE = "FlagOpen/FlagGems", "src/flag_gems/"
EMPTY = ("flag_gems", "flag_gems.ops", "flag_gems.fused")
RELATIVE = {torch.float32: 1.3e-6, torch.float16: 1e-3, torch.bfloat16: 0.016, torch.int64: 0}


def module(run: Run, name: str) -> Any:
    os.environ["GEMS_VENDOR"] = "nvidia"  # else it asks nvidia-smi
    if run.device == "cpu":
        torch.cuda.device_count = lambda: 1  # its cache of kernels has an entry per device
    found = run.module("flag_gems." + name, "src", EMPTY)
    if hasattr(found, "device") and isinstance(found.device, str):
        found.device = run.device
    return found


def close(run: Run, name: str, found: Any, expected: Any, reduced: int = 1) -> None:
    """reduced: over how many elements a result is the sum."""
    run.compare(name, found, expected.to(found.dtype), RELATIVE[found.dtype], 1e-4 * reduced)


@case(GEMS, SOURCE + "ops/attention.py", "_attn_fwd")
def attention(run: Run) -> None:
    sdpa = module(run, "ops.attention").scaled_dot_product_attention
    for causal in (False, True):
        q, k, v = (run.put((torch.rand(4, 8, 256, 64) - 0.5) * 0.1).half() for _ in range(3))
        exact = [one.double() for one in (q, k, v)]
        expected = torch.nn.functional.scaled_dot_product_attention(*exact, is_causal=causal)
        found = sdpa(q, k, v, None, 0.0, causal)
        close(run, f"causal {causal}", found[0] if isinstance(found, tuple) else found, expected)


@case(GEMS, SOURCE + "ops/cumsum.py", "reduce_then_scan_block_sum_kernel_row")
def cumsum(run: Run) -> None:
    function = module(run, "ops.cumsum").cumsum
    for dtype in (torch.float32, torch.float16):
        x = run.randn(20, 40960, dtype=dtype)
        found = function(x, 1)
        close(run, str(dtype), found, torch.cumsum(x.double(), 1), 40960)


@case(GEMS, SOURCE + "ops/upsample_nearest2d.py", "upsample_nearest2d_kernel")
def upsample_nearest2d(run: Run) -> None:
    function = module(run, "ops.upsample_nearest2d").upsample_nearest2d
    for shape, scale in (((2, 3, 16, 16), (2, 2)), ((2, 7, 37, 31), (0.3, 1.7))):
        x = run.randn(*shape)
        size = [int(shape[2 + index] * scale[index]) for index in range(2)]
        expected = torch._C._nn.upsample_nearest2d(x, output_size=size)
        close(run, str(size), function(x, size), expected)


@case(GEMS, SOURCE + "ops/log_softmax.py", "log_softmax_kernel")
def log_softmax(run: Run) -> None:
    function = module(run, "ops.log_softmax").log_softmax
    for shape, dim in (((1, 2), 1), ((4096, 256), 1), ((200, 40, 3), 0)):
        x = run.randn(*shape)
        close(run, str(shape), function(x, dim), torch.log_softmax(x.double(), dim))


@case(GEMS, SOURCE + "ops/linspace.py", "linspace_kernel")
def linspace(run: Run) -> None:
    """Torch on a CPU computes fp16 in fp16, and on a GPU in fp32: the reference is of fp64."""
    function = module(run, "ops.linspace").linspace
    for start, end, steps in ((0, 256, 256), (2, 256, 512), (4, 2048, 256)):
        for dtype in (torch.float32, torch.float16, torch.int64):
            found = function(start, end, steps, dtype=dtype, device=run.device)
            wide = torch.float64 if dtype.is_floating_point else dtype
            expected = torch.linspace(start, end, steps, dtype=wide)
            close(run, f"{start} {end} {dtype}", found, expected)


@case(
    GEMS,
    SOURCE + "fused/instance_norm.py",
    "instance_norm_backward_kernel",
    "instance_norm_persistent_kernel_multiline",
)
def instance_norm(run: Run) -> None:
    function = module(run, "fused.instance_norm").instance_norm
    shape, channels = (16, 3, 16), 3
    x, grad = run.randn(*shape, grad=True), run.randn(*shape)
    weight, bias = run.randn(channels, grad=True), run.randn(channels, grad=True)
    found = function(x, weight, bias)
    grads = torch.autograd.grad(found, (x, weight, bias), grad)
    wide = [one.detach().double().requires_grad_() for one in (x, weight, bias)]
    expected = torch.nn.functional.instance_norm(wide[0], weight=wide[1], bias=wide[2])
    wanted = torch.autograd.grad(expected, wide, grad.double())
    close(run, "out", found, expected)
    close(run, "dx", grads[0], wanted[0], 16)
    close(run, "dw", grads[1], wanted[1], 16 * 16)
    close(run, "db", grads[2], wanted[2], 16 * 16)


@case(GEMS, SOURCE + "ops/sum.py", "sum_kernel_1")
def total(run: Run) -> None:
    function = module(run, "ops.sum").sum
    for shape in ((1, 2), (4096, 256), (200, 40, 3)):
        x = run.randn(*shape)
        close(run, str(shape), function(x), x.double().sum(), x.numel())
