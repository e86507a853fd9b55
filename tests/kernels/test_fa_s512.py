# SPDX-License-Identifier: Apache-2.0
"""Is the portable path of fa_s512 right, and does it behave as torch's attention? On whatever
device there is: without a GPU the engine runs it. The Hopper path has its tests in
tests/gpu/fa_s512."""

import importlib
import sys
from pathlib import Path

import kiln
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "gpu" / "fa_s512"))
from reference import allowed_error, check  # noqa: E402
from reference import attention as right_attention  # noqa: E402

PROJECT = ROOT / "kernels" / "fa_s512"


@pytest.fixture(scope="module")
def module(device):
    # Without a GPU the code for Hopper would be compiled for nothing.
    return kiln.load(PROJECT, arch=None if device.startswith("cuda") else "8.0")


@pytest.fixture(scope="module")
def attention(module):
    sys.path.insert(0, str(PROJECT))
    return importlib.import_module("attention").attach(module)


def inputs(device, b, h, sq, d, dtype, h_kv=None, sk=None):
    make = torch.Generator().manual_seed(b + 10 * h + 100 * sq + d)
    new = lambda *shape: torch.randn(shape, generator=make).to(dtype).to(device)  # noqa: E731
    return new(b, h, sq, d), new(b, h_kv or h, sk or sq, d), new(b, h_kv or h, sk or sq, d)


def verify(module, q, k, v, causal, scale=None, **more):
    out, lse = module.forward_portable(q, k, v, causal, scale=scale, **more)
    right, right_lse = right_attention(q, k, v, causal, scale)
    check("LSE", lse, right_lse, 1e-3 * max(1.0, right_lse.abs().max().item() / 50))
    check("out", out, right, allowed_error(q, k, v, causal, right, scale))
    assert out.stride() == q.stride()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("s", [1, 97, 128, 200])
def test_lengths(module, device, s, d, causal, dtype):
    verify(module, *inputs(device, 1, 2, s, d, dtype), causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sq,sk", [(1, 300), (200, 64), (64, 200)])
def test_another_number_of_keys(module, device, sq, sk, causal):
    verify(module, *inputs(device, 1, 1, sq, 128, torch.bfloat16, sk=sk), causal)


@pytest.mark.parametrize("h,h_kv", [(4, 2), (3, 1)])
def test_grouped_heads(module, device, h, h_kv):
    verify(module, *inputs(device, 2, h, 70, 64, torch.bfloat16, h_kv=h_kv), True, enable_gqa=True)


def test_bshd_strides(module, device):
    q, k, v = (
        x.transpose(1, 2).contiguous().transpose(1, 2)
        for x in inputs(device, 2, 3, 90, 128, torch.float16)
    )
    verify(module, q, k, v, True)


def test_packed(module, device):
    packed = (
        torch.randn(2, 50, 3, 2, 64, generator=torch.Generator().manual_seed(3))
        .bfloat16()
        .to(device)
    )
    q, k, v = (packed[:, :, i].transpose(1, 2) for i in range(3))
    out, _ = module.forward_portable(q, k, v)
    check("out", out, right_attention(q, k, v, False)[0], 0.02)


@pytest.mark.parametrize("factor", [0.01, 30.0, 100.0])
def test_large_and_small_logits(module, device, factor):
    verify(module, *inputs(device, 1, 1, 130, 64, torch.bfloat16), True, scale=factor * 64**-0.5)


def test_a_row_of_nan_stays_alone(module, device):
    q, k, v = inputs(device, 1, 1, 80, 64, torch.bfloat16)
    q[0, 0, 5] = float("nan")
    out, lse = module.forward_portable(q, k, v)
    assert out[0, 0, 5].isnan().all() and lse[0, 0, 5].isnan()
    rest = torch.arange(80, device=device) != 5
    check(
        "rows beside one of NaN",
        out[:, :, rest],
        right_attention(q, k, v, False)[0][:, :, rest],
        0.02,
    )


def test_infinite_logits_of_one_sign(module, device):
    q, k, v = inputs(device, 1, 1, 20, 64, torch.bfloat16)
    k[0, 0, 7] = 0
    q[0, 0, :, 0], k[0, 0, 3, 0] = 1.0, float("-inf")  # the key 3 is seen by nobody
    out, _ = module.forward_portable(q, k, v)
    keep = torch.arange(20, device=device) != 3
    check("out", out, right_attention(q, k[:, :, keep], v[:, :, keep], False)[0], 0.02)


def test_values_that_are_not_finite_go_where_they_are_seen(module, device):
    q, k, v = inputs(device, 1, 1, 70, 64, torch.bfloat16)
    v[0, 0, 40, 3], v[0, 0, 50, 7] = float("inf"), float("nan")
    out, lse = module.forward_portable(q, k, v, True)
    right, _ = right_attention(q, k, v, True)
    assert lse.isfinite().all()  # of scores alone
    # Rows from 40 on see the first, from 50 on the second; a zero weight times infinity is NaN in
    # any tile that was loaded.
    assert (~out[0, 0, 40:, 3].isfinite()).all() and out[0, 0, 50:, 7].isnan().all()
    clean = [c for c in range(64) if c not in (3, 7)]
    check("other columns", out[..., clean], right[..., clean], 0.02)


def rows_apart(x, elements):
    """The same values, rows so far apart."""
    wide = x.new_zeros(*x.shape[:3], elements)
    wide[..., : x.shape[3]] = x
    return wide[..., : x.shape[3]]


def one_element_off(x):
    memory = x.new_zeros(x.numel() + 8)
    return memory[1 : 1 + x.numel()].view(x.shape)


@pytest.mark.parametrize(
    "change,text",
    [
        (lambda q, k, v: (q.float(), k.float(), v.float()), "bf16 or f16"),
        (lambda q, k, v: (q, k.half(), v), "one dtype"),
        (
            lambda q, k, v: tuple(
                torch.randn(1, 2, 8, 65, device=q.device).bfloat16() for _ in range(3)
            ),
            "head dim",
        ),
        (lambda q, k, v: (q, k[:, :1], v[:, :1]), "enable_gqa"),
        (lambda q, k, v: (q, k, v[:, :, :5]), "same sizes"),
        (lambda q, k, v: (q, k[:, :, :0], v[:, :, :0]), "no rows"),
        (lambda q, k, v: (q.transpose(2, 3).contiguous().transpose(2, 3), k, v), "stride 1"),
        (lambda q, k, v: (rows_apart(q, 68), k, v), "multiple of 8"),
        (lambda q, k, v: (q, one_element_off(k), v), "k must start at a multiple of 16 bytes"),
        (lambda q, k, v: (q[..., :0], k[..., :0], v[..., :0]), "head dim"),
        (lambda q, k, v: (q[0], k[0], v[0]), "batch, heads, sequence, head dim"),
        (lambda q, k, v: (q, k.expand(2, -1, -1, -1), v.expand(2, -1, -1, -1)), "agree in batch"),
    ],
)
def test_refusals(module, device, change, text):
    q, k, v = inputs(device, 1, 2, 64, 64, torch.bfloat16)
    with pytest.raises(RuntimeError, match=text):
        module.forward(*change(q, k, v))


@pytest.mark.parametrize(
    "change",
    [lambda x: x[:0], lambda x: x[:, :0], lambda x: x[:, :, :0]],
    ids=["batch", "heads", "rows"],
)
def test_nothing_to_do(module, device, change):
    q, k, v = map(change, inputs(device, 1, 2, 64, 64, torch.bfloat16))
    out, lse = module.forward(q, k, v)
    assert out.shape == q.shape and lse.shape == q.shape[:3]


def test_no_heads_to_share(module, device):
    q, k, v = inputs(device, 1, 2, 64, 64, torch.bfloat16)
    with pytest.raises(RuntimeError, match="a multiple of those of k: 2 and 0"):
        module.forward(q, k[:, :0], v[:, :0], enable_gqa=True)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_scales_that_mean_nothing(module, device, scale):
    with pytest.raises(RuntimeError, match="scale must be positive and finite"):
        module.forward(*inputs(device, 1, 1, 8, 64, torch.bfloat16), scale=scale)


@pytest.mark.parametrize(
    "sq,sk,h_kv,causal", [(70, 70, 2, False), (70, 70, 1, True), (40, 70, 2, True)]
)
def test_gradients(attention, device, sq, sk, h_kv, causal):
    q, k, v = (
        x.requires_grad_() for x in inputs(device, 1, 2, sq, 64, torch.bfloat16, h_kv=h_kv, sk=sk)
    )
    weight = torch.randn(1, 2, sq, 64, generator=torch.Generator().manual_seed(1)).to(device)
    got = torch.autograd.grad(
        (attention(q, k, v, is_causal=causal, enable_gqa=h_kv != 2).float() * weight).sum(),
        (q, k, v),
    )
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    right = torch.autograd.grad((right_attention(*exact, causal)[0] * weight).sum(), exact)
    for name, mine, theirs in zip("qkv", got, right):
        check(f"gradient of {name}", mine, theirs, 0.03 * theirs.abs().max().item())


@pytest.mark.parametrize("causal", [False, True])
def test_gradient_of_the_lse(module, attention, device, causal):
    q, k, v = (x.requires_grad_() for x in inputs(device, 1, 2, 40, 64, torch.bfloat16))
    weight = torch.randn(1, 2, 40, generator=torch.Generator().manual_seed(2)).to(device)
    got = torch.autograd.grad((module.forward(q, k, v, causal)[1] * weight).sum(), (q, k))
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    right = torch.autograd.grad((right_attention(*exact, causal)[1] * weight).sum(), exact[:2])
    for name, mine, theirs in zip("qk", got, right):
        check(f"gradient of {name}", mine, theirs, 0.01 * theirs.abs().max().item())


def test_the_backward_kernels_need_hopper(module, device):
    if device != "cpu" and torch.cuda.get_device_capability() == (9, 0):
        pytest.skip("they run here")
    q, _, _ = inputs(device, 1, 1, 8, 64, torch.bfloat16)
    with pytest.raises(RuntimeError, match="compute capability 9.0"):
        module.backward(q, q, q, q, q, torch.zeros(1, 1, 8, device=device))


def test_cudnn_is_called_as_torch_declares_it(attention):
    """Without a GPU: fakes of CUDA tensors check names, order and number of the arguments."""
    from torch._subclasses import FakeTensorMode

    source = importlib.import_module("attention")
    with FakeTensorMode():
        q, k, v, out, grad = (
            torch.empty(2, 4, 512, 64, dtype=torch.bfloat16, device="cuda") for _ in range(5)
        )
        lse = torch.empty(2, 4, 512, device="cuda")
        grad = grad.transpose(1, 2).contiguous().transpose(1, 2)
        for gradient in (source._gradient_of_cudnn, source._gradient_of_flash):
            for given, made in zip((q, k, v), gradient(grad, q, k, v, out, lse, True, None)):
                assert made.shape == given.shape and made.dtype == given.dtype
    assert not source.cudnn_has_backward(
        torch.empty(1, 1, 8, 64), *[torch.empty(1, 1, 8, 64)] * 2, True
    )


def test_autocast(attention, device):
    q, k, v = (x.float() for x in inputs(device, 1, 1, 33, 64, torch.bfloat16))
    with torch.autocast(torch.device(device).type, torch.bfloat16):
        out = attention(q, k, v)
    assert out.dtype == torch.bfloat16
    check("out", out, right_attention(q, k, v, False)[0], 0.02)
    with pytest.raises(RuntimeError, match="bf16 or f16"):
        attention(q, k, v)


def test_refuses_mask_and_dropout(attention, device):
    q, k, v = inputs(device, 1, 1, 8, 64, torch.bfloat16)
    with pytest.raises(ValueError, match="attn_mask"):
        attention(q, k, v, torch.ones(8, 8, dtype=torch.bool, device=device))
    with pytest.raises(ValueError, match="dropout_p is 0.1"):
        attention(q, k, v, dropout_p=0.1)


def test_compiles_whole(attention, device):
    calls = []

    def count(graph, _):
        calls.append(graph)
        return graph.forward

    compiled = torch.compile(
        lambda q, k, v: attention(q, k, v, is_causal=True) * 2, fullgraph=True, backend=count
    )
    q, k, v = inputs(device, 1, 2, 40, 64, torch.bfloat16)
    assert torch.equal(compiled(q, k, v), attention(q, k, v, is_causal=True) * 2)
    assert len(calls) == 1


def test_opcheck(module, attention, device):
    q, k, v = (x.requires_grad_() for x in inputs(device, 1, 1, 16, 64, torch.bfloat16))
    torch.library.opcheck(torch.ops.fa_s512.forward.default, (q, k, v, True), {"scale": 0.1})
