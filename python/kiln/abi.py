# SPDX-License-Identifier: Apache-2.0
"""What does an op library tell about itself? The structs of kiln/abi.h, read through ctypes.

Only what Python needs: names, schemas, rules, texts, the functions that register with torch, and
the addresses that kiln._callers hands on. Ops are called through torch's dispatcher or from there.
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from pathlib import Path

from .demangle import demangled
from .errors import LoadError, split_error

ABI_VERSION = 1


class _OpInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("overload", ctypes.c_char_p),
        ("schema", ctypes.c_char_p),
        ("fake", ctypes.c_char_p),
        ("doc", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_int32),
        ("parameter_count", ctypes.c_uint32),
        ("parameters", ctypes.c_void_p),
        ("result_count", ctypes.c_uint32),
        ("results", ctypes.c_void_p),
    ]


class _Library(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("struct_bytes", ctypes.c_uint32),
        ("kiln_version", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("op_count", ctypes.c_uint32),
        ("ops", ctypes.POINTER(_OpInfo)),
        ("call", ctypes.c_void_p),
        ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("default_device", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("deallocate", ctypes.c_void_p),
        ("copy", ctypes.c_void_p),
        ("synchronize", ctypes.c_void_p),
        ("register_torch", ctypes.CFUNCTYPE(ctypes.c_int)),
        ("torch_status", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("use_stream", ctypes.c_void_p),
        ("copied_results", ctypes.CFUNCTYPE(ctypes.c_uint64)),
    ]


@dataclass(frozen=True)
class OpRecord:
    """One overload of one op, as its source declares it."""

    name: str
    overload: str
    schema: str
    fake: str
    doc: str
    file: str
    line: int


class Library:
    """A mapped op library. It stays mapped until the process ends: torch may hold pointers into its
    code."""

    def __init__(self, path: os.PathLike[str] | str) -> None:
        self.path = Path(path)
        self._handle = _open(self.path)
        try:
            entry = self._handle.kiln_library
        except AttributeError:
            raise LoadError(
                f"cannot load {self.path}",
                "it has no symbol kiln_library: it was not built from a source with kiln/op.h",
                "torch.ops.load_library loads libraries of torch's own kind",
            ) from None
        entry.restype = ctypes.POINTER(_Library)
        self._table: _Library = entry().contents
        # What follows torch_status is newer than the first libraries.
        if (
            self._table.abi_version != ABI_VERSION
            or self._table.struct_bytes < _Library.use_stream.offset
        ):
            raise LoadError(
                f"cannot load {self.path}",
                f"its interface has version {self._table.abi_version}, this package reads version "
                f"{ABI_VERSION}",
                "build it again with the kiln that belongs to this package",
            )
        if self._table.op_count == 0:
            raise self._no_ops()
        self.namespace = _text(self._table.name)
        self.kiln_version = _text(self._table.kiln_version)
        self.ops = tuple(_record(self._table.ops[index]) for index in range(self._table.op_count))

    def _no_ops(self) -> LoadError:
        """What is wrong with its ops (one name in two files), or that there are none."""
        if fault := _text(self._table.last_error()):
            return _told(self.path, fault)
        return LoadError(
            f"cannot load {self.path}",
            "it has no ops",
            'make a function an op: KILN_OP(function, "a, b")',
        )

    def op_table(self) -> tuple[int, int]:
        """Where the library's table of ops lies, and how many it has: for C code that reads it."""
        table = ctypes.cast(self._table.ops, ctypes.c_void_p).value
        return table or 0, self._table.op_count

    def ffi_symbol(self, index: int) -> tuple[int, int]:
        """The addresses of __tvm_ffi_NAME of op `index`, and of the library's table."""
        op = self.ops[index]
        name = f"__tvm_ffi_{op.name}{'.' if op.overload else ''}{op.overload}"
        try:
            symbol = ctypes.cast(self._handle[name], ctypes.c_void_p).value
        except AttributeError:
            raise LoadError(
                f"cannot call {op.name} with arrays",
                f"{self.path} has no symbol {name}: an earlier kiln built it",
                "build it again",
            ) from None
        return symbol or 0, ctypes.addressof(self._table)

    def takes_arrays(self) -> bool:
        """Does it have the symbols? Libraries of an earlier kiln do not."""
        return bool(self._table.struct_bytes >= ctypes.sizeof(_Library))

    def copied_results(self) -> int:
        """How many results were copied into memory that callers gave for them."""
        if not self.takes_arrays():
            return 0
        return int(self._table.copied_results())

    def register_torch(self) -> None:
        """Hands the ops to the torch of this process. Safe to repeat."""
        if self._table.register_torch() == 0:
            return
        raise _told(self.path, _text(self._table.last_error()) or _text(self._table.torch_status()))

    def unregister_torch(self) -> None:
        """Takes the kernels of this library back from torch. The definitions stay, for the library
        that comes next."""
        try:
            unregister = self._handle.kiln_unregister_torch
        except AttributeError:
            raise LoadError(
                f"cannot replace {self.path} in this process",
                "it was built by a kiln that had no reload",
                "start a new process, or build it again",
            ) from None
        unregister.restype = ctypes.c_int
        if unregister() != 0:
            raise _told(self.path, _text(self._table.last_error()))


def _open(path: Path) -> ctypes.CDLL:
    if not path.is_file():
        raise LoadError(f"cannot load {path}", "there is no such file")
    try:
        # RTLD_LOCAL: two versions of one op library live side by side and must not see each other's
        # symbols.
        return ctypes.CDLL(str(path.resolve()), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        fix = ""
        if "wrong ELF class" in str(error) or "invalid ELF header" in str(error):
            fix = "build it on this machine: the file is for another CPU, or is not a library"
        raise LoadError(f"cannot load {path}", *_undefined(str(error), fix)) from None


def _undefined(why: str, fix: str) -> tuple[str, str]:
    """An undefined symbol as the source has it, and what to do, as the command says it."""
    found = re.search(r"undefined symbol: (\S+)", why)
    if not found:
        return why, fix
    why = why.replace(found.group(1), demangled(found.group(1)))
    return why, "add what defines it to the build: every source (a project), or --ldflag=-lNAME"


def _record(op: _OpInfo) -> OpRecord:
    return OpRecord(
        _text(op.name),
        _text(op.overload),
        _text(op.schema),
        _text(op.fake),
        _text(op.doc),
        _text(op.file),
        op.line,
    )


def _told(path: Path, text: str) -> LoadError:
    """An error of the library itself: kept in its own form when it has one, else given ours."""
    if not text.startswith("error: "):
        return LoadError(f"cannot register the ops of {path} with torch", text)
    return LoadError(*split_error(text))


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "replace")
