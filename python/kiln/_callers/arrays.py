# SPDX-License-Identifier: Apache-2.0
"""What is behind op(array)? A callable of libkiln_callers.so, which reads arrays through DLPack and
calls the op's symbol. What it asks of Python is here: whose array a type is, how a result becomes
one of that library's arrays, and what an error says.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Callable, Optional

from .. import _masked
from ..abi import Library
from ..command import PACKAGE
from ..errors import ArgumentError, KilnError, SetupError, split_error
from .known import OPS

# Type of an array -> None: torch's own function; True: the library; or a callable for its calls.
ROUTES: dict[type, Any] = {}
# Type of an array -> (a callable that makes one from a capsule, True if it takes DLPack 1.0).
MAKERS: dict[Any, tuple[Callable[[Any], Any], Optional[bool]]] = {}
_KINDS = {4: "bool", 6: "dtype", 7: "device"}  # of kiln/abi.h


class Given:
    """A result on its way to its library, which takes it by from_dlpack."""

    __slots__ = ("capsule", "place")

    def __init__(self, capsule: Any, place: tuple[int, int] = (1, 0)) -> None:
        self.capsule, self.place = capsule, place

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place


def caller_of(
    library: Library, name: str, otherwise: Optional[Callable[..., Any]] = None
) -> Callable[..., Any]:
    """A callable for the op of this name, which tries its overloads in order. otherwise: what takes
    the calls with torch's tensors; None: there is no torch."""
    support = (ROUTES, find_route, MAKERS, find_maker, fail, number_of, ArgumentError)
    found = None
    indices = [index for index, op in enumerate(library.ops) if op.name == name]
    for index in reversed(indices):
        symbol, table = library.ffi_symbol(index)
        outer = otherwise if index == indices[0] else None
        found = _library().kiln_new_caller(symbol, table, index, outer, found, support)
        OPS[found.__self__] = (library, library.ops[index])
    assert found is not None
    return found if otherwise is None else _library().kiln_new_front(found)


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    path = PACKAGE / "lib" / "libkiln_callers.so"
    if not path.is_file():
        raise SetupError(
            "cannot call an op with arrays", f"{path} is missing", "install the package kiln-cuda"
        )
    library = ctypes.PyDLL(str(path))
    library.kiln_new_front.restype = library.kiln_new_caller.restype = ctypes.py_object
    library.kiln_new_front.argtypes = [ctypes.py_object]
    library.kiln_new_caller.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.py_object,
        ctypes.py_object,
        ctypes.py_object,
    ]
    return library


def find_route(value: Any) -> bool:
    """Decides once per type who takes calls with it as the first array. Every array of a call comes
    here, so that a masked one is refused wherever it stands."""
    kind = type(value)
    if _masked.is_masked(value):
        raise ArgumentError("cannot pass a masked array to an op", _masked.WHY, _masked.FIX)
    torch = sys.modules.get("torch")
    if torch is not None and (
        isinstance(value, torch.Tensor) or hasattr(kind, "__torch_function__")
    ):
        ROUTES[kind] = None
    elif _root(kind) in ("jax", "jaxlib"):
        from .jax_calls import call

        ROUTES[kind] = call
    elif torch is None or hasattr(kind, "__dlpack__") or kind.__name__ == "PyCapsule":
        ROUTES[kind] = True
    else:  # a number or a list: torch has the words for it
        ROUTES[kind] = None
    return True


def find_maker(value: Any) -> bool:
    """How results become arrays of the library of `value`; NumPy's where there is none."""
    if value is None or type(value).__name__ == "PyCapsule":
        import numpy as owner
    else:
        owner = sys.modules[_root(type(value))]
        if hasattr(value, "__array_namespace__"):
            owner = value.__array_namespace__()
    take = getattr(owner, "from_dlpack", None)
    if take is None:
        import numpy

        take, owner = numpy.from_dlpack, numpy
    key = None if value is None else type(value)
    if owner.__name__.split(".")[0] == "numpy":
        version = tuple(int(part) for part in owner.__version__.split(".")[:2])
        MAKERS[key] = (lambda capsule: take(Given(capsule)), True if version >= (2, 1) else None)
    else:
        MAKERS[key] = (lambda capsule: take(Given(capsule, _place(capsule))), None)
    return True


class _PlainTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("index", ctypes.c_int32)]


def _place(capsule: Any) -> tuple[int, int]:
    """The device of a plain capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    tensor = _PlainTensor.from_address(pointer(capsule, b"dltensor"))
    return tensor.kind, tensor.index


def _root(kind: type) -> str:
    return kind.__module__.split(".")[0]


# DLPack's (code, bits), by torch's and NumPy's names.
_CODES = {
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "bfloat16": (4, 16),
    "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64),
    "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64), "bool": (6, 8),
    "complex64": (5, 64), "complex128": (5, 128), "complex32": (5, 32),
    "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8),
}  # fmt: skip


def number_of(kind: int, value: Any) -> Optional[int]:
    """A bool, dtype or device as the bits that cross to the op; None: it is none."""
    what = _KINDS.get(kind)
    if what == "bool":
        return int(value) if type(value).__name__ in ("bool", "bool_") else None
    if what == "dtype":
        name = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)
        code = _CODES.get(name.split(".")[-1])
        return None if code is None else code[0] | code[1] << 8 | 1 << 16
    text = str(value)
    name, _, index = text.partition(":")
    kinds = {"cpu": 1, "cuda": 2, "gpu": 2}
    if name not in kinds or (index and not index.isdigit()):
        return None
    return kinds[name] | int(index or 0) << 32


def fail(kind: str, schema: str, parameter: str, value: Any, text: str) -> None:
    """Raises what libkiln_callers found."""
    name = schema.split("(")[0]
    what = f"cannot pass {parameter} to {name}" if parameter else f"cannot call {name}"
    if kind == "op":
        raise KilnError(*split_error(text))
    if kind == "refused":
        raise ArgumentError(what, *_refused(*value))
    if kind in _CAPSULES:
        raise ArgumentError(what, *_CAPSULES[kind])
    if kind in ("type", "not_an_array"):
        shown = type(value).__name__
        why = f"{shown} does not fit its type"
        if kind == "not_an_array":
            why = f"{shown} has no __dlpack__: it is not an array"
        raise ArgumentError(what, why, f"the schema is {schema}")
    if kind == "not_a_capsule":
        why = f"the __dlpack__ of {type(value).__name__} returned no DLPack capsule"
        raise ArgumentError(what, why, "pass an array of a library that speaks DLPack")
    words = {
        "missing": f"it has no default and was left out: {parameter}",
        "too_many": "there are more arguments than parameters",
        "twice": "it was passed by position and by name",
        "unknown": f"it has no parameter '{value}'",
        "no_results": "it returns no array",
        "out_count": "out must have an array for each result",
    }
    raise ArgumentError(what, words[kind], f"the schema is {schema}")


_CAPSULES = {
    "used_capsule": (
        "this DLPack capsule was used before; a capsule hands its memory over once",
        "pass the array itself, or a new capsule: x.__dlpack__()",
    ),
    "too_new": (
        "its DLPack capsule has a version other than 1",
        "pass an array of a library that speaks DLPack 1",
    ),
    "no_memory": (
        "its DLPack capsule has elements, and a null pointer for their memory",
        "pass an array that owns memory; a capsule without memory has a shape with a 0",
    ),
    "read_only": (
        "the op writes to it, and the array is read-only",
        "pass a copy (x.copy()), or make it writable: x.flags.writeable = True",
    ),
}


def _refused(array: Any, error: Any) -> tuple[str, str]:
    """The owner of an array gives no capsule of it. NumPy's reasons have a fix."""
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "isnative", True) is False:
        return (
            f"its dtype {dtype.str} has the other byte order",
            "pass x.astype(x.dtype.newbyteorder('='))",
        )
    if getattr(dtype, "hasobject", False):
        return f"its dtype {dtype} holds Python objects", "pass an array of numbers"
    flags = getattr(array, "flags", None)
    if getattr(flags, "writeable", True) is False:
        return _CAPSULES["read_only"]
    return f"{type(array).__name__} gives no DLPack capsule: {error}", _instead(array, dtype)


def _instead(array: Any, dtype: Any) -> str:
    """What can be passed where DLPack has no word for the array."""
    if getattr(dtype, "kind", "f") in "VMmSUT":
        return "pass an array of numbers"
    if getattr(dtype, "name", "") in ("longdouble", "clongdouble", "float128", "complex256"):
        return "pass x.astype('float64')"
    if getattr(array, "requires_grad", False):
        return "pass x.detach(); for gradients pass torch's tensors only"
    if str(getattr(array, "layout", "torch.strided")) != "torch.strided":
        return "pass x.to_dense()"
    if str(getattr(array, "device", "")) == "meta":
        return "pass an array that has memory"
    return "pass a copy of it"
