# SPDX-License-Identifier: Apache-2.0
"""How does a program that calls torch.utils.cpp_extension build with kiln, by one line?
kiln.patch_torch()."""

from __future__ import annotations

import functools
import inspect
import os
from pathlib import Path
from typing import Any, Callable

from ._flags import as_identifier

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
        name = value.__name__
        _before.setdefault(name, getattr(cpp_extension, name))
    cpp_extension.load = called_as(_before["load"], load)
    cpp_extension.load_inline = called_as(_before["load_inline"], _inline(load_inline))
    for extension in (CUDAExtension, CppExtension, BuildExtension):
        setattr(cpp_extension, extension.__name__, extension)


def _inline(load_inline: Callable[..., Any]) -> Callable[..., Any]:
    """A source without torch's names is one for torch all the same, unless it includes
    kiln/op.h."""

    def run(*, cpp_sources: Any, cuda_sources: Any = None, **kwargs: Any) -> Any:
        from .inline import is_for_op_h

        own = is_for_op_h(cpp_sources, cuda_sources)
        return load_inline(
            cpp_sources=cpp_sources, cuda_sources=cuda_sources, for_torch=not own, **kwargs
        )

    return run


def called_as(torchs: Callable[..., Any], kilns: Callable[..., Any]) -> Callable[..., Any]:
    """kiln's function behind the signature of torch's: the order of positional arguments is that of
    the torch in use, which has changed (extra_sycl_cflags became the fifth of load)."""
    signature = inspect.signature(torchs)

    @functools.wraps(torchs)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            given = dict(signature.bind(*args, **kwargs).arguments)
        except TypeError:
            # kiln's own keywords (arch, defines) beside torch's.
            names = list(signature.parameters)
            given = {**dict(zip(names, args)), **kwargs}
        name = as_identifier(os.fspath(given["name"]))
        given["name"] = name
        # torch makes the folder that it is given; its own root is TORCH_EXTENSIONS_DIR.
        root = os.environ.get("TORCH_EXTENSIONS_DIR")
        if given.get("build_directory") is None and root:
            folder = Path(root) / name
            folder.mkdir(parents=True, exist_ok=True)
            given["build_directory"] = str(folder)
        return kilns(**given)

    return run
