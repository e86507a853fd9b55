# SPDX-License-Identifier: Apache-2.0
"""Are the gradients right, by this project's kernels and by torch's, and is each taken where it
should be?"""

from __future__ import annotations

import importlib.util
import random
import sys
import warnings
from pathlib import Path

import pytest
import torch
from reference import attention, check

PROJECT = Path(__file__).resolve().parents[3] / "kernels" / "fa_s512"


@pytest.fixture(scope="module")
def source():
    spec = importlib.util.spec_from_file_location("fa_s512_attention", PROJECT / "attention.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # torch.compile imports it by its name
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fa(source, release_build):
    return source.attach(release_build)


@pytest.fixture
def taken(source, monkeypatch):
    """The names of the backwards that ran."""
    names: list[str] = []
    for name in (
        "_gradient_of_own",
        "_gradient_of_cudnn",
        "_gradient_of_flash",
        "_gradient_by_products",
    ):
        function = getattr(source, name)
        monkeypatch.setattr(
            source,
            name,
            lambda *a, name=name, function=function: names.append(name) or function(*a),
        )
    return names


@pytest.fixture
def by_torch(source, monkeypatch):
    monkeypatch.setattr(source, "own_kernels_have_backward", lambda *_: False)


def tensors(b, h, s, d, dtype, h_kv=None, sk=None, bshd=False):
    make = torch.Generator("cuda").manual_seed(b + 7 * s + d)

    def one(heads, length):
        x = torch.randn(b, heads, length, d, generator=make, device="cuda").to(dtype)
        x = x.transpose(1, 2).contiguous().transpose(1, 2) if bshd else x
        return x.requires_grad_()

    return one(h, s), one(h_kv or h, sk or s), one(h_kv or h, sk or s)


def verify(fa, q, k, v, causal, layout=lambda g: g, scale=None):
    """Against fp64; as far off as plain PyTorch in the tensors' own dtype, twice."""
    gqa = q.shape[1] != k.shape[1]
    make = torch.Generator("cuda").manual_seed(1)
    weight = layout(torch.randn(q.shape, generator=make, device="cuda").to(q.dtype))
    got = torch.autograd.grad(
        fa(q, k, v, is_causal=causal, scale=scale, enable_gqa=gqa), (q, k, v), weight
    )

    def by_products(dtype):
        leaves = [x.detach().to(dtype).requires_grad_() for x in (q, k, v)]
        out = attention(*leaves, causal, scale, dtype=dtype)[0]
        return [g.double() for g in torch.autograd.grad(out, leaves, weight.to(dtype))]

    right, plain = by_products(torch.float64), by_products(q.dtype)
    for name, mine, exact, rounded in zip("qkv", got, right, plain):
        # The last part is for gradients that are 0, as those of one query and one key are.
        rounding = 2 * torch.finfo(q.dtype).eps * exact.abs().max().item()
        allowed = 2 * (rounded - exact).abs().max().item() + rounding + 1e-3
        check(f"gradient of {name}", mine, exact, allowed)


LENGTHS = [512, 256, 97, 1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("s", [*LENGTHS, 1024, 1500])
def test_own_kernels(fa, source, taken, s, d, causal, dtype):
    q, k, v = tensors(2, 4, s, d, dtype)
    verify(fa, q, k, v, causal)
    assert taken == ["_gradient_of_own"] or s > source.LONGEST[causal]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("s", LENGTHS)
def test_lengths(fa, source, taken, by_torch, s, d, causal, dtype):
    q, k, v = tensors(2, 4, s, d, dtype)
    by_cudnn = source.cudnn_has_backward(q, k, v, causal)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "error", message="fa_s512: cuDNN refused"
        )  # what the rule let through
        verify(fa, q, k, v, causal)
    assert taken == ["_gradient_of_cudnn" if by_cudnn else "_gradient_of_flash"]
    assert by_cudnn or s != 512, (
        "torch has cuDNN's backward for the shape that this kernel is named for"
    )


@pytest.mark.parametrize("whose", ["own", "torch"])
def test_layouts_of_inputs_and_gradients(fa, taken, whose, request):
    """The same sizes again and again, with gradients that lie in other ways: torch's plans do not
    tell them apart."""
    if whose == "torch":
        request.getfixturevalue("by_torch")
    for bshd in (False, True):
        for layout in (
            lambda g: g,
            lambda g: g.transpose(1, 2).contiguous().transpose(1, 2),
            lambda g: torch.cat([g, g], -1)[..., : g.shape[-1]],
            lambda g: g.transpose(2, 3).contiguous().transpose(2, 3),
            lambda g: g[:, :, :1].expand(g.shape),
        ):
            verify(fa, *tensors(2, 4, 512, 64, torch.bfloat16, bshd=bshd), True, layout)
    assert set(taken) == {"_gradient_of_own" if whose == "own" else "_gradient_of_cudnn"}


def test_shared_heads_scale_and_other_lengths(fa, taken, by_torch):
    verify(fa, *tensors(2, 8, 512, 128, torch.bfloat16, h_kv=2), True)
    verify(fa, *tensors(2, 4, 512, 128, torch.bfloat16), False, scale=0.2)
    verify(fa, *tensors(2, 4, 256, 128, torch.bfloat16, sk=512), False)
    assert set(taken) == {"_gradient_of_cudnn"}
    verify(fa, *tensors(1, 2, 40, 64, torch.bfloat16, sk=70), True)
    assert taken[-1] == "_gradient_by_products"


def test_own_kernels_share_heads_and_take_other_lengths(fa, taken):
    verify(fa, *tensors(2, 128, 256, 128, torch.bfloat16, h_kv=32), True)
    verify(fa, *tensors(2, 4, 512, 128, torch.bfloat16), False, scale=0.2)
    verify(fa, *tensors(2, 4, 256, 128, torch.bfloat16, sk=512), False)
    verify(fa, *tensors(1, 2, 40, 64, torch.bfloat16, sk=70), True)
    verify(fa, *tensors(1, 2, 70, 64, torch.bfloat16, sk=40), True)
    assert set(taken) == {"_gradient_of_own"}


def test_deterministic_algorithms_are_the_own_kernels(fa, taken, source):
    s = 2 * max(source.LONGEST.values())
    q, k, v = tensors(1, 2, s, 64, torch.bfloat16)
    torch.use_deterministic_algorithms(True)
    try:
        grads = [torch.autograd.grad(fa(q, k, v), (q, k, v), torch.ones_like(q)) for _ in range(2)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert set(taken) == {"_gradient_of_own"}
    assert all(torch.equal(a, b) for a, b in zip(*grads))


def test_a_thousand_runs_have_the_same_bits(release_build):
    """While other work moves through the memory."""
    q, k, v = (x.detach() for x in tensors(4, 16, 512, 128, torch.bfloat16))
    grad = torch.randn_like(q)
    out, lse = release_build.forward(q, k, v, True)
    first = release_build.backward(grad, q, k, v, out, lse, True)
    other, moved = torch.cuda.Stream(), torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    differ = torch.zeros((), dtype=torch.int64, device="cuda")
    for i in range(1000):
        if i % 10 == 0:
            with torch.cuda.stream(other):
                moved.add_(1)
        for a, b in zip(first, release_build.backward(grad, q, k, v, out, lse, True)):
            differ += (a.view(torch.int16) != b.view(torch.int16)).sum()
    torch.cuda.synchronize()
    assert differ.item() == 0


def test_random_shapes(release_build):
    """Forward and backward against fp64; what came before is in the memory of the results."""
    choose = random.Random(0)
    for _ in range(60):
        d, causal = choose.choice([64, 128]), choose.random() < 0.5
        sq, sk = (choose.choice([choose.randint(1, 700), 64 * choose.randint(1, 9)]) for _ in "qk")
        h_kv, groups = choose.randint(1, 3), choose.choice([1, 1, 2, 3])
        dtype = choose.choice([torch.bfloat16, torch.float16])
        q, k, v = tensors(
            choose.randint(1, 3), h_kv * groups, sq, d, dtype, h_kv, sk, choose.random() < 0.5
        )
        call = lambda q, k, v, is_causal, scale, enable_gqa: _Whole.apply(  # noqa: E731
            release_build, q, k, v, is_causal
        )
        verify(call, q, k, v, causal)


class _Whole(torch.autograd.Function):
    """The two ops and nothing that chooses among them."""

    @staticmethod
    def forward(ctx, ops, q, k, v, causal):
        out, lse = ops.forward(q, k, v, causal, enable_gqa=q.shape[1] != k.shape[1])
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.ops, ctx.causal = ops, causal
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, lse = ctx.saved_tensors
        grads = ctx.ops.backward(grad.contiguous(), q, k, v, out, lse, ctx.causal)
        return None, *grads, None


def test_waits_end(debug_build):
    """In the build whose waits give up."""
    for d, causal in ((64, False), (64, True), (128, False), (128, True)):
        q, k, v = (x.detach() for x in tensors(3, 16, 700, d, torch.bfloat16))
        out, lse = debug_build.forward(q, k, v, causal)
        debug_build.backward(torch.ones_like(q), q, k, v, out, lse, causal)


def test_cudnn_can_be_switched_off(fa, taken, by_torch):
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        verify(fa, *tensors(2, 4, 512, 64, torch.bfloat16), True)
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)
    assert taken == ["_gradient_of_flash"]


def test_compiled_training(fa):
    q, k, v = tensors(2, 4, 512, 64, torch.bfloat16)
    step = torch.compile(
        lambda q, k, v: fa(q, k, v, is_causal=True), fullgraph=True, backend="aot_eager"
    )
    weight = torch.randn_like(q)
    got = torch.autograd.grad(step(q, k, v), (q, k, v), weight)
    for mine, eager in zip(
        got, torch.autograd.grad(fa(q, k, v, is_causal=True), (q, k, v), weight)
    ):
        torch.testing.assert_close(mine, eager, rtol=2e-2, atol=2e-2)
