# SPDX-License-Identifier: Apache-2.0
"""How does Python reach the timing core? libkiln_measure.so by ctypes; src/measure/abi.h is the
contract."""

from __future__ import annotations

import ctypes
import functools
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional

from .abi import Library
from .command import PACKAGE
from .errors import KilnError, SetupError, format_error

_VERSION = 3
_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_PLAIN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _Contender(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("user", ctypes.c_void_p),
        ("call", _CALL),
        ("check", _PLAIN),
        ("capture", _CALL),
        ("replay", _PLAIN),
        ("error", _ERROR),
        ("rotations", ctypes.c_int),
        ("bytes_declared", ctypes.c_int),
        ("bytes", ctypes.c_double),
        ("flops", ctypes.c_double),
        ("refresh", _CALL),
    ]


@functools.lru_cache(maxsize=1)
def core() -> ctypes.CDLL:
    """The library next to this package; KILN_MEASURE names another one."""
    path = Path(os.environ.get("KILN_MEASURE") or PACKAGE / "lib" / "libkiln_measure.so")
    try:
        library = ctypes.CDLL(str(path))
        version = library.kiln_measure_abi_version()
    except (OSError, AttributeError) as error:
        raise SetupError(
            "cannot load the timing core",
            str(error),
            "install kiln again: its library is missing or broken",
        ) from None
    if version != _VERSION:
        raise SetupError(
            "cannot use the timing core",
            f"{path} has version {version}, this package requires {_VERSION}",
        )
    library.kiln_measure_run.restype = ctypes.c_void_p
    library.kiln_measure_run.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Contender), ctypes.c_int]
    library.kiln_measure_render.restype = ctypes.c_void_p
    library.kiln_measure_render.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.kiln_measure_tensor.restype = ctypes.c_void_p
    library.kiln_measure_tensor.argtypes = [
        ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p),
    ]  # fmt: skip
    library.kiln_measure_arguments.restype = ctypes.c_void_p
    library.kiln_measure_arguments.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_char_p,
    ]  # fmt: skip
    library.kiln_measure_tolerance.argtypes = [
        ctypes.c_int32, *[ctypes.c_double] * 4, ctypes.POINTER(ctypes.c_double),
    ]  # fmt: skip
    library.kiln_measure_free.argtypes = [ctypes.c_void_p]
    library.kiln_measure_drift.restype = ctypes.c_double
    return library


def _taken(address: int) -> str:
    text = ctypes.string_at(address).decode(errors="replace")
    core().kiln_measure_free(address)
    return text


def _answer(text: str) -> Any:
    value = json.loads(text)
    if isinstance(value, dict) and set(value) == {"error"}:
        error = value["error"]
        raise KilnError(
            error.get("what", "the timing core failed"), error.get("why", ""), error.get("fix", "")
        )
    return value


class Contender:
    """One thing to time: the functions of a KilnContender around Python callables. What they raise
    is kept and raised again by run()."""

    def __init__(
        self,
        name: str,
        call: Callable[[int], Any],
        *,
        check: Optional[Callable[[], None]] = None,
        capture: Optional[Callable[[int], Callable[[], Any]]] = None,
        refresh: Optional[Callable[[bool], None]] = None,
        rotations: int = 1,
        bytes: float = 0.0,
        bytes_declared: bool = False,
        flops: float = 0.0,
    ) -> None:
        self.raised: Optional[BaseException] = None
        self._text = ctypes.create_string_buffer(b"")
        self._replay: Optional[Callable[[], Any]] = None
        self._name = name.encode()

        def guarded(body: Callable[[], Any]) -> int:
            try:
                body()
                return 0
            except BaseException as error:  # must not cross the C frames
                self._keep(error)
                return 1

        def call_once(_user: Any, rotation: int) -> int:
            try:
                call(rotation)
                return 0
            except BaseException as error:
                self._keep(error)
                return 1

        def capture_graph(_user: Any, calls: int) -> int:
            def make() -> None:
                self._replay = capture(calls) if capture else None

            return guarded(make)

        def replay(_user: Any) -> int:
            return guarded(self._replay) if self._replay else 1

        # Kept alive by this object: C holds bare pointers.
        self._functions = (
            _CALL(call_once),
            _PLAIN((lambda _user: guarded(check)) if check else 0),
            _CALL(capture_graph if capture else 0),
            _PLAIN(replay),
            _ERROR(lambda _user: ctypes.addressof(self._text)),
        )
        self._refresh = _CALL(
            (lambda _user, fresh: guarded(lambda: refresh(bool(fresh)))) if refresh else 0
        )
        self.c = _Contender(
            self._name,
            None,
            *self._functions,
            rotations,
            int(bytes_declared),
            float(bytes),
            float(flops),
            self._refresh,
        )

    def _keep(self, error: BaseException) -> None:
        self.raised = error
        text = str(error) if isinstance(error, KilnError) else format_error(
            f"{self._name.decode()} raised {type(error).__name__}", str(error)
        )  # fmt: skip
        self._text = ctypes.create_string_buffer(text.encode())


def run(options: dict[str, Any], contenders: Sequence[Contender]) -> dict[str, Any]:
    """The core's result for these contenders. Raises what a contender raised."""
    rows = (_Contender * len(contenders))(*[one.c for one in contenders])
    text = _taken(core().kiln_measure_run(json.dumps(options).encode(), rows, len(contenders)))
    try:
        return _answer(text)
    except KilnError:
        for one in contenders:
            if one.raised is not None:
                raise one.raised from None
        raise


def render(kind: str, value: Any) -> str:
    text = _taken(core().kiln_measure_render(kind.encode(), json.dumps(value).encode()))
    if text.startswith('{"error"'):
        _answer(text)
    return text


def tensor(spec: str, seed: int, argument: int, device: Any) -> Any:
    """The tensor of a spec as the command writes it ("randn:f32:2^20"), with the values that `kiln
    call` gives it."""
    import torch

    storage = ctypes.c_void_p()
    facts = _answer(
        _taken(core().kiln_measure_tensor(spec.encode(), seed, argument, ctypes.byref(storage)))
    )
    try:
        dtype = dtype_of(facts["dtype"])
        raw = torch.empty(facts["bytes"], dtype=torch.uint8)
        ctypes.memmove(raw.data_ptr(), storage, facts["bytes"])
        whole = raw.to(device)
        return torch.empty(0, dtype=dtype, device=device).set_(
            whole.untyped_storage(), facts["offset"], facts["sizes"], facts["strides"]
        )
    finally:
        core().kiln_measure_free(storage)


# torch's own numbers of its dtypes, which are kiln's (kiln/abi.h).
_DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
    7: "float64", 8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16",
    23: "float8_e5m2", 24: "float8_e4m3fn", 27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip


def dtype_of(code: int) -> Any:
    import torch

    return getattr(torch, _DTYPES[code])


_CODES = {name: code for code, name in _DTYPES.items()}


def arguments(
    texts: Sequence[str], library: Optional[Library] = None, op: str = ""
) -> list[dict[str, Any]]:
    """What the texts mean: {"name", "kind", "value"} each, as src/measure/argument_json.h says."""
    ops, count = library.op_table() if library is not None else (None, 0)
    words = json.dumps(list(texts)).encode()
    return _answer(_taken(core().kiln_measure_arguments(ops, count, op.encode(), words)))


def tolerance(
    dtype: Any, scale: tuple[float, float], rtol: Optional[float], atol: Optional[float]
) -> tuple[float, float]:
    """(rtol, atol) of a result of this dtype, by the rule of src/host/compare.h.

    scale: root mean square and median of what is expected. A dtype that kiln does not know is
    compared exactly, unless the caller says otherwise."""
    given = [math.nan if one is None else one for one in (rtol, atol)]
    out = (ctypes.c_double * 2)()
    code = _CODES.get(str(dtype).replace("torch.", ""), -1)
    if core().kiln_measure_tolerance(code, *scale, *given, out):
        return rtol or 0.0, atol or 0.0
    return out[0], out[1]


def summary(samples: Sequence[float]) -> dict[str, float]:
    values = (ctypes.c_double * len(samples))(*samples)
    out = (ctypes.c_double * 9)()
    core().kiln_measure_summary(values, ctypes.c_size_t(len(samples)), out)
    return dict(
        zip(("median", "low", "high", "least", "greatest", "mean", "p25", "p75", "far"), out)
    )


def paired_ratio(
    a: Sequence[float], b: Sequence[float], seed: int = 0, resamples: int = 1000
) -> tuple[float, ...]:
    out = (ctypes.c_double * 3)()
    left, right = ((ctypes.c_double * len(one))(*one) for one in (a, b))
    core().kiln_measure_ratio(
        left, right, ctypes.c_size_t(len(a)), ctypes.c_uint64(seed), resamples, out
    )
    return tuple(out)


def unpaired_ratio(
    a: Sequence[float], b: Sequence[float], seed: int = 0, resamples: int = 1000
) -> tuple[float, ...]:
    out = (ctypes.c_double * 3)()
    left, right = ((ctypes.c_double * len(one))(*one) for one in (a, b))
    core().kiln_measure_unpaired_ratio(
        left,
        ctypes.c_size_t(len(a)),
        right,
        ctypes.c_size_t(len(b)),
        ctypes.c_uint64(seed),
        resamples,
        out,
    )
    return tuple(out)


def drift(samples: Sequence[float]) -> float:
    values = (ctypes.c_double * len(samples))(*samples)
    return core().kiln_measure_drift(values, ctypes.c_size_t(len(samples)))
