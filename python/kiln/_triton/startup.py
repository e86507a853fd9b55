# SPDX-License-Identifier: Apache-2.0
"""How does KILN_TRITON=1 reach a script that does not import kiln? When it imports triton,
kiln.triton is imported after it. Nothing happens before that, since triton takes long to import.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Optional


class _AfterTriton(importlib.abc.MetaPathFinder):
    """Finds triton where it is, and has more done once it is imported."""

    def find_spec(
        self, name: str, _path: Optional[Sequence[str]] = None, _target: Optional[ModuleType] = None
    ) -> Any:
        if name != "triton" or self not in sys.meta_path:
            return None
        # Finding is not importing: torch from 2.15 on asks whether there is a triton first.
        place = sys.meta_path.index(self)
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(place, self)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[arg-type]
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> Optional[ModuleType]:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _AfterTriton)]
        self._loader.exec_module(module)
        importlib.import_module("kiln.triton")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def install() -> None:
    """For KILN_TRITON=1; any other value leaves Triton as it is."""
    if os.environ.get("KILN_TRITON") != "1":
        return
    if "triton" in sys.modules:
        importlib.import_module("kiln.triton")
    elif not any(isinstance(one, _AfterTriton) for one in sys.meta_path):
        sys.meta_path.insert(0, _AfterTriton())
