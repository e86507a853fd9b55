# SPDX-License-Identifier: Apache-2.0
"""Which configuration does a call take, after kiln.load(..., tuned=True)? The one that `kiln tune`
found best for its shapes on its GPU; the defaults where nothing was tuned.

A configuration is a library of its own, built when the first call asks for it.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from ._argument_text import plain
from ._fakes.syntax import DTYPES
from .errors import KilnError

_NAMES = {f"torch.{torch_name}": name for name, torch_name in DTYPES.items()}


@dataclass(frozen=True)
class Entry:
    """One line of tuned.json."""

    op: str
    arguments: tuple[str, ...]
    gpu: str
    compute: str
    defines: tuple[str, ...]
    shared: tuple[str, ...] = ()  # the defines that every variant had
    arch: str = ""  # that the variants were built for

    def words(self) -> list[str]:
        """For `kiln build`: the library that was timed."""
        return [f"-D{define}" for define in (*self.shared, *self.defines)]


def tuned_file(source: Path) -> Path:
    return (
        source / "tuned.json" if source.is_dir() else source.with_name(source.stem + ".tuned.json")
    )


def read_entries(path: Path) -> list[Entry]:
    fix = "run kiln tune on a machine with the GPU; it writes the file"
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise KilnError(
            "there is no tuned configuration", f"cannot read {path}: {error.strerror}", fix
        ) from None
    except ValueError as error:
        raise KilnError(f"cannot read {path}", str(error), fix) from None
    try:
        if found["kiln_tuned"] != 1:
            raise KilnError(f"cannot read {path}", "it was written by another version of kiln", fix)
        return [
            Entry(
                e["op"],
                tuple(e["arguments"]),
                e["gpu"],
                e["compute"],
                tuple(e["defines"]),
                tuple(e.get("with", ())),
                e.get("arch", ""),
            )
            for e in found["entries"]
        ]
    except (KeyError, TypeError) as error:
        raise KilnError(
            f"cannot read {path}", f"it is not a file of kiln tune: {error}", fix
        ) from None


def kind_of(value: Any) -> Any:
    """A tensor as `bf16 32x16x512x128`; everything else is itself."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return value
    dtype = _NAMES.get(str(value.dtype), str(value.dtype))
    return f"{dtype} {'x'.join(map(str, value.shape)) or 'scalar'}"


def named(positions: list[Any], words: dict[str, Any], schema: Any) -> dict[str, Any]:
    """By the parameters' names, without those that have their defaults; {} where they do not
    fit."""
    parameters = {p.name: p for p in schema.arguments}
    if len(positions) > len(parameters) or not set(words) <= set(parameters):
        return {}
    all_values = dict(zip(parameters, positions)) | words
    kept = {}
    for name, value in all_values.items():
        parameter = parameters[name]
        if not (parameter.has_default_value() and parameter.default_value == value):
            kept[name] = value
    return kept


def entry_values(entry: Entry, schema: Any) -> dict[str, Any]:
    positions, words = [], {}
    for text in entry.arguments:
        name, equals, rest = text.partition("=")
        if equals and name.isidentifier():
            words[name] = _value(rest)
        else:
            positions.append(_value(text))
    return named(positions, words, schema)


def _value(text: str) -> Any:
    first = text.partition(" ")[0]
    return text if " " in text and first in DTYPES else plain(text)


def pick(
    entries: list[Entry], op: str, call: dict[str, Any], schema: Any, gpu: str, compute: str
) -> Optional[Entry]:
    """The entry for this call: of the same model of GPU, else of the same compute capability."""
    fitting = [e for e in entries if e.op == op and entry_values(e, schema) == call]
    for fits in (lambda e: e.gpu == gpu, lambda e: e.compute == compute):
        for entry in fitting:
            if fits(entry):
                return entry
    return None


def gpu_of(values: Iterable[Any]) -> tuple[str, str]:
    """Model and compute capability of the GPU that the first CUDA tensor is on; ("", "") where
    there is none."""
    import torch

    for value in values:
        if isinstance(value, torch.Tensor) and value.is_cuda:
            capability = torch.cuda.get_device_capability(value.device)
            return torch.cuda.get_device_name(value.device), "{}.{}".format(*capability)
    return "", ""


class TunedOp:
    """An op that takes the library of the best configuration for each call's shapes."""

    def __init__(
        self, name: str, default: Any, entries: list[Entry], variant: Callable[[Entry], Any]
    ) -> None:
        self.__name__ = name
        self.default = default
        self._entries = [entry for entry in entries if entry.op == name]
        self._variant = variant
        self._known: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<tuned {self.default!r}: {len(self._entries)} configurations>"

    def __getattr__(self, name: str) -> Any:
        # copy and pickle make an object without __init__ and ask it first: it has no default yet.
        if name == "default":
            raise AttributeError(name)
        return getattr(self.default, name)

    # Ops are shared, as functions are: a copy of a model that holds one calls the same library.
    def __copy__(self) -> TunedOp:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TunedOp:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._entries:
            return self.default(*args, **kwargs)
        key = (*map(_key, args), *((name, _key(value)) for name, value in sorted(kwargs.items())))
        op = self._known.get(key)
        if op is None:
            op = self._known[key] = self._choose(args, kwargs)
        return op(*args, **kwargs)

    def choice(self, *args: Any, **kwargs: Any) -> Optional[Entry]:
        """What a call with these arguments takes; None for the defaults."""
        gpu, compute = gpu_of((*args, *kwargs.values()))
        if not gpu:
            return None
        for overload in self.default._kiln_overloads():
            call = named(
                [kind_of(a) for a in args],
                {k: kind_of(v) for k, v in kwargs.items()},
                overload._schema,
            )
            if call:
                found = pick(self._entries, self.__name__, call, overload._schema, gpu, compute)
                if found is not None:
                    return found
        return None

    def _choose(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        entry = self.choice(*args, **kwargs)
        return self.default if entry is None else getattr(self._variant(entry), self.__name__)


def _key(value: Any) -> Any:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return value.dtype, tuple(value.shape), value.device
    return tuple(value) if isinstance(value, list) else value


def tuned_module(
    default: types.ModuleType, entries: list[Entry], build: Callable[[str, list[str], str], Any]
) -> types.ModuleType:
    """`default` with its ops replaced. build(suffix, words, arch) loads one configuration."""
    built: dict[str, Any] = {}

    def variant(entry: Entry) -> Any:
        words = entry.words()
        suffix = hashlib.sha256(" ".join([*words, entry.arch]).encode()).hexdigest()[:8]
        if suffix not in built:
            built[suffix] = build(suffix, words, entry.arch)
        return built[suffix]

    module = types.ModuleType(default.__name__, f"{default.__doc__} With the tuned configurations.")
    for name in dir(default):
        value = getattr(default, name, None)
        if hasattr(value, "_kiln_overloads"):
            module.__dict__[name] = TunedOp(name, value, entries, variant)
    module.__dict__["default"] = default
    return module
