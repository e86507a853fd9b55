# SPDX-License-Identifier: Apache-2.0
"""Is each piece right alone? A tile by TMA, Q K^T, P V, softmax, the way out. Read a failure from
the top: each piece rests on those before it."""

from __future__ import annotations

import pytest
import torch
from reference import check

DTYPES = [torch.bfloat16, torch.float16]
DIMS = [64, 128]


def new(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, device="cuda").to(dtype)


def in_shared_memory(tile: torch.Tensor) -> torch.Tensor:
    """Slabs of 64 columns; in a row the chunk c of 8 elements lies at c ^ (row & 7)."""
    rows, columns = tile.shape
    chunks = tile.reshape(rows, columns // 64, 8, 8).permute(1, 0, 2, 3)
    row = torch.arange(rows, device=tile.device)[:, None]
    source = torch.arange(8, device=tile.device)[None, :] ^ (row & 7)
    return chunks.gather(2, source[None, :, :, None].expand(columns // 64, rows, 8, 8)).reshape(-1)


@pytest.mark.parametrize("d", DIMS)
@pytest.mark.parametrize(
    "rows,row,length", [(64, 0, 64), (64, 64, 200), (128, 0, 128), (128, 128, 200), (64, 64, 70)]
)
def test_a_tile_by_tma(debug_build, d, rows, row, length):
    # Every element differs, so that a mismatch tells where it came from.
    numbers = torch.arange(length * d, device="cuda", dtype=torch.int32).to(torch.int16)
    x = numbers.view(torch.bfloat16).nan_to_num(7.0, 7.0, 7.0).reshape(1, 1, length, d).contiguous()
    dump, out = debug_build.piece_copy(x, row, rows)
    tile = torch.zeros(rows, d, dtype=x.dtype, device="cuda")
    here = x[0, 0, row : row + rows]
    tile[: len(here)] = here
    check(
        "TMA load, as it lies in shared memory",
        dump.view(torch.int16),
        in_shared_memory(tile).view(torch.int16),
        0,
    )
    right = torch.zeros_like(x)
    right[0, 0, row : row + rows] = here
    check("TMA store", out.view(torch.int16), right.view(torch.int16), 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", DIMS)
def test_b_units_of_q_times_k(debug_build, d, dtype):
    """Row r of Q is the unit vector r: a fault of a descriptor shows as the wrong element of K."""
    n = debug_build.piece_scores(
        new(1, 1, 64, d, dtype=dtype), new(1, 1, 128, d, dtype=dtype)
    ).shape[1]
    k = (
        torch.arange(n, device="cuda")[:, None] + torch.arange(d, device="cuda")[None, :] * 0.5
    ).to(dtype)
    for first in range(0, d, 64):
        q = torch.zeros(64, d, device="cuda", dtype=dtype)
        q[torch.arange(64), torch.arange(64) + first] = 1
        got = debug_build.piece_scores(q[None, None], k[None, None].contiguous())
        check(f"Q K^T, columns {first} ... of Q are units", got, q.float() @ k.float().T, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", DIMS)
def test_c_q_times_k(debug_build, d, dtype):
    q, k = new(1, 1, 64, d, dtype=dtype), new(1, 1, 128, d, dtype=dtype)
    got = debug_build.piece_scores(q, k)
    right = q[0, 0].double() @ k[0, 0, : got.shape[1]].double().T
    check("Q K^T", got, right, 1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", DIMS)
def test_d_units_of_p_times_v(debug_build, d, dtype):
    n = debug_build.piece_scores(
        new(1, 1, 64, d, dtype=dtype), new(1, 1, 128, d, dtype=dtype)
    ).shape[1]
    v = (
        torch.arange(n, device="cuda")[:, None] + torch.arange(d, device="cuda")[None, :] * 0.5
    ).to(dtype)
    for first in range(0, n, 64):
        p = torch.zeros(64, n, device="cuda")
        p[torch.arange(64), torch.arange(64) + first] = 1
        got = debug_build.piece_values(p, v[None, None].contiguous())
        check(f"P V, columns {first} ... of P are units", got, p @ v.float(), 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", DIMS)
def test_e_p_times_v(debug_build, d, dtype):
    n = debug_build.piece_scores(
        new(1, 1, 64, d, dtype=dtype), new(1, 1, 128, d, dtype=dtype)
    ).shape[1]
    p, v = torch.rand(64, n, device="cuda"), new(1, 1, n, d, dtype=dtype)
    got = debug_build.piece_values(p, v)
    check("P V", got, p.to(dtype).double() @ v[0, 0].double(), 1e-3)


@pytest.mark.parametrize("keys", [128, 100, 64, 63, 1])
@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_f_softmax(debug_build, keys, spread):
    scores = torch.randn(64, 128, device="cuda") * spread
    result = debug_build.piece_softmax(scores, keys, 0.125)
    n = (result.numel() - 64) // 64
    if n != 128:
        pytest.skip("written for BLOCK_N = 128")
    masked = scores.double() * 0.125
    masked[:, keys:] = float("-inf")
    check("softmax, weights", result[:-64].reshape(64, n), torch.softmax(masked, -1), 2e-6 * spread)
    check("softmax, LSE", result[-64:], torch.logsumexp(masked, -1), 1e-5 * spread)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", DIMS)
@pytest.mark.parametrize("length,row", [(64, 0), (200, 128), (70, 64)])
def test_g_way_out(debug_build, d, dtype, length, row):
    accumulators = torch.randn(64, d, device="cuda")
    got = debug_build.piece_way_out(accumulators, new(1, 1, length, d, dtype=dtype), row)
    right = torch.zeros(1, 1, length, d, device="cuda", dtype=dtype)
    right[0, 0, row : row + 64] = accumulators.to(dtype)[: length - row]
    check("the way out", got, right, 0)
