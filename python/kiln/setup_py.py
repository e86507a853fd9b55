# SPDX-License-Identifier: Apache-2.0
"""How does an unchanged setup.py build with kiln? By torch's own names, CUDAExtension, CppExtension
and BuildExtension, which hand sources and flags to `kiln build` and put its library where
setuptools wants the module."""

from __future__ import annotations

import copy
import os
import shlex
import shutil
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

from ._flags import identifier
from .command import build
from .errors import KilnError

# `kiln build` compiles these; an extension that has others (.c, .pyx) is left to setuptools.
_ENDINGS = (".cu", ".cpp", ".cc", ".cxx", ".c++")
# As torch has it: the oldest Python of torch 2.11.
_LIMITED_API = "0x030A0000"


class ExtensionError(KilnError, CompileError):
    """A KilnError that setuptools knows: it prints the text behind its own "error: " instead of a
    traceback, and goes on without an extension that is optional."""

    def __init__(self, error: KilnError) -> None:
        super().__init__(error.what, error.why, error.fix)
        self.text = str(error)

    def __str__(self) -> str:
        return self.text.removeprefix("error: ")


def CUDAExtension(  # noqa: N802
    name: str, sources: Iterable[Any], *args: Any, **kwargs: Any
) -> Extension:
    """torch.utils.cpp_extension.CUDAExtension: a setuptools.Extension whose sources may be .cu
    files.

    extra_compile_args: a list for all sources, or {"cxx": [...], "nvcc": [...]}. Include folders
    and libraries of torch and CUDA are not listed: `kiln build` knows which a source needs.
    py_limited_api=True: the module is named .abi3.so, for one Python and all later ones.
    """
    if kwargs.pop("dlink", False) or kwargs.pop("dlink_libraries", None):
        raise KilnError(
            f"cannot build the extension {name} with dlink",
            "kiln does not link device code of several objects",
            "#include the .cu files that call each other's device functions into one, or use "
            "torch's CUDAExtension",
        )
    kwargs.setdefault("language", "c++")
    return Extension(name, [os.fspath(source) for source in sources], *args, **kwargs)


def CppExtension(  # noqa: N802
    name: str, sources: Iterable[Any], *args: Any, **kwargs: Any
) -> Extension:
    """torch.utils.cpp_extension.CppExtension: the same, for C++ sources."""
    return CUDAExtension(name, sources, *args, **kwargs)


class BuildExtension(build_ext):
    """torch.utils.cpp_extension.BuildExtension: cmdclass={"build_ext": BuildExtension}, or
    .with_options(...)."""

    options: ClassVar[dict[str, Any]] = {}

    @classmethod
    def with_options(cls, **options: Any) -> type:
        """A class with these options. no_python_abi_suffix: ext.so, not ext.cpython-311-....so.
        Always with Ninja."""
        return type(cls.__name__, (cls,), {"options": {**cls.options, **options}})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = {**self.options, **kwargs}
        own = ("no_python_abi_suffix", "use_ninja")
        super().__init__(*args, **{key: kwargs[key] for key in kwargs if key not in own})
        # Subclasses read both; torch's names.
        self.no_python_abi_suffix = bool(given.get("no_python_abi_suffix", False))
        self.use_ninja = bool(given.get("use_ninja", True))

    def _check_abi(self) -> tuple[str, Any]:
        """The host compiler and its version; torch's subclasses call it. `kiln build` checks it."""
        from torch.torch_version import TorchVersion
        from torch.utils import cpp_extension

        return cpp_extension.get_cxx_compiler(), TorchVersion("0.0.0")

    def build_extension(self, ext: Extension) -> None:
        try:
            self._build(ext)
        except KilnError as error:
            raise ExtensionError(error) from None

    def _build(self, ext: Extension) -> None:
        if not ext.sources:
            raise KilnError(
                f"cannot build the extension {ext.name}",
                "it has no sources",
                "sources=[...] in setup.py",
            )
        if not any(str(source).endswith(_ENDINGS) for source in ext.sources):
            super().build_extension(ext)
            return
        folder = Path(self.build_temp).resolve() / f"kiln-{ext.name}"
        sources = [_as_cpp(source, folder) for source in ext.sources]
        words = [*sources, "--name", identifier(ext.name.rpartition(".")[2]), *flags_of(ext)]
        words += ["--build-dir", str(folder)]
        built = build(words, verbose=bool(self.verbose) and self.verbose > 1)
        headers = {"compat": "kiln's compat headers", "torch": "torch's own headers"}.get(
            built.get("headers", ""), "kiln/op.h"
        )
        print(
            f"kiln: {ext.name}: built with {headers} in {built.get('seconds', 0.0):.1f} s",
            flush=True,
        )
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        # Next to it, then in its place: a process with the old module open keeps what it mapped.
        fresh = target.with_name(target.name + ".new")
        shutil.copyfile(built["library"], fresh)
        shutil.copymode(built["library"], fresh)
        fresh.replace(target)

    def get_ext_filename(self, fullname: str) -> str:
        name = super().get_ext_filename(fullname)
        if not self.no_python_abi_suffix:
            return name
        stem, suffix = name.rsplit(os.sep, 1)[-1].split(".", 1)[0], name.rsplit(".", 1)[-1]
        return str(Path(name).with_name(f"{stem}.{suffix}"))


def flags_of(ext: Extension) -> list[str]:
    """The fields of a setuptools.Extension as flags of `kiln build`."""
    given = copy.copy(ext.extra_compile_args) or []
    # Keys of other compilers (hipcc, sycl, nvcc_dlink) have no source here, as with torch.
    both = {"cxx": given, "nvcc": given} if not isinstance(given, dict) else given
    found = [f"--cflag={flag}" for flag in [*_python_flags(), *both.get("cxx", ())]]
    found += [f"--cuda-flag={flag}" for flag in both.get("nvcc", ())]
    named = [
        *both.get("cxx", ()),
        *both.get("nvcc", ()),
        *(f"-D{key}" for key, _ in ext.define_macros or ()),
    ]
    if ext.py_limited_api and not any("Py_LIMITED_API" in flag for flag in named):
        found.append(f"-DPy_LIMITED_API={_LIMITED_API}")
    for folder in ext.include_dirs or ():
        found += ["-I", os.fspath(folder)]
    for key, value in ext.define_macros or ():
        found.append(f"-D{key}" if value is None else f"-D{key}={value}")
    for key in ext.undef_macros or ():
        found += [f"--cflag=-U{key}", f"--cuda-flag=-U{key}"]
    linked = [f"-L{folder}" for folder in ext.library_dirs or ()]
    linked += [f"-Wl,-rpath,{folder}" for folder in ext.runtime_library_dirs or ()]
    linked += [os.fspath(object_file) for object_file in ext.extra_objects or ()]
    linked += [f"-l{name}" for name in ext.libraries or ()]
    linked += list(ext.extra_link_args or ())
    linked += shlex.split(os.environ.get("LDFLAGS", ""))
    return found + [f"--ldflag={flag}" for flag in linked]


def _python_flags() -> list[str]:
    """What setuptools adds for C++ sources: assert() is off if Python was built so, its level of
    optimization, and the user's own flags of the environment."""
    built = shlex.split(sysconfig.get_config_var("CFLAGS") or "")
    found = ["-DNDEBUG"] if "-DNDEBUG" in built else []
    found += [flag for flag in built if flag.startswith("-O")][-1:]
    for name in ("CFLAGS", "CPPFLAGS"):
        found += shlex.split(os.environ.get(name, ""))
    return found


def _as_cpp(source: Any, folder: Path) -> str:
    """torch compiles .c files of an extension as C++."""
    path = Path(source)
    if path.suffix != ".c":
        return os.fspath(source)
    stand_in = folder / "c" / f"{path.stem}.c.cpp"
    stand_in.parent.mkdir(parents=True, exist_ok=True)
    stand_in.write_text(f'#include "{path.resolve()}"\n', encoding="utf-8")
    return str(stand_in)
