# SPDX-License-Identifier: Apache-2.0
"""Is the whole kernel right? Against fp64, by the error rule of flash attention's own tests; LSE
too."""

from __future__ import annotations

import pytest
import torch
from reference import allowed_error, attention, check

DTYPES = [torch.bfloat16, torch.float16]
LENGTHS = [1, 64, 97, 128, 200, 511, 512, 513, 1024]


def inputs(b, h, sq, d, dtype, h_kv=None, sk=None, seed=0):
    make = torch.Generator("cuda").manual_seed(seed)
    new = lambda *shape: torch.randn(shape, device="cuda", generator=make).to(dtype)  # noqa: E731
    h_kv, sk = h_kv or h, sk or sq
    return new(b, h, sq, d), new(b, h_kv, sk, d), new(b, h_kv, sk, d)


def many_rows(d, dtype=torch.bfloat16):
    """More than four tiles of 128 rows a multiprocessor, in heads of 512 rows."""
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    return inputs(processors // 16 + 1, 16, 512, d, dtype)


def verify(op, margins, case, q, k, v, causal, scale=None, **more):
    out, lse = op(q, k, v, causal, scale=scale, **more)
    torch.cuda.synchronize()
    right, right_lse = attention(q, k, v, causal, scale)
    allowed = allowed_error(q, k, v, causal, right, scale)
    check(
        f"forward, {case}, LSE", lse, right_lse, 1e-3 * max(1.0, right_lse.abs().max().item() / 50)
    )
    check(f"forward, {case}", out, right, allowed)
    margins.append(((out.double() - right).abs().max().item() / allowed, case))


def run_lengths(op, margins, name, s, d, causal, dtype):
    q, k, v = inputs(2, 3, s, d, dtype)
    verify(op, margins, f"{name} S={s} D={d} causal={causal} {dtype}", q, k, v, causal)


@pytest.fixture(params=["forward", "forward_portable"])
def op(request, debug_build):
    """Both paths: the one for this GPU, and the one that every GPU has."""
    return getattr(debug_build, request.param)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("s", LENGTHS)
def test_a_lengths(op, margins, s, d, causal, dtype):
    run_lengths(op, margins, "debug", s, d, causal, dtype)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
def test_b_many_tiles_a_block(op, margins, d, causal):
    """More tiles than SMs: buffers and parities go round, Q and the store share theirs. Enough of
    them for tiles of 192 rows at D=64."""
    q, k, v = many_rows(d)
    verify(op, margins, f"many rows D={d} causal={causal}", q, k, v, causal)


@pytest.mark.parametrize("rows", [40, 130, 330])
@pytest.mark.parametrize("d", [64, 128])
def test_b_tiles_that_a_warpgroup_passes_over(op, margins, d, rows):
    """In most tiles a warpgroup or two have no rows, and a block has many tiles: they keep their
    turns and free the buffers."""
    q, k, v = inputs(
        torch.cuda.get_device_properties(0).multi_processor_count,
        16,
        rows,
        d,
        torch.bfloat16,
        h_kv=1,
        sk=300,
    )
    verify(op, margins, f"{rows} rows, many heads, D={d}", q, k, v, False, enable_gqa=True)


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("rows", [1, 200, 512])
def test_b_every_element_is_written(op, rows, d):
    """In memory that held NaN before."""
    q, k, v = inputs(2, 16, rows, d, torch.bfloat16)
    right, right_lse = op(q, k, v)
    torch.use_deterministic_algorithms(True)  # torch then fills all new memory with NaN
    try:
        assert torch.empty(4, device="cuda").isnan().all()
        out, lse = op(q, k, v)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(out, right) and torch.equal(lse, right_lse)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sq,sk", [(1, 1000), (200, 64), (64, 200), (513, 130), (130, 513)])
def test_c_other_number_of_keys(op, margins, sq, sk, causal):
    q, k, v = inputs(2, 2, sq, 128, torch.bfloat16, sk=sk)
    verify(op, margins, f"Sq={sq} Sk={sk} causal={causal}", q, k, v, causal)


@pytest.mark.parametrize("h,h_kv", [(8, 2), (8, 1), (6, 3)])
def test_d_grouped_heads(op, margins, h, h_kv):
    q, k, v = inputs(2, h, 300, 64, torch.bfloat16, h_kv=h_kv)
    verify(op, margins, f"{h} heads on {h_kv}", q, k, v, True, enable_gqa=True)


@pytest.mark.parametrize("causal", [False, True])
def test_e_bshd_strides(op, margins, causal):
    q, k, v = (
        x.transpose(1, 2).contiguous().transpose(1, 2)
        for x in inputs(2, 4, 333, 128, torch.float16)
    )
    out, _ = op(q, k, v, causal)
    assert out.stride() == q.stride()
    verify(op, margins, f"BSHD causal={causal}", q, k, v, causal)


def test_f_packed_qkv(op, margins):
    make = torch.Generator("cuda").manual_seed(3)
    packed = torch.randn(2, 150, 3, 4, 64, device="cuda", generator=make).bfloat16()
    q, k, v = (packed[:, :, i].transpose(1, 2) for i in range(3))
    verify(op, margins, "packed QKV", q, k, v, False)


@pytest.mark.parametrize("factor", [0.01, 1.0, 30.0])
def test_g_scale(op, margins, factor):
    q, k, v = inputs(1, 2, 257, 128, torch.bfloat16)
    verify(op, margins, f"scale {factor}", q, k, v, True, scale=factor * 128**-0.5)


def test_h_rows_of_nan_and_infinity(op):
    q, k, v = inputs(1, 1, 200, 64, torch.bfloat16)
    q[0, 0, 5] = float("nan")
    out, lse = op(q, k, v)
    assert out[0, 0, 5].isnan().all() and lse[0, 0, 5].isnan()
    rest = torch.arange(200, device="cuda") != 5
    right = attention(q, k, v, False)[0]
    check("rows beside one of NaN", out[:, :, rest], right[:, :, rest], 0.02)


@pytest.mark.parametrize(
    "change,text",
    [
        (lambda q, k, v: (q.float(), k.float(), v.float()), "bf16 or f16"),
        (lambda q, k, v: (q, k.half(), v), "one dtype"),
        (lambda q, k, v: (q[..., :40], k[..., :40], v[..., :40]), "head dim"),
        (
            lambda q, k, v: tuple(
                torch.randn(1, 2, 64, 65, device="cuda").bfloat16() for _ in range(3)
            ),
            "head dim",
        ),
        (lambda q, k, v: (q, k.cpu(), v.cpu()), "one device|same device|cpu"),
        (lambda q, k, v: (q, k[:, :, :0], v[:, :, :0]), "no rows"),
        (
            lambda q, k, v: (torch.randn(1, 2, 64, 68, device="cuda").bfloat16()[..., :64], k, v),
            "multiple of (8|16)",
        ),
        (
            lambda q, k, v: (
                torch.randn(1 << 13, device="cuda")
                .bfloat16()[1:]
                .as_strided((1, 2, 50, 64), (6400, 3200, 64, 1)),
                k[:, :, :50],
                v[:, :, :50],
            ),
            "multiple of 16",
        ),
        (lambda q, k, v: (q, k[:, :1], v[:, :1]), "enable_gqa"),
        (lambda q, k, v: (q, k, v[:, :, :5]), "same sizes"),
        (lambda q, k, v: (q[0], k[0], v[0]), "sequence"),
        (lambda q, k, v: (q.transpose(2, 3).contiguous().transpose(2, 3), k, v), "stride 1"),
    ],
)
def test_i_refusals(op, change, text):
    q, k, v = inputs(1, 2, 64, 64, torch.bfloat16)
    with pytest.raises(RuntimeError, match=text):
        op(*change(q, k, v))


def test_j_nothing_to_do(op):
    q, k, v = inputs(1, 2, 64, 64, torch.bfloat16)
    out, lse = op(q[:0], k[:0], v[:0])
    assert out.shape == (0, 2, 64, 64) and lse.shape == (0, 2, 64)
