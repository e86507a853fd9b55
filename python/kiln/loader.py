# SPDX-License-Identifier: Apache-2.0
"""How does a source, a project or a library become a module of ops? `kiln build` makes a library,
which is attached."""

from __future__ import annotations

import os
import re
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from ._flags import Sources, StrPath, build_flags, identifier, paths, refuse
from .command import build
from .errors import BuildError, KilnError, LoadError
from .extension import has_module, load_extension, module_in
from .modules import attach


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
    tuned: Union[bool, StrPath] = False,
    extra_sycl_cflags: Optional[Sequence[str]] = None,
    with_sycl: Optional[bool] = None,
) -> Any:
    """The ops of a .cu file, a project folder or a built library, as a module.

    kiln.load("add.cu"), kiln.load("folder"), kiln.load("libadd.so"), or the arguments of
    torch.utils.cpp_extension.load: kiln.load("add", ["add.cu"], extra_cuda_cflags=["-O3"]).

    arch: "9.0", "8.0;9.0a" or a list; else kiln.toml, TORCH_CUDA_ARCH_LIST, the GPU present, or the
    portable default. defines: {"BLOCK": 128} becomes -DBLOCK=128.
    tuned: each call takes the configuration that `kiln tune` found best for its shapes and its GPU:
    tuned.json next to the source, or the file named here. With is_python_module=False the ops are
    only registered, as torch.ops.

    Loading again after an edit puts the new code in the place of the old, for every holder of the
    module.
    """
    if is_standalone and is_python_module:
        raise ValueError(
            "`is_python_module` and `is_standalone` are mutually exclusive."
        )  # torch's words
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(
            f"kiln.load takes the path of a .cu file, project or library, not {name!r}; several "
            'sources need a name: kiln.load("name", ["a.cu", "b.cu"])'
        )
    refuse("is_standalone", is_standalone, "kiln run FILE.cu builds and runs a program")
    refuse("with_sycl", with_sycl or extra_sycl_cflags, "kiln is for CUDA")
    _check_with_cuda(with_cuda, paths(sources or ()))
    # keep_intermediates needs no action: build folders are always kept, as torch keeps them.
    flags = build_flags(
        extra_cflags,
        extra_cuda_cflags,
        extra_ldflags,
        extra_include_paths,
        build_directory,
        arch,
        defines,
    )
    ready = _ready_library(name, sources)
    if tuned and (ready is not None or sources is not None or build_directory is not None):
        raise KilnError(
            "kiln.load takes tuned=True only with a .cu file or a project",
            "each configuration is built from that one source, in a folder of its own",
        )
    if ready is not None:
        if flags:
            raise KilnError(
                f"cannot load {ready}",
                f"it is already built, and {flags[0]} is for a build",
                "leave it out",
            )
        inputs, origin = [], ready
    elif sources is None:
        inputs, origin = [os.fspath(name)], Path(name).resolve()
        _check_input(Path(name))
    else:
        files = paths(sources)
        for file in files:
            _check_input(file)
        inputs = [*map(str, files), "--name", identifier(os.fspath(name))]
        origin = files[0].resolve()

    libraries: list[str] = []

    def again() -> types.ModuleType:
        if ready is not None:
            try:
                return attach(ready, origin, again)
            except LoadError:
                # A built extension: its functions come from PYBIND11_MODULE.
                extension = module_in(ready)
                if extension is None:
                    raise
                return load_extension(ready, extension, True)
        built = build([*inputs, *flags], verbose=verbose)
        if built.get("headers"):  # a source for torch.utils.cpp_extension
            libraries.append(built["library"])
            wants_module = is_python_module and has_module(built)
            return load_extension(
                Path(built["library"]), built["name"], wants_module, built["headers"]
            )
        return attach(Path(built["library"]), origin, again, built.get("name"))

    module = again()
    if tuned:
        module = _with_tuned(module, inputs[0], origin, flags, tuned, verbose)
    if is_python_module:
        return module
    # As torch does: the path of what was loaded.
    return libraries[-1] if libraries else None


def _with_tuned(
    module: Any, source: str, origin: Path, flags: list[str], tuned: Any, verbose: bool
) -> Any:
    from .tuned import read_entries, tuned_file, tuned_module

    def variant(suffix: str, defines: list[str], arch: str) -> types.ModuleType:
        name = f"{module.__name__}_tuned_{suffix}"
        words = [source, *flags, "--name", name, *defines]
        if arch and "--arch" not in flags:
            words += ["--arch", arch]
        if origin.is_dir():
            words += ["--build-dir", str(origin / "build" / "kiln" / f"tuned-{suffix}")]
        built = build(words, verbose=verbose)
        return attach(
            Path(built["library"]), origin / suffix, lambda: variant(suffix, defines, arch), name
        )

    path = tuned_file(origin) if tuned is True else Path(tuned)
    return tuned_module(module, read_entries(path), variant)


def _check_with_cuda(with_cuda: Optional[bool], files: Sequence[Path]) -> None:
    """True and None need no action: a .cu goes to nvcc, and C++ sources find CUDA's headers
    anyway."""
    kernels = [file for file in files if file.suffix == ".cu"]
    if with_cuda is False and kernels:
        raise KilnError(
            "kiln.load does not take with_cuda=False here",
            f"{kernels[0]} is for nvcc",
            "leave out the file or with_cuda",
        )


def _ready_library(name: StrPath, sources: Optional[Sources]) -> Optional[Path]:
    text = os.fspath(name)
    if sources is not None or not re.search(r"\.so(\.\d+)*$", text):
        return None
    return Path(text).resolve()


def _check_input(path: Path) -> None:
    if not path.exists():
        raise BuildError(
            f"cannot build {path}", "there is no such file or folder", "check the path", fault=2
        )
