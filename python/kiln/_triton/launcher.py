# SPDX-License-Identifier: Apache-2.0
"""How does `kernel[grid](...)` of Triton reach the engine? Arguments by Triton's own signature;
tensors are the memory that the kernel may touch, under the names of its parameters.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from .._launch.memory import Memory, memory_of, tensor_at
from .._launch.on_engine import Configuration, EngineModule
from ..errors import KilnError

_INTEGER_BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
_INTEGER_BYTES |= {"u" + name[1:]: size for name, size in _INTEGER_BYTES.items()}
_FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
_WARP = 32
# Arguments of int64 are searched for pointers where they are few and look like addresses.
_MAX_POINTERS = 4096
_LOWEST_ADDRESS = 1 << 32


@dataclass(frozen=True)
class Loaded:
    """What stands for the function of a compiled kernel."""

    module: EngineModule
    name: str


class Values:
    """Arguments of one launch, in the order of the kernel's parameters."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.values: list[bytes] = []
        self.memory: list[tuple[str, Memory]] = []

    def add(self, name: str, kind: Any, value: Any) -> None:
        """One argument; tuples are passed as their members."""
        if isinstance(kind, tuple):
            for index, (one, member) in enumerate(zip(kind, value)):
                self.add(f"{name}[{index}]", one, member)
        elif kind == "constexpr":
            return
        elif kind.startswith("*"):
            self.values.append(self._pointer(name, value).to_bytes(8, "little"))
        elif kind in _INTEGER_BYTES:
            bits = _INTEGER_BYTES[kind] * 8
            if bits == 64 and not -(1 << 63) <= int(value) < 1 << 64:
                raise OverflowError  # of Triton before 3.6, which does not look; see refusals.py
            self.values.append((int(value) & ((1 << bits) - 1)).to_bytes(bits // 8, "little"))
        elif kind == "bf16":
            self.values.append(_bfloat16(float(value)))
        elif kind in _FLOATS:
            self.values.append(_rounded(_FLOATS[kind], value))
        else:
            raise KilnError(
                f"cannot pass '{name}' to {self.kernel}",
                f"the engine does not take arguments of Triton's type {kind}",
                "pass pointers and numbers",
            )

    def _pointer(self, name: str, value: Any) -> int:
        if value is None:
            return 0
        if isinstance(value, int):
            return value if value == 0 else self._address(name, value)
        # Triton's TensorWrapper (reinterpret) has the tensor in `base`.
        array = value
        while memory_of(array, name) is None and hasattr(array, "base"):
            array = array.base
        memory = memory_of(array, f"'{name}'")
        if memory is None or memory.gpu is not None:
            raise KilnError(
                f"cannot pass '{name}' to {self.kernel} on the engine",
                f"it is a {type(value).__name__}"
                + ("" if memory is None else " on a GPU, and other arguments are on the CPU"),
                "pass CPU tensors",
            )
        self.memory.append((name, memory))
        for one in _pointed_to(array):
            self.memory.append((f"{name}[...]", one))
        return memory.address

    def _address(self, name: str, value: int) -> int:
        found = tensor_at(value)
        if found is None:
            raise KilnError(
                f"cannot pass {value:#x} as '{name}' to {self.kernel}",
                "it is a pointer, and no CPU tensor of this process holds that address",
                "pass the tensor itself",
            )
        self.memory.append((name, found))
        return value


def _pointed_to(array: Any) -> Iterator[Memory]:
    """What a table of pointers points to: kernels of groups take the addresses of tensors so."""
    if str(array.dtype).rpartition(".")[2] not in ("int64", "uint64"):
        return
    count = array.numel() if hasattr(array, "numel") else array.size
    if not 0 < count <= _MAX_POINTERS:
        return
    addresses = set(array.reshape(-1).tolist()) - {0}
    if not addresses or min(addresses) < _LOWEST_ADDRESS:
        return
    begins = set()
    for address in addresses:
        found = tensor_at(address)
        if found is not None and found.begin not in begins:
            begins.add(found.begin)
            yield found


def _rounded(form: str, value: float) -> bytes:
    """As a cast in C: beyond the largest number lies infinity, not an error."""
    try:
        return struct.pack(form, value)
    except OverflowError:
        return struct.pack(form, float("inf") if value > 0 else float("-inf"))


def _bfloat16(value: float) -> bytes:
    """Rounded to nearest, ties to even, as Triton's launcher does."""
    bits = int.from_bytes(_rounded("<f", value), "little")
    if value == value:
        bits += 0x7FFF + ((bits >> 16) & 1)
    return (bits >> 16).to_bytes(2, "little")


class EngineLauncher:
    """What Triton makes for a compiled kernel, and calls to launch it."""

    def __init__(self, source: Any, metadata: Any) -> None:
        names = list(source.signature)
        function = getattr(source, "fn", None)
        known = getattr(function, "arg_names", None) or [str(name) for name in names]
        self._names = [name if isinstance(name, str) else known[name] for name in names]
        self._kinds = list(source.signature.values())
        self._kernel = metadata.name
        self._threads = _WARP * metadata.num_warps
        self._shared_bytes = metadata.shared
        self._clusters = getattr(metadata, "num_ctas", 1)
        self._cooperative = bool(getattr(metadata, "launch_cooperative_grid", False))
        self._descriptors = getattr(metadata, "tensordesc_meta", None)
        # Per program: tensor descriptors that the kernel makes for itself live there.
        self._scratch = getattr(metadata, "global_scratch_size", 0) or 0
        self._scratch_align = getattr(metadata, "global_scratch_align", 1) or 1

    def __call__(
        self, x: int, y: int, z: int, stream: Any, function: Loaded, *arguments: Any
    ) -> None:
        _packed, launch_metadata, before, after, *given = arguments
        if before is not None:
            before(launch_metadata)
        if x * y * z > 0:
            self._launch((int(x), int(y), int(z)), function, given)
        if after is not None:
            after(launch_metadata)

    def _launch(self, grid: tuple[int, int, int], function: Loaded, given: list[Any]) -> None:
        values = Values(self._kernel)
        described = 0
        for name, kind, value in zip(self._names, self._kinds, given):
            if isinstance(kind, str) and kind.startswith("tensordesc"):
                meta = self._descriptors[described] if self._descriptors else None
                described += 1
                _add_descriptor(values, name, kind, value, meta)
            else:
                values.add(name, kind, value)
        blocks = grid[0] * grid[1] * grid[2] * self._clusters
        scratch = _scratch(blocks * self._scratch, self._scratch_align)
        if scratch is not None:
            values.memory.append(("scratch", scratch[0]))
        values.values.append((scratch[0].address if scratch else 0).to_bytes(8, "little"))
        values.values.append(bytes(8))  # scratch of the profiler
        cluster = (self._clusters, 1, 1) if self._clusters > 1 else (0, 0, 0)
        configuration = Configuration(
            (grid[0] * self._clusters, grid[1], grid[2]),
            (self._threads, 1, 1),
            self._shared_bytes,
            cluster,
            self._cooperative,
        )
        function.module.launch(function.name, configuration, values.values, values.memory)


def _scratch(size: int, align: int) -> Optional[tuple[Memory, Any]]:
    if size == 0:
        return None
    import torch

    buffer = torch.zeros(size + align, dtype=torch.uint8)
    at = -(-buffer.data_ptr() // align) * align
    return Memory(at, at, size, True, None), buffer


def _add_descriptor(values: Values, name: str, kind: str, value: Any, meta: Any) -> None:
    """A TensorDescriptor: a tensor map where the kernel uses TMA, else its parts; then shape and
    strides, for the kernel's own use."""
    if meta is None:
        values.add(name, "*" + kind[len("tensordesc<") :], value.base)
        _add_all(values, name, "i64", (*value.shape, *value.strides))
        values.add(name, "i1", getattr(value, "padding", "zero") == "nan")
        if hasattr(value, "round_f32_to_tf32"):  # from Triton 3.7
            values.add(name, "i1", value.round_f32_to_tf32)
    else:
        from .tensor_map import tensor_map_of

        memory = memory_of(value.base, f"'{name}'")
        if memory is not None:
            values.memory.append((name, memory))
        values.values.append(tensor_map_of(value, meta))
    _add_all(values, name, "i32", value.shape)
    _add_all(values, name, "i64", value.strides)


def _add_all(values: Values, name: str, kind: str, numbers: Any) -> None:
    for number in numbers:
        values.add(name, kind, number)
