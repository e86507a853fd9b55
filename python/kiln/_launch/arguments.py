# SPDX-License-Identifier: Apache-2.0
"""Which bytes does a kernel's parameter get for a Python value? The `.param` declaration decides.

A value that does not fit its declaration is refused: PTX has no types of the source left, so a
float in the place of an int would be read as another number without a word.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..errors import KilnError
from .memory import Memory, memory_of, tensor_at
from .ptx_text import Entry, Parameter

_FLOAT_FORMATS = {16: "<e", 32: "<f", 64: "<d"}
_POINTER_BYTES = 8


@dataclass(frozen=True)
class Packed:
    """Arguments as a launch takes them, and the memory that they point to."""

    values: tuple[bytes, ...]
    memory: tuple[tuple[str, Memory], ...]

    @property
    def gpus(self) -> set[Optional[int]]:
        return {memory.gpu for _, memory in self.memory}


def pack(entry: Entry, arguments: Sequence[Any]) -> Packed:
    """The bytes of every parameter of `entry`."""
    given = _expanded(entry, arguments)
    if len(given) != len(entry.parameters):
        declared = ", ".join(map(str, entry.parameters)) or "none"
        raise KilnError(
            f"cannot call {entry.short_name} with {_count(len(given))}",
            f"its PTX declares {_count(len(entry.parameters))}: {declared}",
            "pass one value per parameter, in this order",
        )
    values: list[bytes] = []
    memory: list[tuple[str, Memory]] = []
    for index, (parameter, value) in enumerate(zip(entry.parameters, given)):
        name = f"argument {index}"
        found = memory_of(value, name)
        if found is None and parameter.is_pointer and _is_address(value):
            found = _addressed(entry, name, value)
        if found is None:
            values.append(_scalar(entry, index, parameter, value))
            continue
        if parameter.count or parameter.bytes != _POINTER_BYTES or parameter.kind == "float":
            raise _misfit(
                entry, index, parameter, f"a {type(value).__name__}", "pass a number: int or float"
            )
        memory.append((name, found))
        values.append(found.address.to_bytes(8, "little"))
    return Packed(tuple(values), tuple(memory))


def _expanded(entry: Entry, arguments: Sequence[Any]) -> list[Any]:
    """Numba passes an array as its parts, and writes so in the kernel's name."""
    if "5ArrayI" not in entry.name or len(arguments) == len(entry.parameters):
        return list(arguments)
    parts: list[Any] = []
    for value in arguments:
        if memory_of(value, "an array") is None:
            parts.append(value)
            continue
        shape, item = tuple(value.shape), value.dtype.itemsize
        strides = value.strides if hasattr(value, "strides") else None
        if strides is None:
            strides = [stride * item for stride in value.stride()]
        count = 1
        for length in shape:
            count *= length
        parts += [0, 0, count, item, value, *shape, *strides]
    return parts


def _is_address(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value != 0


def _addressed(entry: Entry, name: str, value: int) -> Optional[Memory]:
    found = tensor_at(value)
    if found is None:
        raise KilnError(
            f"cannot pass {value:#x} as {name} of {entry.short_name}",
            "it is a pointer, and no CPU tensor of this process holds that address",
            "pass the tensor or the array itself; None or 0 is a null pointer",
        )
    return found


def _scalar(entry: Entry, index: int, parameter: Parameter, value: Any) -> bytes:
    if value is None and parameter.bytes == _POINTER_BYTES and not parameter.count:
        return bytes(8)
    if isinstance(value, (bytes, bytearray, memoryview, ctypes.Structure, ctypes.Array)):
        return _bytes_for(entry, index, parameter, bytes(value))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        exact = _numpy_scalar(parameter, value)
        if exact is not None:
            return exact
        value = value.item()
    if parameter.count:
        raise _misfit(
            entry, index, parameter, repr(value),
            f"pass bytes, a ctypes structure or a NumPy record of {parameter.bytes} bytes",
        )  # fmt: skip
    width = parameter.bytes * 8
    if isinstance(value, (bool, int)) and parameter.kind != "float":
        if not -(1 << (width - 1)) <= value < 1 << width:
            raise _misfit(
                entry, index, parameter, f"{value}", f"pass an int that fits into {width} bits"
            )
        return (value & ((1 << width) - 1)).to_bytes(parameter.bytes, "little")
    if isinstance(value, (int, float)) and parameter.kind == "float" and width in _FLOAT_FORMATS:
        return _float_bytes(value, width)
    fix = "pass an int"
    if (isinstance(value, float) and parameter.kind == "bits") or width == 16:
        fix = f"pass the bits: numpy.float{width}(value), or an int"
    elif parameter.kind == "float":
        fix = "pass a float"
    elif width == 64:
        fix = "pass a tensor, an array, an int or None"
    raise _misfit(entry, index, parameter, _shown(value), fix)


def _float_bytes(value: float, width: int) -> bytes:
    """Rounded as a cast in C: beyond the largest number lies infinity, not an error."""
    try:
        return struct.pack(_FLOAT_FORMATS[width], value)
    except OverflowError:
        return struct.pack(_FLOAT_FORMATS[width], float("inf") if value > 0 else float("-inf"))


def _numpy_scalar(parameter: Parameter, value: Any) -> Optional[bytes]:
    """The value's own bytes where its kind and width are those of the parameter."""
    if value.dtype.kind == "f" and parameter.kind == "integer" and parameter.bytes != 2:
        return None
    if value.dtype.kind in "iub" and parameter.kind == "float":
        return None
    return value.tobytes() if value.dtype.itemsize == parameter.bytes else None


def _bytes_for(entry: Entry, index: int, parameter: Parameter, value: bytes) -> bytes:
    if len(value) == parameter.bytes:
        return value
    raise _misfit(entry, index, parameter, f"{len(value)} bytes", f"pass {parameter.bytes} bytes")


def _misfit(entry: Entry, index: int, parameter: Parameter, got: str, fix: str) -> KilnError:
    return KilnError(
        f"cannot pass {got} as argument {index} of {entry.short_name}",
        f"its PTX declares {parameter} {parameter.name}",
        fix,
    )


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (int, float, str)) else f"a {type(value).__name__}"


def _count(number: int) -> str:
    return f"{number} argument" + ("" if number == 1 else "s")
