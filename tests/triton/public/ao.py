# SPDX-License-Identifier: Apache-2.0
"""The drawn kernels of pytorch/ao."""

from __future__ import annotations

from typing import Any, Callable

import torch
from case import Run, case

AO, PROTOTYPE = "pytorch/ao", "torchao/prototype/"
TRAINING = "blockwise_fp8_training/"
EMPTY = (
    "torchao", "torchao.float8", "torchao.prototype", "torchao.prototype.blockwise_fp8_training",
    "torchao.prototype.moe_training", "torchao.prototype.moe_training.ep",
    "torchao.prototype.moe_training.kernels", "torchao.prototype.moe_training.kernels.mxfp8",
)  # fmt: skip


def module(run: Run, name: str) -> Any:
    return run.module(f"torchao.prototype.{name}", empty=EMPTY)


def compare_quantized(run: Run, found: Any, expected: Any, label: str = "") -> None:
    run.compare("values" + label, found[0].float(), expected[0].float(), 0, 0)
    run.compare("scales" + label, found[1], expected[1], 0, 0)


def quantized(
    run: Run, name: str, reference: str, shape: tuple[int, int], transposed: bool
) -> None:
    run.needs(90)
    kernels = module(run, "blockwise_fp8_training.kernels")
    x = run.randn(*shape)
    x[: 128 if "weight" in name else 1, :128] = 0
    given = x.t().contiguous() if transposed else x
    compare_quantized(
        run,
        getattr(kernels, name)(x, block_size=128),
        getattr(kernels, reference)(given, tile_size=128),
    )


@case(AO, PROTOTYPE + TRAINING + "kernels.py", "triton_fp8_blockwise_act_quant_lhs_kernel")
def act_quant_lhs(run: Run) -> None:
    name = "triton_fp8_blockwise_act_quant_lhs"
    quantized(run, name, "torch_blockwise_scale_act_quant_lhs", (4096, 1024), False)


@case(
    AO, PROTOTYPE + TRAINING + "kernels.py", "triton_fp8_blockwise_act_quant_transposed_lhs_kernel"
)
def act_quant_transposed_lhs(run: Run) -> None:
    name = "triton_fp8_blockwise_act_quant_transposed_lhs"
    quantized(run, name, "torch_blockwise_scale_act_quant_lhs", (4096, 1024), True)


@case(
    AO,
    PROTOTYPE + TRAINING + "kernels.py",
    "triton_fp8_blockwise_weight_quant_transposed_rhs_kernel",
)
def weight_quant_transposed_rhs(run: Run) -> None:
    name = "triton_fp8_blockwise_weight_quant_transposed_rhs"
    quantized(run, name, "torch_blockwise_scale_weight_quant", (512, 2048), True)


@case(AO, PROTOTYPE + TRAINING + "kernels.py", "triton_fp8_gemm_1x128_128x1_kernel")
def fp8_gemm(run: Run) -> None:
    run.needs(90)
    kernels = module(run, "blockwise_fp8_training.kernels")
    m, n, k = 2, 512, 128
    a, b = run.randn(k, m, dtype=torch.bfloat16), run.randn(k, n, dtype=torch.bfloat16)
    expected = a.T @ b
    a_q, a_s = kernels.triton_fp8_blockwise_act_quant_transposed_lhs(a, dtype=torch.float8_e4m3fn)
    b_q, b_s = kernels.triton_fp8_blockwise_act_quant_rhs(b, dtype=torch.float8_e4m3fn)
    found = kernels.triton_fp8_gemm_1x128_128x1(a_q, b_q, a_s, b_s, out_dtype=torch.bfloat16)
    noise = torch.linalg.norm((expected - found).float())
    ratio = float(20 * torch.log10(torch.linalg.norm(expected.float()) / noise))
    run.judge("product", found, ratio >= 28, f"SQNR {ratio:.1f} is below 28", 1e-2, 1e-2)


def grouped(run: Run, name: str, quantizer: str) -> None:
    """Against the quantizer of one matrix, expert by expert, as the repository's test does."""
    run.needs(90)
    function = getattr(module(run, "blockwise_fp8_training.grouped_weight_quant"), name)
    one: Callable[..., Any] = getattr(module(run, "blockwise_fp8_training.kernels"), quantizer)
    for step in (1, 2):
        weight = run.randn(3 * step, 256, 384, dtype=torch.bfloat16).transpose(-2, -1)[::step]
        parts = [one(expert) for expert in weight.transpose(-2, -1).contiguous()]
        expected = [
            torch.stack([part[index].transpose(-2, -1).contiguous() for part in parts])
            for index in range(2)
        ]
        compare_quantized(run, function(weight), expected, f" step {step}")


@case(
    AO,
    PROTOTYPE + TRAINING + "grouped_weight_quant.py",
    "triton_fp8_blockwise_weight_quant_grouped_forward_rhs_kernel",
)
def grouped_forward(run: Run) -> None:
    grouped(
        run,
        "triton_fp8_blockwise_weight_quant_grouped_forward_rhs",
        "triton_fp8_blockwise_weight_quant_transposed_rhs",
    )


@case(
    AO,
    PROTOTYPE + TRAINING + "grouped_weight_quant.py",
    "triton_fp8_blockwise_weight_quant_grouped_dgrad_rhs_kernel",
)
def grouped_dgrad(run: Run) -> None:
    grouped(
        run,
        "triton_fp8_blockwise_weight_quant_grouped_dgrad_rhs",
        "triton_fp8_blockwise_weight_quant_rhs",
    )


@case(AO, PROTOTYPE + "moe_training/ep/kernels.py", "_fill_indices_kernel")
def fill_indices(run: Run) -> None:
    """Its test asks for sm_100 and uses no instruction of it; the reference is in the file."""
    kernels = module(run, "moe_training.ep.kernels")
    experts, ranks, length = 4, 2, 512 + 4 * 32
    tokens = run.randint(0, 512 // (experts * ranks) + 1, (experts * ranks,), torch.int32)
    found = kernels.generate_permute_indices(tokens, experts, ranks, length, 32)
    expected = kernels.generate_permute_indices(tokens.cpu(), experts, ranks, length, 32, True)
    for name, one, other in zip(("indices", "sizes", "offsets"), found, expected):
        run.compare(name, one, other, 0, 0)
