# SPDX-License-Identifier: Apache-2.0
"""How do the arguments of torch.utils.cpp_extension.load become flags of `kiln build`?"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from .errors import KilnError

StrPath = Union[str, "os.PathLike[str]"]
Sources = Union[StrPath, Sequence[StrPath]]


def build_flags(
    cflags: Optional[Sequence[str]],
    cuda_cflags: Optional[Sequence[str]],
    ldflags: Optional[Sequence[str]],
    include_paths: Optional[Sources],
    build_directory: Optional[StrPath],
    arch: Union[str, Sequence[str], None],
    defines: Optional[Mapping[str, Any]],
) -> list[str]:
    """The arguments of torch's load as flags of `kiln build`. torch writes its flags into one line
    for a shell, so "-Xptxas -v" is two words, and quotes are the shell's. Here a word is one
    argument with '=', so that it may begin with a dash."""
    found = []
    for flag, values in (("--cflag", cflags), ("--cuda-flag", cuda_cflags), ("--ldflag", ldflags)):
        if isinstance(values, str):
            raise TypeError(f"flags are a list of strings, not one string: {values!r}")
        found += [f"{flag}={word}" for value in values or () for word in shlex.split(str(value))]
    for path in paths(include_paths or ()):
        found += ["-I", str(path)]
    if defines is not None and not isinstance(defines, Mapping):
        raise TypeError(f'defines is a dict such as {{"BLOCK": 128}}, not {defines!r}')
    for key, value in (defines or {}).items():
        found.append(
            f"-D{key}"
            if value is None or value is True
            else f"-D{key}={int(value) if value is False else value}"
        )
    if arch is not None:
        found += ["--arch", arch if isinstance(arch, str) else ";".join(arch)]
    if build_directory is not None:
        found += ["--build-dir", os.fspath(build_directory)]
    return found


def paths(given: Sources) -> list[Path]:
    if isinstance(given, (str, os.PathLike)):
        return [Path(given)]
    return [Path(one) for one in given]


def identifier(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise KilnError(
            f"cannot use '{name}' as a name",
            "torch.ops requires an identifier: letters, digits and '_'",
        )
    return name


def as_identifier(name: str) -> str:
    """What stands for a name that torch takes and C++ does not: "my-ops" is my_ops."""
    return name if name.isidentifier() else re.sub(r"\W", "_", name)


def refuse(argument: str, value: Any, fix: str) -> None:
    if value:
        raise KilnError(
            f"kiln.load does not take {argument}={value!r}", "it has no meaning for kiln", fix
        )
