# SPDX-License-Identifier: Apache-2.0
"""What does kiln.load return where torch is not installed? A module of ops that take arrays of
NumPy, CuPy, JAX or any producer of DLPack.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, Callable

from ..abi import Library, OpRecord
from .arrays import caller_of


# One op with its overloads. Call it with arrays; out=array has the result written there.
class ArrayOp:
    # Python calls what this slot holds, the C function, with no frame between.
    __slots__ = ("__call__", "__doc__", "__name__", "_library", "_records")

    def __init__(self, library: Library, name: str) -> None:
        self._library, self.__name__ = library, name
        self._records: list[OpRecord] = [op for op in library.ops if op.name == name]
        self.__call__ = caller_of(library, name)  # type: ignore[method-assign]
        self.__doc__ = "\n\n".join(
            "\n\n".join(
                part for part in (op.schema, op.doc, f"Source: {op.file}:{op.line}") if part
            )
            for op in self._records
        )

    def __repr__(self) -> str:
        return f"<kiln op {self._library.namespace}.{self.__name__}>"

    @property
    def schemas(self) -> tuple[str, ...]:
        return tuple(f"{self._library.namespace}::{op.schema}" for op in self._records)

    @property
    def schema(self) -> str:
        """The schema; of an op with several overloads, one per line."""
        return "\n".join(self.schemas)


def plain_module(path: Path, again: Callable[[], types.ModuleType]) -> types.ModuleType:
    library = Library(path)
    module = types.ModuleType(library.namespace, f"The ops of {library.namespace}.")
    names = list(dict.fromkeys(op.name for op in library.ops))

    def reload() -> types.ModuleType:
        """Builds again what this module was loaded from, and takes the new code."""
        fresh: Any = again()
        module.__dict__.update({name: getattr(fresh, name) for name in names})
        return module

    module.__dict__.update({name: ArrayOp(library, name) for name in names}, __file__=str(path))
    module.__dict__.update(reload=reload, __dir__=lambda: [*names, "reload"])
    return module
