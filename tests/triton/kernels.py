# SPDX-License-Identifier: Apache-2.0
"""Kernels in the style of Triton's tutorials: add, softmax, matmul, dropout, layer norm, attention.
Each has a wrapper with the signature of its reference."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = out.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=1024)
    return out


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, rows, columns, BLOCK: tl.constexpr,
                   STAGES: tl.constexpr):  # fmt: skip
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < columns
        values = tl.load(in_ptr + row * in_stride + offsets, mask=mask, other=-float("inf"))
        raised = tl.exp(values - tl.max(values, axis=0))
        tl.store(out_ptr + row * out_stride + offsets, raised / tl.sum(raised, axis=0), mask=mask)


def softmax(x):
    """Persistent programs, as many as are resident together."""
    rows, columns = x.shape
    out = torch.empty_like(x)
    properties = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)
    block = triton.next_power_of_2(columns)
    sizes = (x.stride(0), out.stride(0), rows, columns)
    compiled = softmax_kernel.warmup(out, x, *sizes, BLOCK=block, STAGES=2, num_warps=4, grid=(1,))
    _ = compiled.run  # loads it: registers are known from then on
    resident = properties["max_num_regs"] // (compiled.n_regs * 32 * 4)
    programs = min(resident * properties["multiprocessor_count"], rows)
    softmax_kernel[(programs, 1, 1)](out, x, *sizes, BLOCK=block, STAGES=2, num_warps=4)
    return out


@triton.autotune(
    configs=[
        # With tiles that can be loaded ahead it needs 256 KB of shared memory: more than there is.
        triton.Config({"BM": 256, "BN": 256, "BK": 64, "GROUP": 8}, num_stages=5, num_warps=8),
        triton.Config({"BM": 64, "BN": 64, "BK": 32, "GROUP": 8}, num_stages=3, num_warps=4),
        triton.Config({"BM": 32, "BN": 64, "BK": 32, "GROUP": 8}, num_stages=2, num_warps=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
                  stride_cm, stride_cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  GROUP: tl.constexpr, ACTIVATION: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    in_group = GROUP * tiles_n
    first_m = (pid // in_group) * GROUP
    group_m = min(tiles_m - first_m, GROUP)
    tile_m = first_m + (pid % in_group) % group_m
    tile_n = (pid % in_group) // group_m
    rows = (tile_m * BM + tl.arange(0, BM)) % M
    columns = (tile_n * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    out_rows = tile_m * BM + tl.arange(0, BM)
    out_columns = tile_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * out_rows[:, None] + stride_cn * out_columns[None, :]
    mask = (out_rows[:, None] < M) & (out_columns[None, :] < N)
    tl.store(c_ptrs, accumulator.to(tl.float16), mask=mask)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


def matmul(a, b, activation=""):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)
    matmul_kernel[lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0),
        c.stride(1), ACTIVATION=activation,
    )  # fmt: skip
    return c


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def dropout(x, p, seed):
    out = torch.empty_like(x)
    dropout_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), p, seed, BLOCK=512)
    return out


@triton.heuristics({"BLOCK": lambda args: min(1024, triton.next_power_of_2(args["columns"]))})
@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, stride, columns, eps,
                      BLOCK: tl.constexpr):  # fmt: skip
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < columns, other=0.0).to(tl.float32)
        x = tl.where(at < columns, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=mask)
        bias = tl.load(bias_ptr + at, mask=mask)
        tl.store(y_ptr + at, (x - mean) * rstd * weight + bias, mask=mask)


@triton.jit
def layer_norm_dx_kernel(dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, lock_ptr,
                         stride, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Partial sums of the weights' gradients by groups of rows, one lock per group."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    lock = row % GROUP
    lock_ptr += lock
    count_ptr = lock_ptr + GROUP
    x = tl.load(x_ptr + row * stride + at, mask=mask, other=0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride + at, mask=mask, other=0).to(tl.float32)
    w = tl.load(w_ptr + at, mask=mask).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(normal * wdy, axis=0) / columns
    c2 = tl.sum(wdy, axis=0) / columns
    tl.store(dx_ptr + row * stride + at, (wdy - (normal * c1 + c2)) * rstd, mask=mask)
    partial_w = dy * normal
    partial_b = dy
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    count = tl.load(count_ptr)
    tl.debug_barrier()  # all threads have read it before one of them changes it
    if count == 0:
        tl.atomic_xchg(count_ptr, 1)
    else:
        partial_w += tl.load(dw_ptr + lock * columns + at, mask=mask)
        partial_b += tl.load(db_ptr + lock * columns + at, mask=mask)
    tl.store(dw_ptr + lock * columns + at, partial_w, mask=mask)
    tl.store(db_ptr + lock * columns + at, partial_b, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def layer_norm(x, weight, bias, eps=1e-5):
    rows, columns = x.shape
    y = torch.empty_like(x)
    mean = torch.empty(rows, dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    layer_norm_kernel[(rows,)](x, y, weight, bias, mean, rstd, x.stride(0), columns, eps)
    return y, mean, rstd


def layer_norm_backward(dy, x, weight, mean, rstd, group=4):
    rows, columns = x.shape
    dx = torch.empty_like(x)
    dw = torch.zeros(group, columns, dtype=torch.float32, device=x.device)
    db = torch.zeros_like(dw)
    locks = torch.zeros(2 * group, dtype=torch.int32, device=x.device)
    layer_norm_dx_kernel[(rows,)](
        dx, dy, dw, db, x, weight, mean, rstd, locks, x.stride(0), columns, GROUP=group,
        BLOCK=triton.next_power_of_2(columns),
    )  # fmt: skip
    return dx, dw.sum(0), db.sum(0)


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, scale, length, stride_h, stride_t,
                     CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                     DIM: tl.constexpr):  # fmt: skip
    tile = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * stride_h
    rows = tile * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    dims = tl.arange(0, DIM)
    q = tl.load(q_ptr + base + rows[:, None] * stride_t + dims[None, :],
                mask=rows[:, None] < length, other=0.0)  # fmt: skip
    peak = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    accumulator = tl.zeros([BM, DIM], tl.float32)
    end = tl.minimum((tile + 1) * BM, length) if CAUSAL else length
    for start in range(0, end, BN):
        at = start + columns
        k = tl.load(k_ptr + base + at[None, :] * stride_t + dims[:, None],
                    mask=at[None, :] < length, other=0.0)  # fmt: skip
        scores = tl.dot(q, k) * (scale * 1.44269504)
        allowed = at[None, :] < length
        if CAUSAL:
            allowed = allowed & (rows[:, None] >= at[None, :])
        scores = tl.where(allowed, scores, -1.0e6)
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        raised = tl.math.exp2(scores - new_peak[:, None])
        correction = tl.math.exp2(peak - new_peak)
        total = total * correction + tl.sum(raised, 1)
        v = tl.load(v_ptr + base + at[:, None] * stride_t + dims[None, :],
                    mask=at[:, None] < length, other=0.0)  # fmt: skip
        accumulator = tl.dot(raised.to(v.dtype), v, accumulator * correction[:, None])
        peak = new_peak
    out = accumulator / total[:, None]
    tl.store(out_ptr + base + rows[:, None] * stride_t + dims[None, :],
             out.to(out_ptr.dtype.element_ty), mask=rows[:, None] < length)  # fmt: skip


def attention(q, k, v, causal=True):
    heads, length, dim = q.shape
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(length, 64), heads)](
        q, k, v, out, dim**-0.5, length, q.stride(0), q.stride(1), CAUSAL=causal, BM=64, BN=32,
        DIM=dim,
    )  # fmt: skip
    return out
