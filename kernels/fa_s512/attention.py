# SPDX-License-Identifier: Apache-2.0
"""How is fa_s512 used in a model? As torch.nn.functional.scaled_dot_product_attention: the same
arguments, gradients, autocast, torch.compile.

    attention = load()
    out = attention(q, k, v, is_causal=True)

What it does not cover (a mask, dropout, other dtypes and head dims) it refuses; it never falls back
in silence.
"""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any, Callable, Optional

import kiln
import torch
from torch import Tensor

PROJECT = Path(__file__).resolve().parent


def load(**how: Any) -> Callable[..., Tensor]:
    """Builds and loads the ops (`how`: the arguments of kiln.load) and gives the attention
    function."""
    return attach(kiln.load(PROJECT, **how))


def attach(module: Any) -> Callable[..., Tensor]:
    """The attention function over ops that are loaded, which get their gradient."""
    module.forward.setup_context(_save)
    module.forward.backward(functools.partial(_backward, module))

    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Optional[Tensor] = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Optional[float] = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """softmax(query key^T * scale) value, of [batch, heads, sequence, head dim]."""
        if attn_mask is not None:
            raise ValueError(
                "fa_s512 has no attn_mask: use is_causal, or torch's scaled_dot_product_attention"
            )
        if dropout_p != 0.0:
            raise ValueError(
                f"fa_s512 has no dropout, and dropout_p is {dropout_p}: use torch's attention to "
                f"train with it"
            )
        where = query.device.type
        if torch.is_autocast_enabled(where):
            to = torch.get_autocast_dtype(where)
            query, key, value = query.to(to), key.to(to), value.to(to)
        return module.forward(query, key, value, is_causal, scale=scale, enable_gqa=enable_gqa)[0]

    return attention


def _save(ctx: Any, inputs: tuple, keyword_only_inputs: dict, output: tuple) -> None:
    query, key, value, ctx.is_causal = inputs
    ctx.scale = keyword_only_inputs["scale"]
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(query, key, value, *output)


def _backward(
    module: Any, ctx: Any, grad_out: Optional[Tensor], grad_lse: Optional[Tensor]
) -> tuple:
    query, key, value, out, lse = ctx.saved_tensors
    if grad_out is None and grad_lse is None:
        return None, None, None, None
    # With another number of keys flash attention means another causal mask than torch's; it takes
    # no gradient of LSE. Without a kernel of ours the whole matrix of scores takes its place.
    alone = grad_lse is not None or (ctx.is_causal and query.shape[2] != key.shape[2])
    if own_kernels_have_backward(query, key, ctx.is_causal, alone):
        grads = _gradient_of_own(
            module, grad_out, grad_lse, query, key, value, out, lse, ctx.is_causal, ctx.scale
        )
        return *grads, None
    groups = query.shape[1] // key.shape[1]
    whole_key, whole_value = (
        x.repeat_interleave(groups, 1) if groups > 1 else x for x in (key, value)
    )
    given = (query, whole_key, whole_value)
    if alone:
        grads = _gradient_by_products(grad_out, grad_lse, *given, ctx.is_causal, ctx.scale)
    elif cudnn_has_backward(*given, ctx.is_causal):
        grads = _gradient_of_cudnn(grad_out, *given, out, lse, ctx.is_causal, ctx.scale)
    else:
        grads = _gradient_of_flash(grad_out, *given, out, lse, ctx.is_causal, ctx.scale)
    grad_query, grad_key, grad_value = grads
    if groups > 1:
        grad_key, grad_value = (
            g.unflatten(1, (key.shape[1], groups)).sum(2) for g in (grad_key, grad_value)
        )
    return grad_query, grad_key, grad_value, None


# Up to here the kernels of this project are at least as fast as cuDNN's on the H200
# (docs/results/fa_s512.md): they do seven products where cuDNN does five, and save the sum over
# blocks, whose share falls with the length.
LONGEST = {False: 1024, True: 2048}


def own_kernels_have_backward(
    query: Tensor, key: Tensor, is_causal: bool, alone: bool = False
) -> bool:
    """Whether the backward kernels of this project are taken: on compute capability 9.0, where they
    are as fast as cuDNN's, where the same bits are asked for in each run
    (torch.use_deterministic_algorithms), or where they are `alone`."""
    if query.device.type != "cuda" or query.numel() == 0:
        return False
    if torch.cuda.get_device_capability(query.device) != (9, 0):
        return False
    if alone or torch.are_deterministic_algorithms_enabled():
        return True
    # One block takes all heads of q that share 128 rows of k: too few blocks leave the GPU idle.
    shared = query.shape[1] != key.shape[1]
    if shared and key.shape[0] * key.shape[1] * key.shape[2] < 128 * 128:
        return False
    return max(query.shape[2], key.shape[2]) <= LONGEST[is_causal]


def _gradient_of_own(
    module, grad_out, grad_lse, query, key, value, out, lse, is_causal: bool, scale: Optional[float]
) -> tuple:
    """By backward.h, which gives the same bits in each run."""
    if grad_out is None:
        grad_out = torch.zeros_like(out)
    if grad_lse is not None:
        grad_lse = grad_lse.float().contiguous()
    given = (as_tma_reads(grad_out), query, key, value, out, lse, is_causal, scale, grad_lse)
    # Under create_graph alone: the node would cost each step its time.
    return _Once.apply(module, *given) if torch.is_grad_enabled() else _call(module, *given)


def _call(module, *given) -> tuple:
    *tensors, is_causal, scale, grad_lse = given
    return module.backward(*tensors, is_causal, scale=scale, grad_lse=grad_lse)


class _Once(torch.autograd.Function):
    """Gradients that have none themselves."""

    @staticmethod
    def forward(ctx, module, *given):
        return tuple(_call(module, *given))

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(
            "fa_s512 has no second derivative: use torch's scaled_dot_product_attention with "
            "torch.nn.attention.sdpa_kernel(SDPBackend.MATH)"
        )


def as_tma_reads(x: Tensor) -> Tensor:
    """x, or a copy if TMA cannot read it where it lies."""
    lies_well = (
        x.stride(3) == 1
        and x.storage_offset() % 8 == 0
        and all(s > 0 and s % 8 == 0 for s, n in zip(x.stride()[:3], x.shape[:3]) if n > 1)
    )
    return x if lies_well else x.clone(memory_format=torch.contiguous_format)


def cudnn_has_backward(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> bool:
    """Whether torch would take cuDNN for these tensors. On the H200 its backward takes half the
    time of flash's; on older GPUs torch itself prefers flash."""
    if query.device.type != "cuda" or query.numel() == 0:
        return False
    if not hasattr(torch.ops.aten, "_scaled_dot_product_cudnn_attention_backward"):
        return False
    # Strides of 0 make gradients that overlap; cuDNN has no word on them.
    if any(
        stride == 0 and size > 1
        for x in (query, key, value)
        for size, stride in zip(x.shape, x.stride())
    ):
        return False
    if torch.cuda.get_device_capability(query.device)[0] < 9:
        return False
    # dtype, head dim, lengths, version of cuDNN, torch.use_deterministic_algorithms and
    # enable_cudnn_sdp(False).
    params = torch.backends.cuda.SDPAParams(query, key, value, None, 0.0, is_causal, False)
    try:
        return torch.backends.cuda.can_use_cudnn_attention(params, False)
    except RuntimeError:  # sizes without a value, while torch.compile traces
        return False


def _gradient_of_cudnn(
    grad_out, query, key, value, out, lse, is_causal: bool, scale: Optional[float]
) -> tuple:
    """cuDNN's backward through PyTorch, which asks for the output and its LSE, [batch, heads,
    sequence, 1]."""
    # PyTorch keeps cuDNN's plan under the strides of q, k and v, not of this: it must be laid out
    # as `out` each time.
    if grad_out.stride() != out.stride():
        grad_out = torch.empty_strided(
            out.shape, out.stride(), dtype=out.dtype, device=out.device
        ).copy_(grad_out)
    unused = torch.empty((), dtype=torch.int64, device=query.device)  # the state of dropout
    try:
        return torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
            grad_out, query, key, value, out, lse.unsqueeze(-1), unused, unused, None, None, None,
            query.shape[2], key.shape[2], 0.0, is_causal, scale=scale,
        )  # fmt: skip
    except RuntimeError as error:
        if isinstance(error, torch.cuda.OutOfMemoryError):
            raise
        reason = (str(error).strip().splitlines() or [""])[0]
        warnings.warn(
            f"fa_s512: cuDNN refused the backward of {tuple(query.shape)} {query.dtype} "
            f"({reason}); torch's flash "
            "backward takes its place, in about twice the time",
            stacklevel=2,
        )
        return _gradient_of_flash(grad_out, query, key, value, out, lse, is_causal, scale)


def _gradient_of_flash(
    grad_out, query, key, value, out, lse, is_causal: bool, scale: Optional[float]
) -> tuple:
    """PyTorch's own backward of flash attention, which asks for the output and its LSE."""
    if query.device.type == "cpu":
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad_out, query, key, value, out, lse, 0.0, is_causal, scale=scale
        )
    unused = torch.empty(0, dtype=torch.int64, device=query.device)  # the state of dropout
    return torch.ops.aten._scaled_dot_product_flash_attention_backward(
        grad_out.contiguous(), query, key, value, out, lse, None, None, query.shape[2],
        key.shape[2], 0.0, is_causal, unused, unused, scale=scale,
    )  # fmt: skip


def _gradient_by_products(
    grad_out, grad_lse, query, key, value, is_causal: bool, scale: Optional[float]
) -> tuple:
    """In fp32 with the whole matrix of scores: the general case."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    q, k, v = (x.float() for x in (query, key, value))
    scores = q @ k.transpose(-1, -2) * factor
    if is_causal:
        seen = torch.ones(
            query.shape[2], key.shape[2], dtype=torch.bool, device=query.device
        ).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    weights = torch.softmax(scores, -1)
    grad_scores = torch.zeros_like(weights)
    grad_value = torch.zeros_like(v)
    if grad_out is not None:
        g = grad_out.float()
        grad_weights = g @ v.transpose(-1, -2)
        grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True))
        grad_value = weights.transpose(-1, -2) @ g
    if grad_lse is not None:
        grad_scores = grad_scores + weights * grad_lse.unsqueeze(-1)
    grads = (grad_scores @ k * factor, grad_scores.transpose(-1, -2) @ q * factor, grad_value)
    return tuple(x.to(query.dtype) for x in grads)
