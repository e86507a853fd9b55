# SPDX-License-Identifier: Apache-2.0
"""How does a library built from a source for torch.utils.cpp_extension get into this process? As Python imports
extension modules (PYBIND11_MODULE), or as torch loads ops (TORCH_LIBRARY)."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from typing import Any

from ._torch import torch_module
from .errors import LoadError
from .modules import name_engine


def load_extension(path: Path, name: str, is_module: bool) -> Any:
    """The module of PYBIND11_MODULE; of a library of ops alone torch.ops.<name>."""
    torch = torch_module()
    name_engine()
    if not is_module:
        try:
            torch.ops.load_library(str(path))
        except OSError as error:
            raise LoadError(f"cannot load {path}", str(error), "build it with kiln build --compat=never") from None
        return getattr(torch.ops, name)
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, str(path), loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
    except ImportError as error:
        raise LoadError(
            f"cannot load {path}",
            str(error),
            "name every source of the extension, or build it with kiln build --compat=never",
        ) from None
    loader.exec_module(module)
    sys.modules[name] = module
    return module
