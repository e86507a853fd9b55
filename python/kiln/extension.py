# SPDX-License-Identifier: Apache-2.0
"""How does a library built from a source for torch.utils.cpp_extension get into this process? As
Python imports extension modules (PYBIND11_MODULE), or as torch loads ops (TORCH_LIBRARY)."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from ._torch import torch_module
from .demangle import demangled
from .errors import LoadError
from .modules import name_engine

# Libraries that torch is linked with, by how their functions' names begin. An extension that torch
# builds finds them whether or not it names them.
_TORCHS = re.compile(r"(cublas(?:Lt|Xt)?|cudnn|cufft|curand|cusolver|cusparse|nccl|nvrtc)", re.I)


def load_extension(path: Path, name: str, is_module: bool, headers: str = "compat") -> Any:
    """The module of PYBIND11_MODULE; of a library of ops alone torch.ops.<name>."""
    torch_module()
    name_engine()
    load = _load_module if is_module else _load_ops
    try:
        try:
            return load(path, name)
        except (ImportError, OSError) as error:
            if not _share_libraries_of_torch(str(error)):
                raise
            return load(path, name)
    except (ImportError, OSError) as error:
        raise load_error(path, str(error), headers) from None


def has_module(built: dict[str, Any]) -> bool:
    """Whether a library has PyInit_<name>: by PYBIND11_MODULE, or written by hand, in whichever
    manner."""
    if built.get("python_module", False):
        return True
    function = f"\0PyInit_{built['name']}\0".encode()
    return function in Path(built["library"]).read_bytes()


def module_in(library: Path) -> str | None:
    """The name of the Python module that a library is; None if it is none."""
    found = re.search(rb"\0PyInit_(\w+)\0", library.read_bytes())
    return found[1].decode() if found else None


def _load_ops(path: Path, name: str) -> Any:
    torch = torch_module()
    torch.ops.load_library(str(path))
    _check_registered(path)
    return getattr(torch.ops, name)


def _load_module(path: Path, name: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, str(path), loader=loader)
    assert spec is not None
    # Python enters a module of one phase into sys.modules by itself. torch's load leaves the name
    # to whom it belongs, a package that is installed perhaps.
    before = sys.modules.get(name)
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    finally:
        if before is not None:
            sys.modules[name] = before
        else:
            sys.modules.pop(name, None)
    return module


def _share_libraries_of_torch(told: str) -> bool:
    """After an undefined symbol of a library that torch has loaded: that one, and the others of the
    list, are there for everybody from now on."""
    found = re.search(r"undefined symbol: (\S+)", told)
    if found is None or not _TORCHS.match(found.group(1)):
        return False
    shared = False
    maps = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    for library in sorted(
        {fields[5] for line in maps if len(fields := line.split(maxsplit=5)) > 5}
    ):
        if _TORCHS.match(Path(library).name.removeprefix("lib")) and ".so" in library:
            ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
            shared = True
    return shared


def _check_registered(path: Path) -> None:
    """A library of the compat headers keeps why its ops could not be registered."""
    try:
        failure = ctypes.CDLL(str(path)).kiln_compat_load_failure
    except AttributeError:
        return
    failure.restype = ctypes.c_char_p
    why = failure()
    if why:
        raise load_error(path, why.decode(errors="replace"), "compat")


def load_error(path: Path, told: str, headers: str) -> LoadError:
    """The loader names a symbol as the linker does; a person wants it as the source has it, and who
    should have it."""
    own = re.fullmatch(r"error: (.*?)\n  why: (.*?)(?:\n  fix: (.*))?", told, re.DOTALL)
    if own:
        return LoadError(f"cannot load {path}: {own[1]}", own[2], own[3] or "")
    found = re.search(r"undefined symbol: (\S+)", told)
    if found is None:
        return LoadError(
            f"cannot load {path}",
            told,
            "kiln build --compat=never builds it with torch's own headers",
        )
    symbol = demangled(found.group(1))
    shown = re.sub(r"\b(at|c10|torch|pybind11)::kc::", r"\1::", symbol)
    if headers == "torch" and re.search(r"\b(?:at|c10|torch)::", symbol):
        return LoadError(
            f"cannot load {path}",
            f"it needs {shown}, which neither its sources nor torch {torch_module().__version__} "
            f"have",
            "name every source; if it was built for another torch, build it again",
        )
    why = f"it needs {shown}, and no source or library that it was built from defines that"
    if shown != symbol:
        why += (
            "; an object compiled with torch's own headers is not compatible with kiln's "
            "compat headers"
        )
    return LoadError(
        f"cannot load {path}",
        why,
        "name every source and library, or build it with kiln build --compat=never",
    )
