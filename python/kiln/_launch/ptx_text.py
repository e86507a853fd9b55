# SPDX-License-Identifier: Apache-2.0
"""Which kernels does a PTX text define, and which parameters do they take?

The declarations decide how an argument is passed: PTX knows widths and kinds of numbers, nothing
of the source's types. So only the headers of kernels are read here; whether the bodies are valid
is for the engine or the driver to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional

from ..errors import KilnError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$%.]+)\s*(\(([^)]*)\))?")
_TARGET = re.compile(r"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_PARAMETER = re.compile(
    r"\.param\s+(?P<words>(?:\.\w+\s+|\d+\s+)*)(?P<name>[\w$%]+)\s*"
    r"(?P<array>(?:\[\s*\d*\s*\]\s*)*)$"
)
_KINDS = {"u": "integer", "s": "integer", "b": "bits", "f": "float"}


@dataclass(frozen=True)
class Parameter:
    """One `.param` of a kernel. `count` is 0 for a plain number, else the elements of an array,
    which is how structs are passed."""

    name: str
    type: str
    count: int
    is_pointer: bool

    @property
    def bytes(self) -> int:
        return int(self.type[1:]) // 8 * (self.count or 1)

    @property
    def kind(self) -> str:
        return "struct" if self.count else _KINDS[self.type[0]]

    def __str__(self) -> str:
        array = f"[{self.count}]" if self.count else ""
        return f".{self.type}{' .ptr' if self.is_pointer else ''}{array}"


@dataclass(frozen=True)
class Entry:
    name: str
    short_name: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class PtxText:
    text: str
    arch: int
    variant: str
    entries: tuple[Entry, ...]


def read_ptx(text: str, origin: str) -> PtxText:
    """The kernels of a PTX text; `origin` names it in errors."""
    plain = _COMMENT.sub(" ", text)
    target = _TARGET.search(plain)
    if target is None or ".version" not in plain:
        raise KilnError(
            f"cannot read {origin}",
            "it is not PTX: it has no .version and .target line",
            "PTX comes from nvcc -ptx, nvrtcGetPTX, numba.cuda.compile_ptx or "
            'kernel.asm["ptx"] of Triton',
        )
    entries = tuple(
        Entry(match[1], short_name(match[1]), _parameters(match[1], match[3] or "", origin))
        for match in _ENTRY.finditer(plain)
    )
    if not entries:
        raise KilnError(
            f"cannot launch anything of {origin}",
            "its PTX has no .entry: it contains device functions only",
            'declare the kernel as extern "C" __global__, or compile it as a kernel '
            "(numba.cuda.compile_ptx with device=False)",
        )
    return PtxText(text, int(target[1]), target[2], entries)


def _parameters(kernel: str, text: str, origin: str) -> tuple[Parameter, ...]:
    found = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        parameter = _parameter(part)
        if parameter is None:
            raise KilnError(
                f"cannot read {origin}", f"unknown form of a parameter of {kernel}: {part}"
            )
        found.append(parameter)
    return tuple(found)


def _parameter(text: str) -> Optional[Parameter]:
    match = _PARAMETER.match(" ".join(text.split()))
    if match is None:
        return None
    words = match["words"].split()
    types = [word[1:] for word in words if re.fullmatch(r"\.[usbf](8|16|32|64|128)", word)]
    if len(types) != 1:
        return None
    count = 0
    for length in re.findall(r"\[\s*(\d*)\s*\]", match["array"]):
        if not length:
            return None
        count = (count or 1) * int(length)
    return Parameter(match["name"], types[0], count, ".ptr" in words)


def short_name(name: str) -> str:
    """`add` of `_Z3addPfS_i` and `_ZN3abc3addIfEEvPT_`; any other name as it is.

    Names of kernels only: operators and the like stay mangled.
    """
    at = 3 if name.startswith("_ZN") else 2
    if not name.startswith("_Z"):
        return name
    found = name
    while True:
        length = re.compile(r"\d+").match(name, at)
        if length is None:
            return found
        begin = length.end()
        at = begin + int(length[0])
        found = name[begin:at]
        if not name.startswith("_ZN"):
            return found
