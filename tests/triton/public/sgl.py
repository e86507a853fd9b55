# SPDX-License-Identifier: Apache-2.0
"""The drawn kernels of sgl-project/sglang. Its files import the whole of the server: only the parts
that a kernel needs are taken from them."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import torch
from case import Run, case

SGL, OPS = "sgl-project/sglang", "python/sglang/kernels/ops/"
TESTS = "test/registered/"


class Struct:
    """As msgspec.Struct: fields by annotation."""

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(cls)


@case(SGL, OPS + "diffusion/norm/group_norm_silu_triton.py", "_group_norm_apply_kernel")
def group_norm_silu(run: Run) -> None:
    """Groups as large as the chunked path asks for, of a size that is no multiple of a chunk."""
    module = run.part(
        OPS + "diffusion/norm/group_norm_silu_triton.py",
        "triton_group_norm_silu",
        register_custom_op=lambda **_: lambda function: function,
    )
    with torch.no_grad():
        for dtype, rtol, atol in ((torch.float32, 1e-5, 1e-5), (torch.bfloat16, 2e-2, 7e-2)):
            x = run.randn(1, 8, 65537, dtype=dtype)
            weight, bias = run.randn(8, dtype=dtype), run.randn(8, dtype=dtype)
            expected = torch.nn.functional.group_norm(x, 2, weight, bias, 1e-5)
            found = module.triton_group_norm_silu(x, weight, bias, num_groups=2)
            run.compare(str(dtype), found, torch.nn.functional.silu(expected), rtol, atol)


@case(SGL, OPS + "attention/merge_state.py", "merge_state_kernel")
def merge_state(run: Run) -> None:
    module = run.part(OPS + "attention/merge_state.py", "merge_state_triton")
    for dtype, tolerance in ((torch.float32, 1e-3), (torch.float16, 1e-2)):
        tokens, heads, size = 256, 4, 32
        prefix, suffix = (run.randn(tokens, heads, size, dtype=dtype) for _ in range(2))
        p_lse, s_lse = run.randn(tokens, heads), run.randn(tokens, heads)
        p_lse[3, 1] = s_lse[5, 2] = float("inf")
        found = module.merge_state_triton(prefix, p_lse, suffix, s_lse)
        # Infinity means that this part saw no tokens.
        p = torch.where(torch.isinf(p_lse), -torch.inf, p_lse)
        s = torch.where(torch.isinf(s_lse), -torch.inf, s_lse)
        total = torch.logaddexp(p, s)
        parts = (p - total).exp()[..., None] * prefix + (s - total).exp()[..., None] * suffix
        run.compare(f"out {dtype}", found[0], parts.to(dtype), tolerance, tolerance)
        run.compare(f"lse {dtype}", found[1], total, tolerance, tolerance)


@case(SGL, OPS + "attention/dsv4_attn_metadata_kernels.py", "_page_table_positions_kernel")
def page_table_positions(run: Run) -> None:
    made = attn_metadata(run, "BuildPageTablePositions")
    tokens = run.randint(0, 1 << 20, (128, 4096), torch.int32)
    for queries, page, longest in ((300, 64, 4000), (56, 1, 4096)):
        given = {
            "req_to_token": tokens,
            "req_pool_indices_repeated": run.randint(0, 128, (queries,), torch.int32),
            "seq_lens_casual": run.randint(1, 4096, (queries,)),
            "max_seq_len": longest,
            "page_size": page,
            "swa_window": 128,
        }
        compare_fields(run, made.triton(**given), made.torch(**given), f" page {page}")


@case(SGL, OPS + "attention/dsv4_attn_metadata_kernels.py", "_expand_prefill_causally_kernel")
def expand_prefill(run: Run) -> None:
    made = attn_metadata(run, "ExpandPrefillCausally")
    extend = run.randint(1, 8, (64,))
    count = int(extend.sum())
    given = {
        "req_pool_indices": run.put(torch.randperm(512)[:64]),
        "seq_lens": run.randint(8, 500, (64,)),
        "extend_seq_lens": extend,
        "extend_start_loc": torch.cumsum(extend, 0) - extend,
        "seq_lens_cpu": None,
        "extend_seq_lens_cpu": None,
        "num_tokens": count,
        "padded_num_tokens": count + 5,
    }
    compare_fields(run, made.triton(**given), made.torch(**given), "")


def attn_metadata(run: Run, name: str) -> Any:
    file = OPS + "attention/dsv4_attn_metadata_kernels.py"
    return getattr(run.part(file, name, msgspec=SimpleNamespace(Struct=Struct)), name)


def compare_fields(run: Run, found: Any, expected: Any, label: str) -> None:
    for field in dataclasses.fields(found):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        run.compare(field.name + label, one, other.to(one.dtype), 0, 0)


@case(SGL, OPS + "attention/dsa_metadata.py", "_fused_dsa_target_verify_metadata_kernel")
def dsa_target_verify(run: Run) -> None:
    """The repository's own method, whose comparisons are kept."""
    fused = run.part(OPS + "attention/dsa_metadata.py", "fused_dsa_target_verify_metadata")
    test = run.part(
        TESTS + "kernels/ops/attention/test_dsa_metadata.py",
        "TestDSAMetadataKernels",
        CustomTestCase=object,
        unittest=SimpleNamespace(skipUnless=lambda *_: lambda one: one),
        fused_dsa_target_verify_metadata=fused.fused_dsa_target_verify_metadata,
        fused_dsa_decode_metadata=None,
        fused_dsa_draft_extend_metadata=None,
    )
    checks = test.TestDSAMetadataKernels()
    checks.device = torch.device(run.device)
    for size, fill in ((1, False), (64, True)):
        test._assert_equal = lambda one, other, name, size=size: run.compare(
            f"{name} {size}", one, other, 0, 0
        )
        checks._check_target_verify(
            [5, 63, 128], max_seqlen_k=257, dsa_index_topk=64, real_page_size=size, next_n=4,
            fill_ctx_lens=fill,
        )  # fmt: skip


@case(SGL, "python/sglang/srt/models/minimax_m2.py", "rmsnorm_sumsq_kernel_serial")
def sum_of_squares(run: Run) -> None:
    """No test compares it by itself: the reference is the expression that its name says."""
    module = run.part(
        "python/sglang/srt/models/minimax_m2.py",
        "rms_sumsq_serial",
        debug_kernel_api=lambda function: function,
    )
    for rows, first, second in ((5, 768, 128), (64, 6144, 1024)):
        x, y = (run.randn(rows, size, dtype=torch.bfloat16) for size in (first, second))
        found = module.rms_sumsq_serial(x, y)[: 2 * rows]
        expected = torch.cat([one.float().square().sum(1) for one in (x, y)])
        run.compare(f"sums {rows}", found, expected, 1e-5, 1e-5)


@case(SGL, OPS + "kvcache/cache_ops.py", "absorbed_bmm_concat_cast_q_fp8_kernel")
def absorbed_bmm(run: Run) -> None:
    """The repository compares a CUDA kernel with this one, and both with fp64 by their mean error:
    fp8 has four bits, and a product is rounded to bf16 before."""
    run.needs(90)
    module = run.part(
        OPS + "kvcache/cache_ops.py",
        "absorbed_bmm_concat_cast_q_fp8",
        _qprep_env_variant=lambda: "auto",
    )
    tokens, heads, inner, lora, rope = 1, 64, 192, 512, 64
    q = run.randn(tokens, heads, inner + rope, dtype=torch.bfloat16)
    w = run.put((torch.randn(heads, lora, inner) / inner**0.5).bfloat16()).transpose(1, 2)
    out = run.put(torch.zeros(tokens, heads + 2, lora + rope)).to(torch.float8_e4m3fn)
    nope, roped = q[..., :inner], q[..., inner:]
    module.absorbed_bmm_concat_cast_q_fp8(out, nope, w, roped, heads, variant="two_dot")
    exact = torch.bmm(nope.transpose(0, 1).double(), w.double()).transpose(0, 1)
    found = out.float()
    run.compare("rope", found[:, :heads, lora:], roped.to(torch.float8_e4m3fn).float(), 0, 0)
    run.compare("product", found[:, :heads, :lora], exact.float(), 0.0725, 2e-2)
    run.compare("padding", found[:, heads:], torch.zeros_like(found[:, heads:]), 0, 0)


@case(SGL, OPS + "moe/moe_align_small_numel.py", "_moe_align_small_numel_kernel")
def moe_align(run: Run) -> None:
    module = run.part(
        OPS + "moe/moe_align_small_numel.py",
        "moe_align_small_numel",
        is_arch_support_pdl=lambda: torch.cuda.get_device_capability()[0] >= 9,
    )
    test = run.part(TESTS + "kernels/ops/moe/test_moe_align_small_numel.py", "_reference", "_alloc")
    for block, experts, top, tokens in ((16, 65, 1, 1), (16, 8, 2, 4), (64, 129, 8, 8)):
        ids = run.randint(-1, experts, (tokens, top), torch.int32)
        buffers = test._alloc(ids.numel(), block, experts)
        module.moe_align_small_numel(ids, experts + 1, block, *buffers)
        sorted_ids, expert_ids, total = test._reference(ids, block, experts)
        label = f" {block} {experts}"
        run.compare("total" + label, buffers[2], torch.tensor([total], dtype=torch.int32), 0, 0)
        run.compare("experts" + label, buffers[1][: total // block], expert_ids, 0, 0)
        run.compare("sorted" + label, buffers[0][:total], sorted_ids, 0, 0)
