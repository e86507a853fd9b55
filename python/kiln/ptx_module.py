# SPDX-License-Identifier: Apache-2.0
"""How is a kernel called of which only the PTX is there? kiln.ptx(text) gives its kernels as
callables: module.kernel[grid, block, shared](*arguments).

CPU memory (torch tensors, NumPy arrays) runs on the engine, CUDA memory on the GPU.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional, Union

from ._launch.arguments import Packed, pack
from ._launch.on_engine import Configuration, EngineModule, Size
from ._launch.on_gpu import GpuModule
from ._launch.ptx_text import Entry, PtxText, read_ptx
from .errors import KilnError

Length = Union[int, Sequence[int]]

_FROM_PTX = "ask the compiler for PTX: nvcc -ptx, nvrtcGetPTX; or: kiln inspect --ptx FILE"


def ptx(source: Any) -> PtxModule:
    """The kernels of a PTX text, as callables.

    source: the text (str or bytes), the path of a file, or what a compiler returned: an object
    with `.asm["ptx"]` (Triton), with `.code` (cuda.core), or (text, type) of Numba.

        module = kiln.ptx("add.ptx")
        module.add[blocks, threads](x, y, out, n)
        module.add[(8, 8), (16, 16), 4096](x, y, out, n)   # grid, block, bytes of shared memory

    Arguments are torch tensors, NumPy arrays, ints, floats, bools, None for a null pointer, and
    bytes or ctypes structures for structs. CPU memory runs on the engine, to the end of the
    kernel; CUDA memory on the GPU, on the current stream.
    """
    text, origin = _text_of(source)
    return PtxModule(read_ptx(text, origin), origin)


class PtxModule:
    """The kernels of one PTX text: attributes by their name in the source, items by their exact
    name."""

    def __init__(self, text: PtxText, origin: str) -> None:
        self._text, self._origin = text, origin
        self._kernels = {entry.name: PtxKernel(self, entry) for entry in text.entries}
        self._engine: Optional[EngineModule] = None
        self._gpus: dict[int, GpuModule] = {}

    @property
    def kernels(self) -> tuple[str, ...]:
        """The exact names, as the PTX has them."""
        return tuple(self._kernels)

    def __getitem__(self, name: str) -> PtxKernel:
        if name in self._kernels:
            return self._kernels[name]
        named = [one for one in self._kernels.values() if one.entry.short_name == name]
        if len(named) == 1:
            return named[0]
        if named:
            raise KilnError(
                f"cannot choose '{name}' of {self._origin}",
                "several kernels have this name: " + ", ".join(one.entry.name for one in named),
                f'use the exact name: module["{named[0].entry.name}"]',
            )
        raise KilnError(
            f"cannot find '{name}' in {self._origin}",
            "its kernels are: " + ", ".join(one.short_name for one in self._text.entries),
            f'use one of these names, or the exact one of the PTX: module["{self.kernels[0]}"]',
        )

    def __getattr__(self, name: str) -> PtxKernel:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KilnError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return ["kernels", *(entry.short_name for entry in self._text.entries)]

    def __repr__(self) -> str:
        names = ", ".join(entry.short_name for entry in self._text.entries)
        return f"<kiln.ptx {self._origin}: {names}>"

    def launch(self, entry: Entry, configuration: Configuration, packed: Packed) -> None:
        """Runs a kernel where its memory is."""
        gpus = packed.gpus
        if len(gpus) > 1:
            places = sorted("the CPU" if gpu is None else f"GPU {gpu}" for gpu in gpus)
            raise KilnError(
                f"cannot launch {entry.short_name}",
                "its arguments are on different devices: " + ", ".join(places),
                "move them to one device",
            )
        gpu = next(iter(gpus), None)
        if gpu is None:
            if self._engine is None:
                self._engine = EngineModule(self._text.text, self._text.arch)
            self._engine.launch(entry.name, configuration, packed.values, packed.memory)
            return
        if os.environ.get("KILN_DEVICE") == "engine":
            raise KilnError(
                f"cannot launch {entry.short_name}",
                "KILN_DEVICE is 'engine', and its arguments are on a GPU",
                "pass CPU tensors, or unset KILN_DEVICE",
            )
        if gpu not in self._gpus:
            self._gpus[gpu] = GpuModule(self._text.text, gpu)
        self._gpus[gpu].launch(entry.name, configuration, packed.values)


class PtxKernel:
    """One kernel; kernel[grid, block, shared] is what is called with its arguments."""

    def __init__(self, module: PtxModule, entry: Entry) -> None:
        self.module, self.entry = module, entry

    def __getitem__(self, sizes: Any) -> Callable[..., None]:
        given = sizes if isinstance(sizes, tuple) else (sizes,)
        if not 2 <= len(given) <= 3:
            raise self._not_configured()
        shared = given[2] if len(given) == 3 else 0
        if not _is_whole(shared) or shared < 0:
            raise KilnError(
                f"cannot launch {self.entry.short_name}",
                f"{shared!r} is not a number of bytes of shared memory",
                "kernel[grid, block, shared](*args)",
            )
        configuration = Configuration(
            self._size("grid", given[0]), self._size("block", given[1]), int(shared)
        )

        def call(*arguments: Any) -> None:
            self.module.launch(self.entry, configuration, pack(self.entry, arguments))

        return call

    def __call__(self, *_arguments: Any, **_named: Any) -> None:
        raise self._not_configured()

    def __repr__(self) -> str:
        parameters = ", ".join(map(str, self.entry.parameters))
        return f"<kernel {self.entry.short_name}({parameters})>"

    def _not_configured(self) -> KilnError:
        name = self.entry.short_name
        return KilnError(
            f"cannot launch {name}",
            "a launch needs a grid and a block",
            f"module.{name}[grid, block](*args), or [grid, block, bytes of shared memory]",
        )

    def _size(self, what: str, value: Length) -> Size:
        parts = (value,) if _is_whole(value) else value
        if (
            not isinstance(parts, (tuple, list))
            or not 1 <= len(parts) <= 3
            or not all(_is_whole(part) and 0 <= part < 1 << 32 for part in parts)
        ):
            raise KilnError(
                f"cannot launch {self.entry.short_name}",
                f"{value!r} is not a {what}",
                f"pass an int or up to three of them: kernel[(8, 8), 128]; the {what} is "
                f"{'the first' if what == 'grid' else 'the second'}",
            )
        x, y, z = (*map(int, parts), 1, 1)[:3]
        return x, y, z


def _is_whole(value: Any) -> bool:
    """Ints of Python and of NumPy."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _text_of(source: Any) -> tuple[str, str]:
    """The text, and what to call it in messages."""
    if isinstance(source, tuple) and source and isinstance(source[0], (str, bytes)):
        source = source[0]
    compiled = getattr(source, "asm", None)
    if compiled is not None and "ptx" in compiled:
        return compiled["ptx"], "the compiled kernel"
    if not isinstance(source, (str, bytes, os.PathLike)):
        source = getattr(source, "code", source)
    if isinstance(source, (bytes, bytearray)):
        return _decoded(bytes(source), "these bytes"), "the given PTX"
    if isinstance(source, str) and ("\n" in source or ".version" in source):
        return source, "the given PTX"
    if not isinstance(source, (str, os.PathLike)):
        raise KilnError(
            f"cannot read PTX from {type(source).__name__}: {source!r:.60}",
            "kiln.ptx takes the text, a path, or what a compiler returned",
            "pass the PTX as str or bytes",
        )
    path = Path(source)
    if not path.is_file():
        raise KilnError(
            f"cannot read '{source}'",
            "there is no such file, and the text itself is not PTX: it has no .version",
            "check the path, or pass the PTX itself",
        )
    return _decoded(path.read_bytes(), str(path)), str(path)


def _decoded(data: bytes, origin: str) -> str:
    if data.startswith(b"\x7fELF"):
        raise KilnError(
            f"cannot read PTX from {origin}",
            "it is a cubin or a library: machine code, which runs only on the GPUs it is for, and "
            "which does not declare the kernel's parameters",
            _FROM_PTX,
        )
    if data.startswith(b"\x50\xed\x55\xba"):
        raise KilnError(f"cannot read PTX from {origin}", "it is a fat binary", _FROM_PTX)
    try:
        return data.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        raise KilnError(f"cannot read PTX from {origin}", "it is not text", _FROM_PTX) from None
