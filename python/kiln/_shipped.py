# SPDX-License-Identifier: Apache-2.0
"""How does an installed package of ops load its library? `kiln wheel` puts a copy of this file, and
of those it imports, into the wheel: who installs that needs no kiln."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from ._torch import torch_module
from .abi import Library
from .op import Op, ops_of


def attach(path: Path) -> dict[str, Op]:
    """The ops of the library at `path`, registered with torch."""
    torch_module()
    _name_engine()
    library = Library(path)
    library.register_torch()
    return ops_of(library)


def _name_engine() -> None:
    """CPU tensors run on the engine of the package kiln-cuda, where that is installed: found, not
    imported."""
    if os.environ.get("KILN_ENGINE"):
        return
    try:
        spec = importlib.util.find_spec("kiln")
    except (ImportError, ValueError):
        return
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        engine = Path(folder) / "lib" / "libkiln_engine.so"
        if engine.is_file():
            os.environ["KILN_ENGINE"] = str(engine)
            return
