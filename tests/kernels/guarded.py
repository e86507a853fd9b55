# SPDX-License-Identifier: Apache-2.0
"""Adds tensors that fill memory up to a page that may not be touched: right results, or the process
dies."""

import ctypes
import mmap

import torch

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """Bytes between two pages without access."""

    def __init__(self, pages: int) -> None:
        self.bytes = pages * PAGE
        self.map = mmap.mmap(-1, self.bytes + 2 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        for guard in (start, start + PAGE + self.bytes):
            if libc.mprotect(guard, PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")

    def tensor(self, count: int, dtype: torch.dtype, at_end: bool) -> torch.Tensor:
        size = count * dtype.itemsize
        offset = PAGE + (self.bytes - size if at_end else 0)
        return torch.frombuffer(self.map, dtype=dtype, count=count, offset=offset)


def add_at_the_edges(kernels) -> None:
    memory = [Guarded(2 * 65536 // PAGE + 2) for _ in range(2)]
    for dtype in (torch.uint8, torch.bfloat16, torch.float32, torch.float64):
        for count in (1, 7, 9, 2049, 8197, 12301):
            if count * dtype.itemsize > memory[0].bytes:
                continue
            for ends in ((True, True), (True, False), (False, True)):
                a, b = (held.tensor(count, dtype, end) for held, end in zip(memory, ends))
                a.copy_(torch.arange(count) % 7)
                b.copy_(torch.arange(count) % 5)
                for op in (kernels.my_add, kernels.my_fast_add):
                    assert torch.equal(op(a, b), a + b)
                    if count > 8000:
                        rows = a[: count // 41 * 41].view(41, -1)
                        assert torch.equal(op(rows, b[: rows.shape[1]]), rows + b[: rows.shape[1]])
                        assert torch.equal(
                            op(rows, a[-rows.shape[1] :]), rows + a[-rows.shape[1] :]
                        )
                        turned = b[-(rows.numel()) :].view(-1, 41).t()
                        assert torch.equal(op(rows, turned), rows + turned)
                assert torch.equal(kernels.cust_add(a, 1), a + 1)
