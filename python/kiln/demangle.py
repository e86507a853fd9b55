# SPDX-License-Identifier: Apache-2.0
"""How does the source write a name of C++ that the linker knows as _Z6helperPf?"""

from __future__ import annotations

import ctypes


def demangled(symbol: str) -> str:
    """A C++ name as people write it; as it is where this machine has no libstdc++."""
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return symbol
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_int),
    ]
    status = ctypes.c_int(-1)
    text = demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return symbol
    shown = ctypes.string_at(text).decode(errors="replace")
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(text)
    return shown
