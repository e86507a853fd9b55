# SPDX-License-Identifier: Apache-2.0
"""Which mistakes in Triton kernels must `kiln sanitize` find, and at which line? `expect RULE
#NAME` is in the line, or in both lines, of a finding; a line may have several."""

from __future__ import annotations

import mmap

import torch
import triton
import triton.language as tl

import kiln.triton  # noqa: F401  CPU tensors run on the engine

BLOCK = 128


@triton.jit
def load_without_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)  # expect out-of-bounds #load-without-mask
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def store_without_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x)  # expect out-of-bounds #store-without-mask


@triton.jit
def mask_one_too_far(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, 2 * x, mask=at <= n)  # expect out-of-bounds #one-too-far


@triton.jit
def swapped_strides(x_ptr, out_ptr, rows, inner, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * rows + at * inner, mask=mask)
    out_ptr += row * inner
    tl.store(out_ptr + at * rows, x, mask=mask)  # expect out-of-bounds #strides


@triton.jit
def mask_of_the_other_dimension(x_ptr, out_ptr, rows, columns, BR: tl.constexpr, BC: tl.constexpr):
    row = tl.arange(0, BR)[:, None]
    column = tl.arange(0, BC)[None, :]
    at = row * columns + column
    x = tl.load(x_ptr + at, mask=column < columns)  # expect out-of-bounds #dimension
    tl.store(out_ptr + at, x, mask=(row < rows) & (column < columns))


@triton.jit
def halo_before_the_start(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + at - 1, mask=at < n)  # expect out-of-bounds #halo
    tl.store(out_ptr + at, left, mask=at < n)


@triton.jit
def misaligned_pair(x_ptr, out_ptr):
    pair = (x_ptr + 1).to(tl.pointer_type(tl.int64))
    tl.store(out_ptr, tl.load(pair))  # expect misaligned #misaligned


@triton.jit
def sum_without_atomic(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + at, mask=at < n, other=0))
    total = tl.load(out_ptr)  # expect global-race #sum
    tl.store(out_ptr, total + part)  # expect global-race #sum #sums


@triton.jit
def last_one_wins(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * columns + at, mask=at < columns, other=0)
    tl.store(out_ptr + at, x, mask=at < columns)  # expect global-race #last-one


@triton.jit
def exchange_without_barrier(x_ptr, scratch_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(scratch_ptr + at, tl.load(x_ptr + at))  # expect global-race #exchange
    turned = tl.load(scratch_ptr + BLOCK - 1 - at)  # expect global-race #exchange
    tl.store(out_ptr + at, turned)


@triton.jit
def relaxed_unlock(x_ptr, out_ptr, lock_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + at)
    while tl.atomic_cas(lock_ptr, 0, 1, sem="relaxed") == 1:
        pass
    total = tl.load(out_ptr + at)  # expect global-race #unlock
    tl.store(out_ptr + at, total + x)  # expect global-race #unlock #unlocks
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="relaxed")


@triton.jit
def row_beyond_the_grid(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) + 1
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns)  # expect out-of-bounds #row
    tl.store(out_ptr + (row - 1) * columns + at, x, mask=at < columns)


def apart(values: torch.Tensor) -> torch.Tensor:
    """Far from every other tensor. In the neighbour's memory, where an allocator may put one, a
    wrong access would be a race as well."""
    memory = mmap.mmap(-1, 1 << 18)
    count = values.numel()
    own = torch.frombuffer(memory, dtype=values.dtype, count=count, offset=1 << 16)
    return own.copy_(values.flatten()).view(values.shape)


def main() -> None:
    n = 3 * BLOCK - 28
    grid = (3,)
    x, out = apart(torch.randn(n)), apart(torch.zeros(n))
    load_without_mask[grid](x, out, n, BLOCK=BLOCK)
    store_without_mask[grid](x, apart(torch.zeros(n)), n, BLOCK=BLOCK)
    mask_one_too_far[grid](x, apart(torch.zeros(n)), n, BLOCK=BLOCK)
    table = apart(torch.randn(10, 100))
    swapped_strides[(10,)](table, apart(torch.zeros(10, 100)), 100, 1, 100, BLOCK=BLOCK)
    mask_of_the_other_dimension[(1,)](table, apart(torch.zeros(10, 100)), 10, 100, BR=16, BC=BLOCK)
    halo_before_the_start[grid](x, apart(torch.zeros(n)), n, BLOCK=BLOCK)
    misaligned_pair[(1,)](
        apart(torch.arange(8, dtype=torch.int32)), apart(torch.zeros(1, dtype=torch.int64))
    )
    sum_without_atomic[grid](x, apart(torch.zeros(1)), n, BLOCK=BLOCK)
    last_one_wins[(10,)](table, apart(torch.zeros(100)), 100, BLOCK=BLOCK)
    whole = apart(torch.randn(3 * BLOCK))
    exchange_without_barrier[(1,)](
        whole, apart(torch.zeros(BLOCK)), apart(torch.zeros(BLOCK)), BLOCK=BLOCK
    )
    relaxed_unlock[grid](
        whole, apart(torch.zeros(BLOCK)), apart(torch.zeros(1, dtype=torch.int32)), BLOCK=BLOCK
    )
    row_beyond_the_grid[(10,)](table, apart(torch.zeros(10, 100)), 100, BLOCK=BLOCK)


if __name__ == "__main__":
    main()
