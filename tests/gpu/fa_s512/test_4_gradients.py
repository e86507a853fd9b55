# SPDX-License-Identifier: Apache-2.0
"""Are the gradients right, by whichever of torch's backwards they come, and is cuDNN's taken where
torch has it?"""

from __future__ import annotations

import importlib.util
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
    for name in ("_gradient_of_cudnn", "_gradient_of_flash", "_gradient_by_products"):
        function = getattr(source, name)
        monkeypatch.setattr(
            source,
            name,
            lambda *a, name=name, function=function: names.append(name) or function(*a),
        )
    return names


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("s", [512, 256, 97, 1])
def test_lengths(fa, source, taken, s, d, causal, dtype):
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


def test_layouts_of_inputs_and_gradients(fa, taken):
    """The same sizes again and again, with gradients that lie in other ways: torch's plans do not
    tell them apart."""
    for bshd in (False, True):
        for layout in (
            lambda g: g,
            lambda g: g.transpose(1, 2).contiguous().transpose(1, 2),
            lambda g: torch.cat([g, g], -1)[..., : g.shape[-1]],
            lambda g: g.transpose(2, 3).contiguous().transpose(2, 3),
            lambda g: g[:, :, :1].expand(g.shape),
        ):
            verify(fa, *tensors(2, 4, 512, 64, torch.bfloat16, bshd=bshd), True, layout)
    assert set(taken) == {"_gradient_of_cudnn"}


def test_shared_heads_scale_and_other_lengths(fa, taken):
    verify(fa, *tensors(2, 8, 512, 128, torch.bfloat16, h_kv=2), True)
    verify(fa, *tensors(2, 4, 512, 128, torch.bfloat16), False, scale=0.2)
    verify(fa, *tensors(2, 4, 256, 128, torch.bfloat16, sk=512), False)
    assert set(taken) == {"_gradient_of_cudnn"}
    verify(fa, *tensors(1, 2, 40, 64, torch.bfloat16, sk=70), True)
    assert taken[-1] == "_gradient_by_products"


def test_cudnn_can_be_switched_off(fa, taken):
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
