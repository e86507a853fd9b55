# SPDX-License-Identifier: Apache-2.0
"""Does the Hopper path of flash attention run on CPU tensors: TMA, wgmma, mbarriers, warp
specialisation on the engine? On a GPU tests/gpu/fa_s512 asks for much more; the portable path has
test_fa_s512.py."""

from __future__ import annotations

import sys
from pathlib import Path

import kiln
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "gpu" / "fa_s512"))
from reference import allowed_error, attention, check  # noqa: E402


@pytest.fixture(scope="module")
def fa():
    return kiln.load(ROOT / "kernels" / "fa_s512", arch="9.0a", defines={"FA_HOPPER_ON_ENGINE": 1})


@pytest.fixture(autouse=True)
def on_the_engine(device):
    torch.manual_seed(0)
    if device != "cpu":
        pytest.skip("tests/gpu/fa_s512 tests it on a GPU")


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 64), (1, 2, 128), (1, 1, 200), (2, 1, 300)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_forward(fa, d, causal, shape, dtype):
    q, k, v = (torch.randn(*shape, d).to(dtype) for _ in range(3))
    out, lse = fa.forward(q, k, v, causal)
    right, right_lse = attention(q, k, v, causal)
    check("attention", out, right, allowed_error(q, k, v, causal, right))
    check("LSE", lse, right_lse, 1e-4)


def test_heads_of_q_share_those_of_k(fa):
    q, k, v = (
        torch.randn(1, 4, 130, 64).bfloat16(),
        *(torch.randn(1, 2, 130, 64).bfloat16() for _ in range(2)),
    )
    out, _ = fa.forward(q, k, v, enable_gqa=True)
    right, _ = attention(q, k, v, False)
    check("attention", out, right, allowed_error(q, k, v, False, right))


def test_rows_of_nan_stay_in_their_rows(fa):
    q, k, v = (torch.randn(1, 1, 128, 64).bfloat16() for _ in range(3))
    q[0, 0, 5] = float("nan")
    out, _ = fa.forward(q, k, v)
    assert out[0, 0, 5].isnan().all()
    assert not out[0, 0, torch.arange(128) != 5].isnan().any()


def test_many_rows_take_the_taller_tiles(fa):
    # As many as four tiles a multiprocessor; 512 rows are two of 192 and one of 128.
    q, k, v = (torch.randn(1, 8, 512, 64).bfloat16() for _ in range(3))
    out, lse = fa.forward(q, k, v)
    right, right_lse = attention(q, k, v, False)
    check("attention", out, right, allowed_error(q, k, v, False, right))
    check("LSE", lse, right_lse, 1e-4)


@pytest.mark.parametrize(
    "batch, heads, tiles, blocks",
    [
        (1, 16, 32, 132),
        (3, 7, 5, 20),
        (3, 7, 5, 7),
        (3, 7, 5, 6),
        (2, 1, 1, 4),
        (4, 8, 3, 5),
        (1, 5, 128, 6),
        (1, 1, 9, 2),
    ],
)
@pytest.mark.parametrize("megabytes_per_head", [1, 15, 100])
def test_each_tile_is_taken_once(fa, batch, heads, tiles, blocks, megabytes_per_head):
    """In each of the three ways; heads in one group, in several of which the last is smaller, one
    by one."""
    found = fa.piece_order(torch.zeros(1), batch, heads, tiles, megabytes_per_head << 20, blocks)
    assert found[: batch * heads * tiles].eq(1).all()
    assert found[batch * heads * tiles :].sum() == batch * heads * tiles * (tiles + 1) // 2


@pytest.mark.parametrize(
    "heads, tiles, most",
    [
        (512, 4, 1.04),
        (128, 16, 1.04),
        (64, 32, 1.04),
        (16, 128, 1.04),
        (17, 128, 1.10),
        (64, 4, 1.04),
        (36, 6, 1.06),
        (100, 5, 1.2),
    ],
)
def test_no_block_has_much_more_than_its_part(fa, heads, tiles, most):
    """Steps under a causal mask, which are the time of a kernel that the tensor cores limit."""
    found = fa.piece_order(torch.zeros(1), 1, heads, tiles, 1 << 20, 132)[heads * tiles :]
    assert found.max() <= most * found.float().mean()


@pytest.mark.parametrize("d", [64, 128])
def test_few_tiles_of_different_lengths(fa, d):
    """More tiles than blocks, less than two each: the longest go first."""
    q, k, v = (torch.randn(1, 3, 500, d).bfloat16() for _ in range(3))
    out, _ = fa.forward(q, k, v, True)
    right, _ = attention(q, k, v, True)
    check("attention", out, right, allowed_error(q, k, v, True, right))
