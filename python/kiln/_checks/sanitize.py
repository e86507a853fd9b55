# SPDX-License-Identifier: Apache-2.0
"""Does an op break rules of memory, order or barriers, though its values are right? The engine's
checkers tell, while it runs the op once more."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any, Callable, Optional

from ..command import PACKAGE


class _Engine(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("struct_bytes", ctypes.c_uint32),
        ("version", ctypes.c_char_p),
        ("functions", ctypes.c_void_p * 5),
        ("runtime_function", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)),
    ]


_SANITIZE = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_char_p)


def sanitized(checks: str, run: Callable[[], Any]) -> tuple[dict[str, Any], str]:
    """What the checks found while `run` ran, and why not, where they could not run.

    An exception of `run` is raised again, unless there are findings that explain it.
    """
    function = _function()
    if function is None:
        return {}, "no engine that checks"
    if why := json.loads(function(checks.encode())).get("error"):
        return {}, why
    raised: Optional[Exception] = None
    try:
        run()
    except Exception as error:
        raised = error
    finally:
        found = json.loads(function(None))
    if raised is not None and not errors_in(found):
        raise raised
    return found, ""


def errors_in(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found.get("findings", []) if one["severity"] == "error"]


def _function() -> Optional[Callable[[Optional[bytes]], bytes]]:
    path = os.environ.get("KILN_ENGINE") or str(PACKAGE / "lib" / "libkiln_engine.so")
    if not Path(path).is_file():
        return None
    library = ctypes.CDLL(path)
    library.kiln_engine.restype = ctypes.POINTER(_Engine)
    library.kiln_engine.argtypes = [ctypes.c_uint32]
    table = library.kiln_engine(1)
    if not table:
        return None
    address = table.contents.runtime_function(b"kiln_sanitize")
    return _SANITIZE(address) if address else None
