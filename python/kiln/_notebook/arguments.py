# SPDX-License-Identifier: Apache-2.0
"""What does a %kiln line mean? A command line of kiln, in which a cell stands for its file and a
tensor of the notebook for its values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import KilnError
from .cells import Cell
from .run import help_of, unknown_command

_FILE = re.compile(r"\.(?:cu|so(?:\.\d+)*|py|o|a|cubin|fatbin|ptx|whl)$")
_DEFINE = ("-D", "--define")
_OWN_OUTPUT = ("--html", "--json", "--help", "-h")


def words_of(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise KilnError("cannot read this line", str(error), "close every quote") from None


def command_of(word: str) -> str:
    """The word, if it is a command."""
    if not help_of(word):
        raise unknown_command(word)
    return word


def with_cell(words: Sequence[str], cells: Mapping[str, Cell], now: Cell) -> list[str]:
    """The words of a command, with the file of a cell where a target is missing: the cell that
    defines the op they name, else `now`. Its build options follow the command."""
    command, rest = words[0], list(words[1:])
    takes = help_of(command)
    usage = takes[takes.index("Usage:") :].partition("\n")[0]
    if "TARGET" not in usage or "--define" not in takes:
        return [command, *rest]
    before = rest[: rest.index("--")] if "--" in rest else rest
    if any(_FILE.search(word) or Path(word).is_dir() for word in before):
        return [command, *rest]
    at = next((index for index, word in enumerate(before) if word in cells), None)
    cell = now if at is None else cells[rest[at]]
    if at is not None and usage.endswith(("TARGET", "TARGET...", "TARGET]", "TARGET...]")):
        del rest[at]  # an op says which cell; the command takes no op
    rest.insert(at or 0, str(cell.path))
    return [command, *build_words(cell, takes, defined_in(before)), *rest]


def build_words(cell: Cell, takes: str, defined: Collection[str] = ()) -> list[str]:
    """Headers next to the notebook are found. A define of the cell gives way to one of the line."""
    name = ["--name", cell.name] if "--name NAME" in takes else []
    flags: list[str] = []
    rest = list(cell.flags)
    while rest:
        width = 2 if rest[0] in _DEFINE else 1
        if not defined_in(rest[:width]) & set(defined):
            flags += rest[:width]
        del rest[:width]
    return [*name, "-I", str(Path.cwd()), *flags]


def defined_in(words: Sequence[str]) -> set[str]:
    """The names of -D NAME=VALUE, -DNAME and --define NAME."""
    found = set()
    for word, following in zip(words, [*words[1:], ""]):
        if word in _DEFINE:
            found.add(following.partition("=")[0])
        elif match := re.match(r"(?:-D|--define=)(\w+)", word):
            found.add(match[1])
    return found


def with_page(words: Sequence[str], page: Path) -> list[str]:
    """Asks for the command's page, if it has one and the line asks for no form of its own."""
    if "--html FILE" not in help_of(words[0]) or any(word in _OWN_OUTPUT for word in words):
        return list(words)
    return [words[0], "--html", str(page), *words[1:]]


def with_tensors(words: Sequence[str], names: Mapping[str, Any], folder: Path) -> list[str]:
    """A word that is the name of a tensor or array in the notebook becomes a file of its values."""
    return [_saved(word, names.get(word), folder) for word in words]


def _saved(word: str, value: Any, folder: Path) -> str:
    kind = f"{type(value).__module__}.{type(value).__name__}"
    if kind not in ("torch.Tensor", "torch.nn.parameter.Parameter", "numpy.ndarray"):
        return word
    import numpy

    path = folder / f"{word}.npy"
    numpy.save(path, value if kind == "numpy.ndarray" else _array(value, word))
    return str(path)


def _array(tensor: Any, word: str) -> Any:
    """numpy has no bf16: its bytes, under the name that kiln call reads them by."""
    import torch

    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view("V2")
    try:
        return tensor.numpy()
    except TypeError:
        raise KilnError(
            f"cannot pass the tensor '{word}'", f"numpy has no {tensor.dtype}",
            "name its values: randn:f8e4m3:64x64",
        ) from None  # fmt: skip
