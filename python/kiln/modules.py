# SPDX-License-Identifier: Apache-2.0
"""Which op libraries are in this process, and which module shows their ops?

Each namespace has one module; a newer build of the same origin takes its place behind the same
objects.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import types
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Callable, Optional

from ._torch import has_torch, torch_module
from .abi import Library
from .command import PACKAGE
from .errors import LoadError

Stamp = Optional[tuple[int, int, int]]


@dataclass
class Loaded:
    """One namespace of this process."""

    # A plain module, no subclass: Python finds an attribute of it 90 ns faster.
    module: types.ModuleType
    library: Library
    # what the library was made from; a second origin may not take the namespace of the first
    origin: Path
    seen: tuple[Path, Stamp]
    names: tuple[str, ...]
    again: Callable[[], types.ModuleType]


_lock = threading.RLock()
_loaded: dict[str, Loaded] = {}


def attach(
    path: Path, origin: Path, again: Callable[[], types.ModuleType], namespace: Optional[str] = None
) -> types.ModuleType:
    """Maps the library at `path` and gives its ops to torch; the module of its namespace has them
    afterwards.

    again: what module.reload() runs. namespace: of the library, where it is known before it is
    mapped.
    """
    with _lock:
        name_engine()
        if not has_torch():
            from ._callers.plain_module import plain_module

            return plain_module(path, again)
        torch_module()
        if namespace is None:
            before = next((one for one in _loaded.values() if one.origin == origin), None)
        else:
            before = _loaded.get(namespace)
            _check_owner(before, origin)
        if before is None or before.seen != (path, _stamp(path)):
            before = _replace(before, path, origin, again)
        before.again = again
        return before.module


def library_of(module: types.ModuleType) -> Optional[Library]:
    """The op library whose ops the module shows; None for an extension module of torch's kind."""
    found = _loaded.get(module.__name__)
    return found.library if found is not None and found.module is module else None


def name_engine() -> None:
    """Op libraries look for the engine here when their tensors are on the CPU."""
    engine = PACKAGE / "lib" / "libkiln_engine.so"
    if engine.is_file():
        os.environ.setdefault("KILN_ENGINE", str(engine))


def _replace(
    before: Optional[Loaded], path: Path, origin: Path, again: Callable[[], types.ModuleType]
) -> Loaded:
    seen = (path, _stamp(path))
    if before is not None and before.seen[0] == path:
        path = _copy_of(path)
    # Mapped after torch, the library registers itself, and takes the place of an earlier build if
    # the schemas agree.
    library = Library(path)
    owner = _loaded.get(library.namespace)
    try:
        _check_owner(owner, origin)
        library.register_torch()
        ops = _describe(library)
    except BaseException:
        library.unregister_torch()
        if owner is not None:
            owner.library.register_torch()
            _describe(owner.library)
        raise
    module = _new_module(library.namespace) if owner is None else owner.module
    for gone in set(() if owner is None else owner.names) - set(ops):
        module.__dict__.pop(gone, None)
    module.__dict__.update(ops, __file__=str(path))
    assert module.__spec__ is not None
    module.__spec__.origin = str(path)
    now = Loaded(module, library, origin, seen, tuple(ops), again)
    _loaded[library.namespace] = now
    return now


def _new_module(namespace: str) -> types.ModuleType:
    module = types.ModuleType(namespace, f"The ops of torch.ops.{namespace}.")
    module.__spec__ = ModuleSpec(namespace, None, origin="")
    module.__spec__.has_location = True

    def reload() -> types.ModuleType:
        """Builds again what this module was loaded from, and takes the new code if anything
        changed."""
        return _loaded[namespace].again()

    def listed() -> list[str]:
        return [*_loaded[namespace].names, "reload"]

    module.__dict__.update(reload=reload, __dir__=listed)
    return module


def _describe(library: Library) -> dict[str, Any]:
    from .op import ops_of

    return dict(ops_of(library))


def _check_owner(owner: Optional[Loaded], origin: Path) -> None:
    """Two sources with one namespace would take each other's ops away without a word."""
    if owner is None or owner.origin == origin:
        return
    raise LoadError(
        f"cannot load {origin}",
        f"the namespace '{owner.library.namespace}' belongs to {owner.origin} in this process",
        'give one of them another name, kiln.load("other_name", ["file.cu"]), or start a new '
        "process",
    )


def _stamp(path: Path) -> Stamp:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _copy_of(path: Path) -> Path:
    """dlopen gives the old library for a path it has seen: a library replaced in place is mapped
    under another name."""
    handle, name = tempfile.mkstemp(prefix=path.stem + "-", suffix=".so")
    os.close(handle)
    shutil.copyfile(path, name)
    atexit.register(lambda: Path(name).unlink(missing_ok=True))
    return Path(name)
