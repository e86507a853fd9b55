# SPDX-License-Identifier: Apache-2.0
"""Does kiln.test pass right ops whose results cancel, and fail each mistake in them? The gradient
of a softmax under .sum() is 0: what is left is rounding, as large as the terms allow."""

from __future__ import annotations

import kiln
import pytest
import torch
from kiln._checks.terms import sizes_of_terms
from torch.nn import functional

# kiln.test over every layout and size: half a second each.
pytestmark = pytest.mark.one_in(3)


def wide(tensor):
    """Kernels compute half types in f32."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def mean(x):
    return x.mean(-1, keepdim=True)


def total(x):
    return x.sum(-1, keepdim=True)


def softmax_of(x):
    if x.shape[-1] == 0:
        return x * 1
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / total(e)


def normal(x, eps=1e-5):
    """The normalized rows, and 1 over their deviation."""
    centred = x - mean(x)
    rstd = (mean(centred * centred) + eps).rsqrt()
    return centred * rstd, rstd


# Each op: its forward in torch's operations (wide), and its backward: (inputs, grad) -> gradients.
class Softmax:
    reference = staticmethod(lambda x: x.softmax(-1))
    inputs = staticmethod(lambda shape: (torch.randn(shape) * 3,))
    forward = staticmethod(softmax_of)

    @staticmethod
    def right(g, x):
        y = softmax_of(x)
        return (y * (g - total(g * y)),)

    mistakes = {  # noqa: RUF012
        "no sum": lambda g, x: (softmax_of(x) * g,),
        "a sum without the softmax": lambda g, x: (softmax_of(x) * (g - total(g)),),
        "a mean": lambda g, x: (softmax_of(x) * (g - mean(g * softmax_of(x))),),
        "half of it": lambda g, x: (0.5 * Softmax.right(g, x)[0],),
        "one factor more": lambda g, x: (softmax_of(x) * Softmax.right(g, x)[0],),
    }


class LayerNorm:
    reference = staticmethod(lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b))
    inputs = staticmethod(
        lambda shape: (torch.randn(shape) + 2, torch.rand(shape[-1]) + 0.1, torch.randn(shape[-1]))
    )
    forward = staticmethod(lambda x, w, b: normal(x)[0] * w + b)

    @staticmethod
    def right(g, x, w, b, minus=True, projected=True, unit=1.0):
        y, rstd = normal(x)
        gw = g * w
        dx = rstd * (gw - minus * mean(gw) - projected * y * mean(gw * y)) * unit
        rows = tuple(range(x.ndim - 1))
        return dx, (g * y).sum(rows), g.sum(rows)

    mistakes = {  # noqa: RUF012
        "no mean": lambda *a: LayerNorm.right(*a, minus=False),
        "no projection": lambda *a: LayerNorm.right(*a, projected=False),
        "the weight left out": lambda g, x, w, b: (
            LayerNorm.right(g, x, torch.ones_like(w), b)[0],
            *LayerNorm.right(g, x, w, b)[1:],
        ),
        "the weight's gradient of x": lambda g, x, w, b: (
            LayerNorm.right(g, x, w, b)[0],
            (g * x).sum(tuple(range(x.ndim - 1))),
            LayerNorm.right(g, x, w, b)[2],
        ),
        "off by a factor": lambda *a: LayerNorm.right(*a, unit=1.1),
    }


class BatchNorm:
    reference = staticmethod(
        lambda x: functional.batch_norm(x, None, None, training=True) if x.shape[0] > 1 else x * 0
    )
    inputs = staticmethod(lambda shape: (torch.randn(shape) - 1,))
    forward = staticmethod(lambda x: normal(x.transpose(0, -1))[0].transpose(0, -1))

    @staticmethod
    def right(g, x, minus=True, projected=True):
        g, (y, rstd) = g.transpose(0, -1), normal(x.transpose(0, -1))
        found = rstd * (g - minus * mean(g) - projected * y * mean(g * y))
        return (found.transpose(0, -1),)

    mistakes = {  # noqa: RUF012
        "no mean": lambda *a: BatchNorm.right(*a, minus=False),
        "no projection": lambda *a: BatchNorm.right(*a, projected=False),
        "as if in evaluation": lambda *a: BatchNorm.right(*a, minus=False, projected=False),
    }


class Centring:
    reference = staticmethod(lambda x: x - x.mean(-1, keepdim=True))
    inputs = staticmethod(lambda shape: (torch.randn(shape) + 100,))
    forward = staticmethod(lambda x: x - mean(x))
    right = staticmethod(lambda g, x: (g - mean(g),))
    mistakes = {  # noqa: RUF012
        "the gradient as it is": lambda g, x: (g,),
        "a sum": lambda g, x: (g - total(g) if x.shape[-1] > 1 else g,),
        "off by one": lambda g, x: (g - total(g) / (x.shape[-1] + 1),),
    }


class LogSumExp:
    reference = staticmethod(lambda x: x.logsumexp(-1))
    inputs = staticmethod(lambda shape: (torch.randn(shape) * 3,))
    forward = staticmethod(lambda x: x.logsumexp(-1))
    right = staticmethod(lambda g, x: (g[..., None] * softmax_of(x),))
    mistakes = {  # noqa: RUF012
        "not divided": lambda g, x: (g[..., None] * (x - x.amax(-1, True)).exp(),),
        "evenly": lambda g, x: (g[..., None].expand(x.shape) / x.shape[-1] * 1.01,),
    }


class CrossEntropy:
    reference = staticmethod(lambda x, target: functional.cross_entropy(x, target))
    # A model that is sure: 1 - p cancels.
    inputs = staticmethod(
        lambda shape: (
            torch.randn(shape)
            + 12 * functional.one_hot(torch.arange(shape[0]) % shape[1], shape[1]),
            torch.arange(shape[0]) % shape[1],
        )
    )

    @staticmethod
    def forward(x, target):
        logits = x - x.amax(-1, True)
        return (total(logits.exp()).log() - logits.gather(1, target[:, None])).mean()

    @staticmethod
    def right(g, x, target, minus=1.0, rows=True):
        hot = functional.one_hot(target, x.shape[-1]) * minus
        return g * (softmax_of(x) - hot) / (x.shape[0] if rows else 1), None

    mistakes = {  # noqa: RUF012
        "no target": lambda *a: CrossEntropy.right(*a, minus=0),
        "not divided by the rows": lambda *a: CrossEntropy.right(*a, rows=False),
        "a smoothed target": lambda *a: CrossEntropy.right(*a, minus=0.9),
    }


class Attention:
    reference = staticmethod(functional.scaled_dot_product_attention)
    inputs = staticmethod(lambda shape: tuple(torch.randn(2, *shape) for _ in range(3)))

    @staticmethod
    def forward(q, k, v):
        return softmax_of(q @ k.mT * max(q.shape[-1], 1) ** -0.5) @ v

    @staticmethod
    def right(g, q, k, v, scale=True, row_sums=True, transposed=True):
        s = max(q.shape[-1], 1) ** -0.5
        p = softmax_of(q @ k.mT * s)
        dp = g @ v.mT
        ds = p * (dp - row_sums * total(p * dp)) * (s if scale else 1)
        return ds @ k, (ds.mT if transposed else ds) @ q, p.mT @ g

    mistakes = {  # noqa: RUF012
        "no scale": lambda *a: Attention.right(*a, scale=False),
        "no row sums": lambda *a: Attention.right(*a, row_sums=False),
        "not transposed": lambda *a: Attention.right(*a, transposed=False),
        "the value's gradient of the scores": lambda g, q, k, v: (
            *Attention.right(g, q, k, v)[:2],
            (q @ k.mT * max(q.shape[-1], 1) ** -0.5).mT @ g,
        ),
    }


OPS = [Softmax, LayerNorm, BatchNorm, Centring, LogSumExp, CrossEntropy, Attention]
SHAPES = [(8, 100), (3, 7), (33, 5), (2, 1000), (5, 2), (16, 16)]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def op_of(kind, backward, forward=None):
    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            found = (forward or kind.forward)(
                *(wide(one) if one.is_floating_point() else one for one in inputs)
            )
            return found.to(inputs[0].dtype)

        @staticmethod
        def backward(ctx, gradient):
            inputs = ctx.saved_tensors
            found = backward(
                wide(gradient), *(wide(one) if one.is_floating_point() else one for one in inputs)
            )
            return tuple(
                None if one is None else one.to(given.dtype) for one, given in zip(found, inputs)
            )

    return Kernel.apply


def checked(kind, op, dtype, shape, seed=0):
    torch.manual_seed(seed)
    inputs = [one.to(dtype) if one.is_floating_point() else one for one in kind.inputs(shape)]
    return kiln.test(op, *inputs, reference=kind.reference, sanitize=False, opcheck=False)


def named(kinds):
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@named(OPS)
def test_right_ops_pass(command, kind, dtype):
    report = checked(kind, op_of(kind, kind.right), dtype, SHAPES[0])
    assert report.outcome("gradients of .sum()") == "passed", report


@pytest.mark.parametrize("dtype", DTYPES[:3:2], ids=str)
@pytest.mark.parametrize(
    "kind, mistake", [(kind, mistake) for kind in OPS for mistake in kind.mistakes]
)
def test_mistakes_fail(command, kind, mistake, dtype):
    with pytest.raises(kiln.Mismatch, match="gradient"):
        checked(kind, op_of(kind, kind.mistakes[mistake]), dtype, (6, 6))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@named(OPS)
def test_right_ops_pass_in_any_shape(command, kind, dtype, shape, seed):
    checked(kind, op_of(kind, kind.right), dtype, shape, seed)


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "kind, mistake", [(kind, mistake) for kind in OPS for mistake in kind.mistakes]
)
def test_mistakes_fail_in_any_shape(command, kind, mistake, dtype, shape):
    if kind is Attention and mistake == "not transposed" and shape[0] == shape[1] == 1:
        pytest.skip("the same in one element")
    with pytest.raises(kiln.Mismatch, match="gradient"):
        checked(kind, op_of(kind, kind.mistakes[mistake]), dtype, shape)


def test_a_wrong_value_where_terms_cancel(command):
    """Of a forward: rows of one value, whose centred values are 0."""
    x = torch.full((4, 9), 1 / 3)
    right, wrong = Centring.forward, lambda x: x - mean(x) + 1e-4
    kiln.test(
        op_of(Centring, Centring.right, right), x, reference=Centring.reference, opcheck=False
    )
    with pytest.raises(kiln.Mismatch, match="differs"):
        kiln.test(
            op_of(Centring, Centring.right, wrong), x, reference=Centring.reference, opcheck=False
        )


def test_a_tolerance_that_is_given_is_kept(command):
    with pytest.raises(kiln.Mismatch):
        kiln.test(
            op_of(Softmax, Softmax.right), torch.randn(8, 100), reference=Softmax.reference,
            atol=1e-30, opcheck=False, sanitize=False,
        )  # fmt: skip


def test_sizes_of_terms():
    x = torch.tensor([1e6, 1.0, -1e6, 0.1], dtype=torch.float64)
    (size,) = sizes_of_terms(lambda: [x.sum()])
    assert 1e5 < size < 1e7, "of the terms, not of the sum"
    assert sizes_of_terms(lambda: [x.max(), torch.ones(2, dtype=torch.int64)])[1] is None
    assert sizes_of_terms(lambda: [x.neg()])[0].max() == 0, "nothing is rounded"
    assert (
        sizes_of_terms(lambda: [torch.full((2,), torch.nan, dtype=torch.float64) + 1])[0].max() == 0
    )

    def raises():
        raise RuntimeError("not now")

    assert sizes_of_terms(raises) is None
