# SPDX-License-Identifier: Apache-2.0
"""How does a program that calls torch.utils.cpp_extension build with kiln, by one line?
kiln.patch_torch()."""

from __future__ import annotations

from typing import Any

_before: dict[str, Any] = {}


def patch_torch(undo: bool = False) -> None:
    """From here on torch.utils.cpp_extension's load, load_inline, CUDAExtension, CppExtension and
    BuildExtension are kiln's. Names that were imported from there before keep what they had.
    undo=True puts torch's own back."""
    from torch.utils import cpp_extension

    if undo:
        for name, value in _before.items():
            setattr(cpp_extension, name, value)
        _before.clear()
        return
    from .inline import load_inline
    from .loader import load
    from .setup_py import BuildExtension, CppExtension, CUDAExtension

    for value in (load, load_inline, CUDAExtension, CppExtension, BuildExtension):
        _before.setdefault(value.__name__, getattr(cpp_extension, value.__name__))
        setattr(cpp_extension, value.__name__, value)
