# SPDX-License-Identifier: Apache-2.0
"""How does JAX call an op? XLA gives memory for the results, so their sizes have to be known before
the call: they come from the op's fake rule. jax-tvm-ffi carries the call to the op's symbol, also
under jax.jit.
"""

from __future__ import annotations

from typing import Any, Callable

from .. import _masked
from .._fakes.shapes import Shape, shapes_of
from .._fakes.syntax import DTYPES
from ..abi import Library, OpRecord
from ..errors import ArgumentError, KilnError, SetupError
from .known import OPS
from .schema import Schema, read_schema

_NAMES = {long: short for short, long in DTYPES.items()}
# (symbol, platform, order of attributes) that jax knows already
_registered: dict[tuple[int, str], str] = {}


def call(caller: Any, *args: Any, **kwargs: Any) -> Any:
    """op(...) with arrays or tracers of jax."""
    library, record = OPS[caller]
    schema = read_schema(record.schema)
    try:
        values = schema.bind(args, kwargs)
    except TypeError as error:
        raise ArgumentError(
            f"cannot call {schema.name}", str(error), f"the schema is {record.schema}"
        ) from None
    arrays = [one.name for one in schema.parameters if one.kind == "tensor"]
    arrays = [name for name in arrays if values[name] is not None]
    _check(schema, record, values)
    results = shapes_of(record.fake, {name: _shape(value) for name, value in values.items()})
    target = _target(library, record, schema, arrays, values)
    return _ffi_call(target, results, [values[name] for name in arrays], schema, values)


def _check(schema: Schema, record: OpRecord, values: dict[str, Any]) -> None:
    what = f"cannot call {schema.name} with arrays of jax"
    place = f"{record.file}:{record.line}"
    if any(one.written for one in schema.parameters):
        raise KilnError(
            what,
            f"it writes to its arguments, and arrays of jax never change ({place})",
            "make an op that returns a new tensor",
        )
    if not record.fake:
        raise KilnError(
            what,
            f"XLA asks for the sizes of results first, and the op has no fake rule ({place})",
            'add one: KILN_OP(...).fake("like(x)"); docs/reference/fake-rules.md',
        )
    for one in schema.parameters:
        if one.kind not in ("tensor", "int", "float", "bool", "str"):
            raise KilnError(
                what, f"'{one.name}' is of kind {one.kind}, which jax cannot pass ({place})"
            )
        if one.optional and one.kind != "tensor" and values[one.name] is None:
            raise KilnError(what, f"'{one.name}' is None, which jax cannot pass", "give it a value")
    if any(kind != "tensor" for kind in schema.results):
        raise KilnError(what, f"a result is not an array ({place})", "return tensors")


def _shape(value: Any) -> Any:
    if _masked.is_masked(value):
        raise ArgumentError("cannot pass a masked array to an op", _masked.WHY, _masked.FIX)
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return value
    name = str(value.dtype)
    if name not in _NAMES:
        raise ArgumentError("cannot pass an array to an op", f"its dtype {name} is none of torch's")
    return Shape(tuple(value.shape), _NAMES[name])


def _ffi_call(
    target: str, results: list[Any], arrays: list[Any], schema: Schema, values: dict[str, Any]
) -> Any:
    import jax

    specs = [jax.ShapeDtypeStruct(one.sizes, _dtype(one.dtype)) for one in results]
    scalars = {
        one.name: _scalar(one.kind, values[one.name])
        for one in schema.parameters
        if one.kind != "tensor"
    }
    function = jax.ffi.ffi_call(target, specs if len(specs) != 1 else specs[0])
    return function(*arrays, **scalars)


def _scalar(kind: str, value: Any) -> Any:
    """Attributes keep the width of NumPy's scalars; a Python number would be 32 bits wide."""
    import numpy

    kinds: dict[str, Callable[[Any], Any]] = {
        "int": numpy.int64, "float": numpy.float64, "bool": bool, "str": str
    }  # fmt: skip
    return kinds[kind](value)


def _dtype(name: str) -> Any:
    import jax.numpy

    return jax.numpy.dtype(DTYPES[name])


def _target(
    library: Library, record: OpRecord, schema: Schema, arrays: list[str], values: dict[str, Any]
) -> str:
    """The name under which XLA knows the op; registered at its first use."""
    import jax

    platform = "gpu" if jax.default_backend() == "gpu" else "cpu"
    index = library.ops.index(record)
    symbol, _ = library.ffi_symbol(index)
    order = tuple(one.name for one in schema.parameters if values[one.name] is not None)
    key = (symbol, f"{platform} {' '.join(order)}")
    if key not in _registered:
        name = f"kiln.{library.namespace}.{schema.name}.{len(_registered)}"
        _register(name, library, record, schema, order, platform)
        _registered[key] = name
    return _registered[key]


def _register(
    name: str,
    library: Library,
    record: OpRecord,
    schema: Schema,
    order: tuple[str, ...],
    platform: str,
) -> None:
    try:
        import jax_tvm_ffi
        import tvm_ffi
    except ImportError as error:
        raise SetupError(
            f"cannot call {schema.name} with arrays of jax",
            str(error),
            "pip install jax-tvm-ffi apache-tvm-ffi",
        ) from None
    kinds = {one.name: one.kind for one in schema.parameters}
    symbol_name = schema.name
    function = tvm_ffi.load_module(str(library.path)).get_function(symbol_name)
    words = ["args" if kinds[one] == "tensor" else f"attrs.{one}" for one in order]
    # jax-tvm-ffi passes all arrays in one run; where numbers stand between them, and where an
    # argument was left out, a function in Python puts them in order.
    runs = [
        word for at, word in enumerate(words) if at == 0 or word != "args" or words[at - 1] != word
    ]
    if runs.count("args") > 1 or len(order) != len(schema.parameters):
        function, runs = _ordered(function, schema, order, kinds)
    jax_tvm_ffi.register_ffi_target(name, function, [*runs, "rets"], platform=platform)


def _ordered(
    function: Any, schema: Schema, order: tuple[str, ...], kinds: dict[str, str]
) -> tuple[Any, list[str]]:
    import tvm_ffi

    arrays = [one for one in order if kinds[one] == "tensor"]
    scalars = [one for one in order if kinds[one] != "tensor"]

    def call_in_order(*given: Any) -> None:
        values = dict(zip([*arrays, *scalars], given))
        rest = given[len(values) :]
        function(*(values.get(one.name) for one in schema.parameters), *rest)

    return tvm_ffi.convert(call_in_order), ["args", *(f"attrs.{one}" for one in scalars)]
