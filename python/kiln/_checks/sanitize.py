# SPDX-License-Identifier: Apache-2.0
"""Does an op break rules of memory, order or barriers, though its values are right? The engine's
checkers tell, while it runs the op once more."""

from __future__ import annotations

import ctypes
import json
from typing import Any, Callable, Optional

from .._launch.engine import find_engine

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


def is_watched() -> bool:
    """Does somebody watch the engine already, as `kiln sanitize` does its whole process?"""
    function = _function()
    if function is None:
        return False
    if why := json.loads(function(b"default")).get("error"):
        return "watched" in why
    function(None)
    return False


def errors_in(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found.get("findings", []) if one["severity"] == "error"]


def _function() -> Optional[Callable[[Optional[bytes]], bytes]]:
    engine = find_engine()
    if engine is None:
        return None
    address = engine.runtime_function(b"kiln_sanitize")
    return _SANITIZE(address) if address else None
