# SPDX-License-Identifier: Apache-2.0
"""How does PTX run on the CPU? As an image registered with the engine, in the form that a fat
binary has in a process."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import KilnError, split_error
from .engine import Dim3, Launch, Region, need_engine
from .memory import Memory
from .ptx_text import short_name

Size = tuple[int, int, int]

_WRAPPER_MAGIC = 0x466243B1
_CONTAINER_MAGIC = 0xBA55ED50
_PTX = 1
_ENTRY_HEADER_BYTES = 64
_COOPERATIVE = 1
# cudaFuncAttributeMaxDynamicSharedMemorySize; a launch that needs more than 48 KB must ask for it.
_MAX_DYNAMIC_SHARED = 8
_PLAIN_SHARED_BYTES = 48 << 10


@dataclass(frozen=True)
class Configuration:
    """Sizes and kind of a launch."""

    grid: Size
    block: Size
    shared_bytes: int = 0
    cluster: Size = (0, 0, 0)
    cooperative: bool = False


def _container(text: str, arch: int) -> bytes:
    """A fat binary with one entry: PTX, not compressed (src/binary/fatbin.h)."""
    payload = text.encode() + b"\0"
    payload += bytes(-len(payload) % 8)
    header = bytearray(_ENTRY_HEADER_BYTES)
    struct.pack_into("<HHIQ", header, 0, _PTX, 0x101, _ENTRY_HEADER_BYTES, len(payload))
    struct.pack_into("<I", header, 0x1C, arch)
    entry = bytes(header) + payload
    return struct.pack("<IHHQ", _CONTAINER_MAGIC, 1, 16, len(entry)) + entry


class EngineModule:
    """PTX that the engine knows, as long as this object lives."""

    def __init__(self, text: str, arch: int) -> None:
        self._engine = need_engine()
        self._engine.serve_ops()
        container = ctypes.create_string_buffer(_container(text, arch))
        wrapper = ctypes.create_string_buffer(
            struct.pack("<IIQQ", _WRAPPER_MAGIC, 1, ctypes.addressof(container), 0)
        )
        self._image = self._engine.register_image(ctypes.addressof(wrapper))
        # Each needs an address of its own, which the engine takes for that of a host function.
        self._functions: dict[str, Any] = {}
        self._shared_limits: dict[str, int] = {}
        kept = (container, wrapper)
        weakref.finalize(self, _forget, self._engine, self._image, kept)

    def launch(
        self,
        kernel: str,
        configuration: Configuration,
        values: Sequence[bytes],
        memory: Sequence[tuple[str, Memory]],
    ) -> None:
        """Runs a kernel to its end; `memory` is all it may touch, apart from its own variables."""
        function = self._function(kernel)
        shared = configuration.shared_bytes
        if shared > self._shared_limits.get(kernel, _PLAIN_SHARED_BYTES):
            self._allow_shared(kernel, function, shared)
        # One buffer for all: a parameter is read from where its pointer points.
        offsets, whole = [], bytearray()
        for value in values:
            whole += bytes(-len(whole) % 16)
            offsets.append(len(whole))
            whole += value
        buffer = ctypes.create_string_buffer(bytes(whole), len(whole) + 1)
        base = ctypes.addressof(buffer)
        arguments = (ctypes.c_void_p * max(len(values), 1))(*(base + at for at in offsets))
        regions = (Region * max(len(memory), 1))()
        for region, (name, one) in zip(regions, memory):
            region.begin, region.bytes = one.begin, one.bytes
            region.name, region.writable = name.encode(), one.writable
        launch = Launch(
            struct_bytes=ctypes.sizeof(Launch),
            flags=_COOPERATIVE if configuration.cooperative else 0,
            host_function=function,
            grid=Dim3(*configuration.grid),
            block=Dim3(*configuration.block),
            cluster=Dim3(*configuration.cluster),
            arguments=arguments,
            dynamic_shared_bytes=shared,
            regions=regions,
            region_count=len(memory),
            check_memory=1,
            function=self._engine.function_handle(function),
        )
        if self._engine.launch(ctypes.byref(launch)):
            raise self._failed(kernel)

    def _function(self, kernel: str) -> int:
        marker = self._functions.get(kernel)
        if marker is None:
            marker = self._functions[kernel] = ctypes.create_string_buffer(1)
            self._engine.register_function(self._image, ctypes.addressof(marker), kernel.encode())
        return ctypes.addressof(marker)

    def _allow_shared(self, kernel: str, function: int, shared: int) -> None:
        set_attribute = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(
            self._engine.runtime_function(b"cudaFuncSetAttribute")
        )
        if set_attribute(function, _MAX_DYNAMIC_SHARED, min(shared, (1 << 31) - 1)):
            raise self._failed(kernel)
        self._shared_limits[kernel] = shared

    def _failed(self, kernel: str) -> KilnError:
        text = self._engine.last_message().decode("utf-8", "replace")
        # This exception reports it: the process must not report it again when it ends.
        ctypes.CFUNCTYPE(ctypes.c_int)(self._engine.runtime_function(b"cudaGetLastError"))()
        if text.startswith("error: "):
            return KilnError(*split_error(text))
        what, _, why = text.partition(": ")
        if what.startswith("cannot launch") and why:
            large = why.startswith("the grid") and "larger" in why
            return KilnError(what, why, "put more of it into the first dimension" if large else "")
        return KilnError(f"{short_name(kernel)} failed on the engine", text)


def _forget(engine: Any, image: int, _kept: Any) -> None:
    engine.unregister_image(image)
