# SPDX-License-Identifier: Apache-2.0
"""How does a TensorDescriptor of the host become a tensor map? By the engine's
cuTensorMapEncodeTiled, as Triton calls the driver's."""

from __future__ import annotations

import ctypes
from typing import Any

from .._launch.engine import need_engine
from ..errors import KilnError

_BYTES = 128
# Triton numbers the element types of the device otherwise than the driver.
_TYPES = {8: 10, 9: 8, 10: 9}


def tensor_map_of(descriptor: Any, meta: Any) -> bytes:
    """The 128 bytes that the kernel is given by value."""
    shape, strides = list(descriptor.shape), list(descriptor.strides)
    if meta["fp4_padded"]:
        shape[-1] *= 2
    block = list(meta["block_size"])
    rank, element = len(block), meta["elem_size"]
    # The driver counts dimensions from the innermost, whose stride is the element's size.
    sizes = (ctypes.c_uint64 * 5)(*reversed(shape))
    steps = (ctypes.c_uint64 * 5)(*(element * step for step in reversed(strides[:-1])))
    box = (ctypes.c_uint32 * 5)(*reversed(block))
    out = ctypes.create_string_buffer(_BYTES)
    code = _encode()(
        out, _TYPES.get(meta["elem_type"], meta["elem_type"]), rank, descriptor.base.data_ptr(),
        sizes, steps, box, (ctypes.c_uint32 * 5)(1, 1, 1, 1, 1), 0, meta["swizzle"], 0,
        1 if getattr(descriptor, "padding", "zero") == "nan" else 0,
    )  # fmt: skip
    if code:
        raise KilnError(
            "cannot make a tensor map of a TensorDescriptor",
            f"shape {shape}, strides {strides}, block {block}, {element} bytes per element: "
            "strides must be multiples of 16 bytes, and at most 256 elements per dimension fit a "
            "block",
            "change the block or the strides; or compile for sm_80, which uses no tensor maps",
        )
    return out.raw


def _encode() -> Any:
    engine = need_engine()
    query = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_ulonglong, ctypes.c_void_p
    )(engine.runtime_function(b"cudaGetDriverEntryPoint"))
    address = ctypes.c_void_p()
    if query(b"cuTensorMapEncodeTiled", ctypes.byref(address), 0, None) or not address:
        raise KilnError("cannot make a tensor map", "this engine has no cuTensorMapEncodeTiled")
    pointer, number = ctypes.c_void_p, ctypes.c_int
    return ctypes.CFUNCTYPE(
        number, pointer, number, ctypes.c_uint32, pointer, pointer, pointer, pointer, pointer,
        number, number, number, number,
    )(address.value)  # fmt: skip
