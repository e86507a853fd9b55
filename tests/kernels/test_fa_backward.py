# SPDX-License-Identifier: Apache-2.0
"""Are the gradients of the Hopper kernels right? On CPU tensors, where the engine runs TMA, wgmma
and mbarriers. tests/gpu/fa_s512 asks for much more on a GPU."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import kiln
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "gpu" / "fa_s512"))
from reference import attention, check  # noqa: E402


@pytest.fixture(scope="module")
def fa():
    return kiln.load(ROOT / "kernels" / "fa_s512", arch="9.0a", defines={"FA_HOPPER_ON_ENGINE": 1})


@pytest.fixture(autouse=True)
def on_the_engine(device):
    torch.manual_seed(0)
    if device != "cpu":
        pytest.skip("tests/gpu/fa_s512 tests it on a GPU")


def tensors(b, h, s, d, dtype=torch.bfloat16, h_kv=None, sk=None):
    q, grad = (torch.randn(b, h, s, d).to(dtype) for _ in range(2))
    k, v = (torch.randn(b, h_kv or h, sk or s, d).to(dtype) for _ in range(2))
    return q, k, v, grad


def verify(fa, q, k, v, grad, causal=False, scale=None, grad_lse=None):
    """Against fp64, twice as far off as plain PyTorch in the tensors' own dtype."""
    out, lse = attention(q, k, v, causal, scale)
    got = fa.backward(
        grad, q, k, v, out.to(q.dtype), lse.float(), causal, scale=scale, grad_lse=grad_lse
    )

    def by_products(dtype):
        leaves = [x.to(dtype).requires_grad_() for x in (q, k, v)]
        results = attention(*leaves, causal, scale, dtype=dtype)
        given = [grad.to(dtype)] + ([] if grad_lse is None else [grad_lse.to(results[1].dtype)])
        return [g.double() for g in torch.autograd.grad(results[: len(given)], leaves, given)]

    right, plain = by_products(torch.float64), by_products(q.dtype)
    for name, mine, exact, rounded in zip("qkv", got, right, plain):
        rounding = 2 * torch.finfo(q.dtype).eps * exact.abs().max().item()
        check(
            f"gradient of {name}",
            mine,
            exact,
            2 * (rounded - exact).abs().max().item() + rounding + 1e-3,
        )
    return got


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 64), (2, 1, 200)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_backward(fa, d, causal, shape, dtype):
    verify(fa, *tensors(*shape, d, dtype), causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sq,sk", [(1, 130), (70, 1), (150, 40), (40, 300)])
def test_another_number_of_keys(fa, sq, sk, causal):
    verify(fa, *tensors(1, 1, sq, 64, sk=sk), causal)


@pytest.mark.parametrize("causal", [False, True])
def test_heads_of_q_share_those_of_k(fa, causal):
    verify(fa, *tensors(2, 4, 130, 64, h_kv=2), causal)


@pytest.mark.parametrize("d", [64, 128])
def test_few_tiles_of_different_lengths(fa, d):
    """More tiles than blocks, less than two each: the longest go first."""
    verify(fa, *tensors(1, 3, 400, d), True)


def test_many_tiles_a_block(fa):
    """More tiles than multiprocessors: buffers and barriers go round."""
    verify(fa, *tensors(3, 24, 260, 64), True)


def test_gradient_of_the_lse(fa):
    verify(fa, *tensors(1, 2, 70, 64), True, grad_lse=torch.randn(1, 2, 70))


@pytest.mark.parametrize("factor", [0.01, 30.0])
def test_small_and_large_logits(fa, factor):
    verify(fa, *tensors(1, 1, 100, 64), True, scale=factor * 64**-0.5)


def test_strides(fa):
    """BSHD, and gradients in rows further apart."""
    q, k, v, grad = tensors(2, 2, 70, 64)
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    wide = torch.cat([grad, grad], -1)[..., :64]
    got = verify(fa, q, k, v, wide)
    assert [g.stride() for g in got] == [x.stride() for x in (q, k, v)]


def test_a_row_of_nan_stays_in_its_gradient(fa):
    q, k, v, grad = tensors(1, 1, 128, 64)
    out, lse = attention(q, k, v, False)
    grad[0, 0, 5] = float("nan")
    grad_q, grad_k, grad_v = fa.backward(grad, q, k, v, out.bfloat16(), lse.float())
    assert grad_q[0, 0, 5].isnan().all() and grad_k.isnan().all() and grad_v.isnan().all()
    assert not grad_q[0, 0, torch.arange(128) != 5].isnan().any()


def test_keys_that_no_query_sees_have_no_gradient(fa):
    q, k, v, grad = tensors(1, 1, 40, 64, sk=300)
    out, lse = attention(q, k, v, True)
    _, grad_k, grad_v = fa.backward(grad, q, k, v, out.bfloat16(), lse.float(), True)
    assert not grad_k[:, :, 40:].any() and not grad_v[:, :, 40:].any()


def test_rows_that_see_nothing_have_no_gradient(fa):
    """Scores of -inf in the whole row: the forward gives zeros and an LSE of -inf."""
    q, k, v, grad = tensors(1, 1, 70, 64)
    q[0, 0, 7], k[..., 0], q[0, 0, 7, 0] = 0, -float("inf"), 1
    q[0, 0, torch.arange(70) != 7, 0] = 0  # NaN elsewhere, of 0 times infinity
    out, lse = fa.forward(q, k, v)
    assert lse[0, 0, 7] == -float("inf") and not out[0, 0, 7].any()
    grad_v = fa.backward(grad, q, k, v, out, lse)[2]
    assert grad_v.isnan().all()  # of the other rows
    grad[0, 0, torch.arange(70) != 7] = 0
    assert (
        fa.backward(grad[:, :, 7:8], q[:, :, 7:8], k, v, out[:, :, 7:8], lse[:, :, 7:8])[2]
        .eq(0)
        .all()
    )


@pytest.mark.parametrize("sizes", [(0, 2, 8), (1, 0, 8), (1, 2, 0)])
def test_nothing_to_do(fa, sizes):
    q, k, v, grad = (torch.randn(*sizes, 64).bfloat16() for _ in range(4))
    got = fa.backward(grad, q, k, v, q, torch.zeros(sizes))
    assert [g.shape for g in got] == [q.shape] * 3


def test_no_queries_leave_zeros(fa):
    q, k = torch.randn(1, 2, 0, 64).half(), torch.randn(1, 2, 8, 64).half()
    _, grad_k, grad_v = fa.backward(q, q, k, k, q, torch.zeros(1, 2, 0))
    assert not grad_k.any() and not grad_v.any()


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda a: a | {"grad_out": a["grad_out"][:, :, 1:]}, "sizes of q"),
        (lambda a: a | {"out": a["out"].half()}, "dtype of q"),
        (lambda a: a | {"lse": a["lse"].double()}, "lse must be contiguous f32"),
        (lambda a: a | {"lse": a["lse"][:, :, 1:]}, "lse must be contiguous f32"),
        (lambda a: a | {"grad_lse": a["lse"][:, 1:]}, "grad_lse must be contiguous f32"),
        (lambda a: a | {"v": a["v"][:, :, 1:]}, "same sizes"),
        (
            lambda a: a | {"grad_out": a["q"][:, :, :1].expand(1, 2, 8, 64)},
            "positive multiple of 8",
        ),
        (lambda a: a | {"scale": 0.0}, "scale must be positive"),
    ],
)
def test_refusals(fa, change, text):
    q = torch.randn(1, 2, 8, 64).bfloat16()
    given = dict.fromkeys(["grad_out", "q", "k", "v", "out"], q) | {"lse": torch.zeros(1, 2, 8)}
    with pytest.raises(RuntimeError, match=text):
        fa.backward(**change(given))


@pytest.fixture(scope="module")
def source():
    path = ROOT / "kernels" / "fa_s512" / "attention.py"
    spec = importlib.util.spec_from_file_location("fa_s512_attention_of_hopper", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class TestInAutograd:
    """attention.py, which on a GPU chooses these kernels."""

    @pytest.fixture
    def attention(self, source, fa, monkeypatch):
        monkeypatch.setattr(source, "own_kernels_have_backward", lambda *_: True)
        return source.attach(fa)

    @pytest.mark.parametrize("expanded", [False, True])
    def test_gradients(self, attention, expanded):
        q, k, v, grad = tensors(1, 4, 70, 64, h_kv=2)
        grad = grad[:, :, :1].expand(grad.shape) if expanded else grad
        leaves = [x.requires_grad_() for x in (q, k, v)]
        got = torch.autograd.grad(attention(*leaves, is_causal=True, enable_gqa=True), leaves, grad)
        exact = [x.detach().double().requires_grad_() for x in leaves]
        right = torch.autograd.grad(attention_exact(exact), exact, grad.double())
        for name, mine, theirs in zip("qkv", got, right):
            check(f"gradient of {name}", mine, theirs, 0.02 * theirs.abs().max().item())

    def test_only_the_gradient_of_the_lse(self, attention, fa):
        q, k, v, _ = tensors(1, 1, 40, 64)
        leaves = [x.requires_grad_() for x in (q, k, v)]
        weight = torch.randn(1, 1, 40)
        got = torch.autograd.grad(fa.forward(*leaves)[1], leaves, weight)
        exact = [x.detach().double().requires_grad_() for x in leaves]
        lse = torch.logsumexp(exact[0] @ exact[1].transpose(-1, -2) / 8, -1)
        right = torch.autograd.grad(lse, exact[:2], weight.double())
        for name, mine, theirs in zip("qk", got, right):
            check(f"gradient of {name}", mine, theirs, 0.02 * theirs.abs().max().item())
        assert not got[2].any()

    def test_a_second_derivative_is_refused(self, attention):
        q, k, v, _ = tensors(1, 1, 40, 64)
        leaves = [x.requires_grad_() for x in (q, k, v)]
        grad = torch.autograd.grad(attention(*leaves).sum(), leaves, create_graph=True)[0]
        with pytest.raises(RuntimeError, match="fa_s512 has no second derivative"):
            grad.sum().backward()


def attention_exact(leaves):
    return attention(*leaves, True)[0]
