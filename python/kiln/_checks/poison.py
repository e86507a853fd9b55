# SPDX-License-Identifier: Apache-2.0
"""How does new memory show what an op never wrote? It is filled before the op gets it."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from typing import Any

from .._torch import torch_module

# Switches of c10's CPU allocator. Junk is 0x7fedbeef: a NaN as f32, and as each second 16-bit
# float.
_CPU_SWITCHES = {
    "junk": "FLAGS_caffe2_cpu_allocator_do_junk_fill",
    "zero": "FLAGS_caffe2_cpu_allocator_do_zero_fill",
}


_CPU_JUNK = 0x7FEDBEEF


def still_junk(results: Any) -> int:
    """How many elements of these CPU tensors have the bits that their memory was filled with?"""
    torch = torch_module()
    count = 0
    for one in results:
        if not isinstance(one, torch.Tensor) or one.device.type != "cpu" or one.numel() == 0:
            continue
        data = one.detach().contiguous().view(-1).view(torch.uint8)
        words = data[: data.numel() // 4 * 4].view(torch.int32)
        count += int((words == _CPU_JUNK).sum()) * 4 // one.element_size()
    return count


@contextlib.contextmanager
def poisoned(device: Any, pattern: str) -> Iterator[str]:
    """New tensors are filled with `pattern` ("junk" or "zero") inside. Yields "" or why that cannot
    be had."""
    if device is None:
        yield "the op takes no tensor"
    elif device.type == "cpu":
        with _cpu(pattern) as why_not:
            yield why_not
    elif pattern == "zero":
        yield ""  # the caching allocator has no such switch, and junk has been looked for already
    else:
        with _deterministic_fill():
            yield ""


@contextlib.contextmanager
def _cpu(pattern: str) -> Iterator[str]:
    # torch's deterministic fill does not reach CPU tensors of the C shim, which skips the
    # dispatcher for them.
    torch = torch_module()
    try:
        c10 = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
        switch = ctypes.c_bool.in_dll(c10, _CPU_SWITCHES[pattern])
    except (OSError, ValueError):
        yield f"torch {torch.__version__} has no switch to fill new memory"
        return
    before = switch.value
    switch.value = True
    try:
        yield ""
    finally:
        switch.value = before


@contextlib.contextmanager
def _deterministic_fill() -> Iterator[None]:
    """torch fills what it allocates with NaN, or the largest integer, while its deterministic mode
    is on."""
    torch = torch_module()
    mode = torch.get_deterministic_debug_mode()
    fill = torch.utils.deterministic.fill_uninitialized_memory
    torch.set_deterministic_debug_mode("warn")
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        torch.utils.deterministic.fill_uninitialized_memory = fill
