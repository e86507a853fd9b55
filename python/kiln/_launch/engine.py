# SPDX-License-Identifier: Apache-2.0
"""How is the engine reached from Python? Its table of functions (kiln/engine_abi.h) in ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any, Optional

from ..command import PACKAGE
from ..errors import SetupError

ABI_VERSION = 1


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


class Region(ctypes.Structure):
    _fields_ = [
        ("begin", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("writable", ctypes.c_uint32),
    ]


class Launch(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("host_function", ctypes.c_void_p),
        ("grid", Dim3),
        ("block", Dim3),
        ("cluster", Dim3),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("dynamic_shared_bytes", ctypes.c_uint64),
        ("stream", ctypes.c_void_p),
        ("regions", ctypes.POINTER(Region)),
        ("region_count", ctypes.c_uint32),
        ("check_memory", ctypes.c_uint32),
        ("function", ctypes.c_void_p),
    ]


class Record(ctypes.Structure):
    """A launch that has ended, as a listener hears of it."""

    _fields_ = [
        ("struct_bytes", ctypes.c_uint32),
        ("code", ctypes.c_int32),
        ("kernel", ctypes.c_char_p),
        ("grid", Dim3),
        ("block", Dim3),
        ("shared_bytes", ctypes.c_uint64),
        ("begin_ns", ctypes.c_int64),
        ("ns", ctypes.c_int64),
    ]


LISTENER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Record), ctypes.c_void_p)


class Engine(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("struct_bytes", ctypes.c_uint32),
        ("version", ctypes.c_char_p),
        ("register_image", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
        (
            "register_function",
            ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
        ),
        ("register_variable", ctypes.c_void_p),
        ("unregister_image", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("launch", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Launch))),
        ("runtime_function", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)),
        ("last_message", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("listen", ctypes.CFUNCTYPE(None, LISTENER, ctypes.c_void_p)),
        ("serve_ops", ctypes.CFUNCTYPE(None)),
        ("function_handle", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
        ("count_launches", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)),
    ]


def engine_path() -> Path:
    return Path(os.environ.get("KILN_ENGINE") or PACKAGE / "lib" / "libkiln_engine.so")


def find_engine() -> Optional[Any]:
    """The engine's table; None where there is no engine, or one older than this package."""
    path = engine_path()
    return _open(str(path)) if path.is_file() else None


def need_engine() -> Any:
    """The engine's table, ready for memory of this process."""
    engine = find_engine()
    if engine is None:
        raise SetupError(
            "cannot run a kernel on the CPU",
            f"{engine_path()} is missing or belongs to another version of kiln",
            "install the package kiln-cuda, or set KILN_ENGINE",
        )
    return engine


@functools.lru_cache(maxsize=4)
def _open(path: str) -> Optional[Any]:
    library = ctypes.CDLL(path)
    library.kiln_engine.restype = ctypes.POINTER(Engine)
    library.kiln_engine.argtypes = [ctypes.c_uint32]
    table = library.kiln_engine(ABI_VERSION)
    # A table that ends earlier belongs to an older engine.
    if not table or table.contents.struct_bytes < ctypes.sizeof(Engine):
        return None
    return table.contents
