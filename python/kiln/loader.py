# SPDX-License-Identifier: Apache-2.0
"""How does a source, a project or a library become a module of ops? Build it, map it, register it, describe it."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import threading
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable, Optional, Union

from ._torch import torch_module
from .abi import Library
from .command import PACKAGE, build
from .errors import BuildError, KilnError, LoadError

StrPath = Union[str, "os.PathLike[str]"]
Sources = Union[StrPath, Sequence[StrPath]]

# Headers whose presence means a source for torch.utils.cpp_extension.
_TORCH_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]((?:torch|ATen|c10|pybind11)/[^>"]+)[>"]', re.MULTILINE)

_lock = threading.RLock()
_modules: dict[str, Module] = {}


class Module(types.ModuleType):
    """The ops of one library as attributes. One object a namespace: a reload changes it in place."""

    def __init__(self, namespace: str) -> None:
        super().__init__(namespace, f"The ops of torch.ops.{namespace}.")
        self.__dict__.update(_kiln_ops=(), _kiln_library=None, _kiln_origin=None, _kiln_again=None, _kiln_seen=None)

    def reload(self) -> Module:
        """Builds again what this module was loaded from, and takes the new code if anything changed."""
        again: Optional[Callable[[], Module]] = self.__dict__["_kiln_again"]
        if again is None:
            raise KilnError(f"cannot reload {self.__name__}", "nothing was loaded yet")
        return again()

    def __repr__(self) -> str:
        return f"<kiln module {self.__name__} from {self.__dict__.get('__file__')}>"

    def __dir__(self) -> list[str]:
        return [*self.__dict__["_kiln_ops"], "reload"]


def load(
    name: StrPath,
    sources: Optional[Sources] = None,
    extra_cflags: Optional[Sequence[str]] = None,
    extra_cuda_cflags: Optional[Sequence[str]] = None,
    extra_ldflags: Optional[Sequence[str]] = None,
    extra_include_paths: Optional[Sources] = None,
    build_directory: Optional[StrPath] = None,
    verbose: bool = False,
    with_cuda: Optional[bool] = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
    *,
    arch: Union[str, Sequence[str], None] = None,
    defines: Optional[Mapping[str, Any]] = None,
    extra_sycl_cflags: Optional[Sequence[str]] = None,
    with_sycl: Optional[bool] = None,
) -> Any:
    """The ops of a .cu file, a project folder or a built library, as a module.

    kiln.load("add.cu"), kiln.load("folder"), kiln.load("libadd.so"), or the arguments of
    torch.utils.cpp_extension.load: kiln.load("add", ["add.cu"], extra_cuda_cflags=["-O3"]).

    arch: "9.0", "8.0;9.0a" or a list; else kiln.toml, TORCH_CUDA_ARCH_LIST, the GPU present, or the portable default.
    defines: {"BLOCK": 128} becomes -DBLOCK=128. With is_python_module=False the ops are only registered, as torch.ops.

    Loading again after an edit puts the new code in the place of the old, for every holder of the module.
    """
    _refuse("is_standalone", is_standalone, "kiln run FILE.cu builds and runs a program")
    _refuse("with_sycl", with_sycl or extra_sycl_cflags, "kiln is for CUDA")
    # with_cuda and keep_intermediates need no action: nvcc compiles every source, and build folders are always kept.
    flags = _flags(extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory, arch, defines)
    ready = _ready_library(name, sources)
    if ready is not None:
        if flags:
            raise KilnError(
                f"cannot load {ready}", f"it is built already, and {flags[0]} is for a build", "leave it out"
            )
        inputs, origin = [], ready
    elif sources is None:
        inputs, origin = [os.fspath(name)], Path(name).resolve()
        _check_input(Path(name))
    else:
        files = _paths(sources)
        for file in files:
            _check_input(file)
        inputs = [*map(str, files), "--name", _identifier(os.fspath(name))]
        origin = files[0].resolve()

    def again() -> Module:
        if ready is not None:
            return attach(ready, origin, again)
        built = build([*inputs, *flags], verbose=verbose)
        return attach(Path(built["library"]), origin, again, built.get("name"))

    module = again()
    return module if is_python_module else None


def attach(path: Path, origin: Path, again: Callable[[], Module], namespace: Optional[str] = None) -> Module:
    """Maps the library at `path` and gives its ops to torch; the module of its namespace has them afterwards.

    origin: what it was made from; a second origin may not take the namespace of the first.
    """
    with _lock:
        torch_module()
        _name_engine()
        if namespace is None:
            before = next((module for module in _modules.values() if module._kiln_origin == origin), None)
        else:
            before = _modules.get(namespace)
            _check_owner(before, origin)
        if before is not None and before._kiln_seen == (path, _stamp(path)):
            before.__dict__["_kiln_again"] = again
            return before
        return _replace(before, path, origin, again)


def _replace(before: Optional[Module], path: Path, origin: Path, again: Callable[[], Module]) -> Module:
    from .op import op_named

    seen = (path, _stamp(path))
    if before is not None and before._kiln_seen[0] == path:
        path = _copy_of(path)
    # Mapped after torch, the library registers itself, and takes the place of an earlier build if the schemas agree.
    library = Library(path)
    owner = _modules.get(library.namespace)
    try:
        _check_owner(owner, origin)
        library.register_torch()
        ops = _describe(library, op_named)
    except BaseException:
        library.unregister_torch()
        if owner is not None:
            owner._kiln_library.register_torch()
            _describe(owner._kiln_library, op_named)
        raise
    module = before or Module(library.namespace)
    for gone in set(module._kiln_ops) - set(ops):
        module.__dict__.pop(gone, None)
    module.__dict__.update(
        ops, __file__=str(path), _kiln_ops=tuple(ops), _kiln_library=library, _kiln_origin=origin, _kiln_again=again,
        _kiln_seen=seen,
    )  # fmt: skip
    _modules[library.namespace] = module
    return module


def _describe(library: Library, op_named: Callable[[str, str], Any]) -> dict[str, Any]:
    names = list(dict.fromkeys(record.name for record in library.ops))
    ops = {name: op_named(library.namespace, name) for name in names}
    for name, op in ops.items():
        op._kiln_describe([record for record in library.ops if record.name == name])
    return ops


def _check_owner(owner: Optional[Module], origin: Path) -> None:
    """Two sources with one namespace would take each other's ops away without a word."""
    if owner is None or owner._kiln_origin == origin:
        return
    raise LoadError(
        f"cannot load {origin}",
        f"the namespace '{owner.__name__}' belongs to {owner._kiln_origin} in this process",
        'give one of them another name, kiln.load("other_name", ["file.cu"]), or start a new process',
    )


def _stamp(path: Path) -> Optional[tuple[int, int, int]]:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _copy_of(path: Path) -> Path:
    """dlopen gives the old library for a path it has seen: a library replaced in place is mapped under another name."""
    handle, name = tempfile.mkstemp(prefix=path.stem + "-", suffix=".so")
    os.close(handle)
    shutil.copyfile(path, name)
    atexit.register(lambda: Path(name).unlink(missing_ok=True))
    return Path(name)


def _name_engine() -> None:
    """Op libraries look for the engine here when their tensors are on the CPU."""
    engine = PACKAGE / "lib" / "libkiln_engine.so"
    if engine.is_file():
        os.environ.setdefault("KILN_ENGINE", str(engine))


def _ready_library(name: StrPath, sources: Optional[Sources]) -> Optional[Path]:
    text = os.fspath(name)
    if sources is not None or not re.search(r"\.so(\.\d+)*$", text):
        return None
    return Path(text).resolve()


def _check_input(path: Path) -> None:
    if not path.exists():
        raise BuildError(f"cannot build {path}", "there is no such file or folder", fault=2)
    if path.is_dir():
        return
    refuse_torch_headers(path.read_text(encoding="utf-8", errors="replace"), str(path))


def refuse_torch_headers(source: str, name: str) -> None:
    match = _TORCH_INCLUDE.search(source)
    if match is None:
        return
    line = source.count("\n", 0, match.start()) + 1
    raise BuildError(
        f"cannot build {name}",
        f"line {line} includes {match.group(1)}: sources written against torch's headers are not supported yet",
        "write the op with kiln/op.h (docs/guide/python.md), or use torch.utils.cpp_extension for this one",
        fault=2,
    )


def _flags(
    cflags: Optional[Sequence[str]],
    cuda_cflags: Optional[Sequence[str]],
    ldflags: Optional[Sequence[str]],
    include_paths: Optional[Sources],
    build_directory: Optional[StrPath],
    arch: Union[str, Sequence[str], None],
    defines: Optional[Mapping[str, Any]],
) -> list[str]:
    """The arguments of torch's load as flags of `kiln build`. A flag is one word with '=', so that its value may begin
    with a dash."""
    found = []
    for flag, values in (("--cflag", cflags), ("--cuda-flag", cuda_cflags), ("--ldflag", ldflags)):
        if isinstance(values, str):
            raise TypeError(f"flags are a list of strings, not one string: {values!r}")
        found += [f"{flag}={value}" for value in values or ()]
    for path in _paths(include_paths or ()):
        found += ["-I", str(path)]
    for key, value in (defines or {}).items():
        found.append(
            f"-D{key}" if value is None or value is True else f"-D{key}={int(value) if value is False else value}"
        )
    if arch is not None:
        found += ["--arch", arch if isinstance(arch, str) else ";".join(arch)]
    if build_directory is not None:
        found += ["--build-dir", os.fspath(build_directory)]
    return found


def _paths(given: Sources) -> list[Path]:
    if isinstance(given, (str, os.PathLike)):
        return [Path(given)]
    return [Path(one) for one in given]


def _identifier(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise KilnError(f"cannot use '{name}' as a name", "torch.ops wants an identifier: letters, digits and '_'")
    return name


def _refuse(argument: str, value: Any, fix: str) -> None:
    if value:
        raise KilnError(f"kiln.load does not take {argument}={value!r}", "it has no meaning for kiln", fix)
