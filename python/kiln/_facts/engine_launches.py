# SPDX-License-Identifier: Apache-2.0
"""Which kernels did the engine run? It tells whoever listens (kiln/engine_abi.h)."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..command import PACKAGE


class _Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


class _Record(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_uint32),
        ("code", ctypes.c_int32),
        ("kernel", ctypes.c_char_p),
        ("grid", _Dim3),
        ("block", _Dim3),
        ("shared_bytes", ctypes.c_uint64),
        ("begin_ns", ctypes.c_int64),
        ("ns", ctypes.c_int64),
    ]


_LISTENER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Record), ctypes.c_void_p)


class _Engine(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("struct_bytes", ctypes.c_uint32),
        ("version", ctypes.c_char_p),
        ("functions", ctypes.c_void_p * 7),
        ("listen", ctypes.CFUNCTYPE(None, _LISTENER, ctypes.c_void_p)),
    ]


@contextlib.contextmanager
def engine_launches() -> Iterator[list[dict[str, Any]]]:
    """The launches inside, as they end; none where no engine is loaded."""
    launches: list[dict[str, Any]] = []
    engine = _engine()
    if engine is None:
        yield launches
        return

    def heard(record: Any, _user: Any) -> None:
        one = record.contents
        launches.append(
            {
                "name": one.kernel.decode(errors="replace"),
                "grid": [one.grid.x, one.grid.y, one.grid.z],
                "block": [one.block.x, one.block.y, one.block.z],
                "shared_bytes": one.shared_bytes,
                "begin_ns": one.begin_ns,
                "us": one.ns / 1e3,
            }
        )

    listener = _LISTENER(heard)
    engine.listen(listener, None)
    try:
        yield launches
    finally:
        engine.listen(_LISTENER(0), None)


def _engine() -> Any:
    path = os.environ.get("KILN_ENGINE") or str(PACKAGE / "lib" / "libkiln_engine.so")
    if not Path(path).is_file():
        return None
    library = ctypes.CDLL(path)
    library.kiln_engine.restype = ctypes.POINTER(_Engine)
    library.kiln_engine.argtypes = [ctypes.c_uint32]
    table = library.kiln_engine(1)
    # A table that ends before `listen` is of an engine that tells nothing.
    if not table or table.contents.struct_bytes < ctypes.sizeof(_Engine):
        return None
    return table.contents
