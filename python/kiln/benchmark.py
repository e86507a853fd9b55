# SPDX-License-Identifier: Apache-2.0
"""How long does a call take, and can the figure be believed? kiln.bench: checks first, then the
timing core.

    kiln.bench(add.my_add, x, y)                          against its own reference, if it has one
    kiln.bench(add.my_add, x, y, against=torch.add)       with a verdict: SAME, FASTER, SLOWER,
                                                          AMBIGUOUS
    kiln.bench(lambda: model(x), against={"compiled": lambda: compiled(x)})

Without a GPU the engine is timed, and the result says so.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable, Optional, Union

from . import _measure, _progress
from ._against import parameters_of_op, peer_named
from ._checks.arguments import Call
from ._checks.compare import Tolerance
from ._checks.contents import overlaps_itself, renew
from ._checks.timed import Checked, Untrusted, results_of
from ._facts.machine import machine_facts
from ._facts.moved_bytes import touched_bytes
from ._torch import torch_module
from .errors import KilnError

Peers = Union[None, str, Callable[..., Any], Sequence[Any], Mapping[str, Any]]

# Clones of the arguments for calls in a row: with fewer, a GPU finds its inputs in L2.
_MOST_ROTATIONS = 16
_MOST_RENEWED_BYTES = 1 << 30  # new contents take a few copies of the arguments for a moment
_OPTIONS = (
    "precision_percent",
    "min_warm_up_s",
    "max_warm_up_s",
    "min_samples",
    "min_time_s",
    "max_time_s",
    "call_limit_s",
    "in_flight",
    "trace_flush",
    "rotations",
    "check_share",
    "side_s",
    "side",
    "kernels",
    "roof",
    "seed",
)
# As they were called in the release before, each with what makes the new value of the old.
_OLD_OPTIONS: dict[str, tuple[str, float]] = {
    "precision": ("precision_percent", 100),
    "warm_up_least_s": ("min_warm_up_s", 1),
    "warm_up_most_s": ("max_warm_up_s", 1),
    "samples_least": ("min_samples", 1),
    "time_least_s": ("min_time_s", 1),
    "time_most_s": ("max_time_s", 1),
}


class Bench:
    """What kiln.bench found; print it for a table. `json` has everything, samples included."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.json = value

    @property
    def median_ns(self) -> float:
        """Of the first contender: isolated calls between two events, cold L2."""
        return self.json["contenders"][0]["cold"]["median_ns"]

    @property
    def kernel_ns(self) -> Optional[float]:
        """Of the first contender: from the start of its first kernel to the end of its last, by
        CUPTI; None without."""
        kernel = self.json["contenders"][0].get("kernel")
        return kernel["median_ns"] if kernel else None

    @property
    def times_ns(self) -> dict[str, float]:
        return {one["name"]: one["cold"]["median_ns"] for one in self.json["contenders"]}

    @property
    def verdict(self) -> Optional[str]:
        """SAME, FASTER, SLOWER or AMBIGUOUS against the first peer; None without one."""
        return self.json["comparisons"][0]["verdict"] if self.json["comparisons"] else None

    @property
    def ratio(self) -> Optional[float]:
        """This time over the first peer's: below 1 is faster."""
        return self.json["comparisons"][0]["ratio"]["value"] if self.json["comparisons"] else None

    @property
    def findings(self) -> list[dict[str, str]]:
        return self.json["findings"]

    def traps(self) -> set[str]:
        return {finding["trap"] for finding in self.findings}

    def __str__(self) -> str:
        return _measure.render("explain" if self.json.get("explain") else "text", self.json).rstrip(
            "\n"
        )

    def markdown(self) -> str:
        return _measure.render("markdown", self.json)

    def csv(self) -> str:
        return _measure.render("csv", self.json)

    def html(self) -> str:
        """One self-contained page."""
        return _measure.render("html", self.json)

    def save(self, path: Any) -> None:
        """One more line of a history file (JSON lines)."""
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(self.json) + "\n")


def bench(
    function: Callable[..., Any],
    *args: Any,
    against: Peers = None,
    reference: Optional[Callable[..., Any]] = None,
    bytes: Optional[float] = None,
    flops: Optional[float] = None,
    name: Optional[str] = None,
    check: bool = True,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    naive_times: bool = False,
    options: Optional[Mapping[str, Any]] = None,
    **kwargs: Any,
) -> Bench:
    """Times function(*args, **kwargs) on the device of its tensors, after it was checked against a
    reference: `reference`, the op's own, or the first of `against`. Raises Untrusted for a wrong
    result and for a trick.

    against: a callable, a name ("torch.add"), an expression over the op's parameters
        ("torch.softmax(x, -1)"), a list of them, or {label: one of them}; each is called with the
        same arguments and timed in the same rounds, in random order.
    bytes, flops: what a call must move and compute; else the bytes of its tensors, and no flops.
    naive_times: the printed table also has what naive timers would have reported.
    options: of the timing core (kiln docs bench): precision_percent=0.5, max_time_s=15,
    min_warm_up_s=0.2, seed=0, ...
    """
    torch = torch_module()
    if "explain" in kwargs and not _takes(function, "explain"):
        _renamed("explain=", "naive_times=")
        naive_times = bool(kwargs.pop("explain"))
    given = _core_options(options or {})
    call = Call.of(function, args, kwargs)
    contenders = _contenders(name or _name_of(function), function, against, call.overload)
    device = call.device if call.device is not None else _device_of(function, args, kwargs)
    sets = given.pop("rotations", None)
    with _own_stream(device) as stream, _progress.line() as show:
        show(f"checking {next(iter(contenders))}")
        correct, checks, notes = _checked(
            contenders, call, reference, check, Tolerance(rtol, atol), function
        )
        timed = _Timed(call, stream, device, sets)
        rows = [
            _contender(label, one, timed, checks.get(label), bytes, flops)
            for label, one in contenders.items()
        ]
        where = {
            "device": "cuda" if device.type == "cuda" else "engine",
            "stream": stream.cuda_stream if stream else 0,
        }
        if device.type == "cuda":
            where["index"] = device.index or 0
        if torch._C._autograd._profiler_enabled():
            where["kernels"] = False  # CUPTI serves one at a time: it is the user's profiler's
        show(f"timing {' and '.join(contenders)}")
        try:
            value = _measure.run({**where, **given}, rows)
            timed.restore()
            for checked in checks.values():
                checked.look_again()
        finally:
            timed.drop()
    value.update(
        title=_title(next(iter(contenders)), call),
        correct=correct,
        explain=naive_times,
        **machine_facts(torch),
    )
    value["findings"] += notes
    if value["refused"]:
        refusal = next(one for one in value["findings"] if one["weight"] == "refusal")
        raise Untrusted(
            refusal["trap"],
            f"{refusal['contender']} cannot be timed",
            refusal["text"],
            result=value,
        )
    return Bench(value)


def _renamed(old: str, new: str) -> None:
    warnings.warn(
        f"kiln.bench: {old} is now {new} (works until the next release)",
        FutureWarning,
        stacklevel=3,
    )


def _takes(function: Callable[..., Any], name: str) -> bool:
    """Whether the function itself has a parameter of this name."""
    import inspect

    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _core_options(options: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name in _OLD_OPTIONS:
            now, factor = _OLD_OPTIONS[name]
            _renamed(f"the option {name}", now)
            name, value = now, value * factor if factor != 1 else value
        if name not in _OPTIONS:
            near = difflib.get_close_matches(name, _OPTIONS, 1)
            raise KilnError(
                f"kiln.bench has no option '{name}'",
                f"the options are {', '.join(_OPTIONS)}",
                f"did you mean {near[0]}?" if near else "use one of these",
            )
        given[name] = value
    return given


def _name_of(function: Callable[..., Any]) -> str:
    text = (
        str(function)
        if type(function).__name__ == "Op"
        else getattr(function, "__name__", type(function).__name__)
    )
    return text.rsplit(".", 1)[-1] if type(function).__name__ == "Op" else text


def _contenders(
    name: str, function: Callable[..., Any], against: Peers, overload: Any
) -> dict[str, Callable[..., Any]]:
    """Each under a name of its own: two builds of one op have the same one, and none may take the
    other's place."""
    found = {name: function}
    for label, peer in _peers(against, function, overload):
        if label in found and type(peer).__name__ == "Op":
            label = str(peer)
        found[label if label not in found else f"{label} ({len(found) + 1})"] = peer
    return found


def _peers(
    against: Peers, function: Callable[..., Any], overload: Any
) -> list[tuple[str, Callable[..., Any]]]:
    if against is None:
        return []

    def meant(one: Any) -> Callable[..., Any]:
        return (
            peer_named(one, parameters_of_op(function, overload)) if isinstance(one, str) else one
        )

    if isinstance(against, Mapping):
        return [(label, meant(one)) for label, one in against.items()]
    listed = against if isinstance(against, (list, tuple)) else [against]
    return [(one if isinstance(one, str) else _peer_name(one), meant(one)) for one in listed]


def _peer_name(function: Callable[..., Any]) -> str:
    own = getattr(function, "__name__", type(function).__name__)
    torch = torch_module()
    return f"torch.{own}" if getattr(torch, own, None) is function else own


def _device_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of a callable without tensor arguments: where its result is."""
    torch = torch_module()
    for one in results_of(function(*args, **kwargs)):
        if isinstance(one, torch.Tensor):
            return one.device
    return (
        torch.device("cuda", torch.cuda.current_device())
        if torch.cuda.is_available()
        else torch.device("cpu")
    )


@contextlib.contextmanager
def _own_stream(device: Any) -> Any:
    """The caller's stream on a GPU, or one of our own where that is the default one: it cannot be
    captured."""
    torch = torch_module()
    if device.type != "cuda":
        yield None
        return
    torch.cuda.synchronize(device)
    current = torch.cuda.current_stream(device)
    chosen = current if current != torch.cuda.default_stream(device) else torch.cuda.Stream(device)
    with torch.cuda.device(device), torch.cuda.stream(chosen):
        yield chosen
        torch.cuda.synchronize(device)


def _checked(
    contenders: dict[str, Callable[..., Any]],
    call: Call,
    reference: Optional[Callable[..., Any]],
    check: bool,
    tolerance: Tolerance,
    function: Callable[..., Any],
) -> tuple[str, dict[str, Checked], list[dict[str, str]]]:
    """What is known about correctness, a check of timed calls for each contender, and findings."""
    reference = reference or getattr(function, "reference_function", None)
    names = list(contenders)
    source = "its reference"
    if reference is None and len(names) > 1:
        reference, source = contenders[names[1]], names[1]
    if not check or reference is None:
        why = "check=False" if not check else "there is no reference: pass against=FUNCTION"
        finding = {
            "trap": "not checked",
            "weight": "warning",
            "contender": names[0],
            "text": f"the results were not compared with anything ({why})",
        }
        return f"not checked ({why})", {}, [finding]
    checks: dict[str, Checked] = {}
    notes = []
    for label, one in contenders.items():
        checked = Checked(label, one, call, reference, tolerance)
        if one is not reference:
            notes.append(f"{label}: {checked.run()}" if len(names) > 2 else checked.run())
        if not checked.mutates:
            checks[label] = checked
    return "; ".join(notes).replace("the reference", source) or f"it is {source}", checks, []


class _Timed:
    """What all contenders of a benchmark share: the arguments, copies of them for calls in a row,
    and the last result.

    A result is dropped before the next call, so that all of them write to the same memory: on an
    H200 an add of 2^20 elements differs by 2.4 % between two places, and that would be a
    verdict."""

    def __init__(self, call: Call, stream: Any, device: Any, sets: Optional[int]) -> None:
        self.call, self.stream, self.device = call, stream, device
        self.input_bytes = _touched_bytes(call.tensors())
        count = _rotations(self.input_bytes, device) if sets is None else max(1, int(sets))
        self.arguments = [
            (one.args, one.kwargs) for one in [call] + [call.copy() for _ in range(count - 1)]
        ]
        self.last: Any = None
        self._before: Optional[Call] = None  # contents as the caller gave them

    def renew(self, fresh: bool) -> None:
        """New contents for all arguments, or what they hold written once more: as much work, so
        that two calls differ in nothing else."""
        if self._before is None:
            self._before = self.call.copy()
        for tensor in self.call.tensors():
            if overlaps_itself(tensor):
                continue
            old = tensor.detach().clone()
            renew(tensor)
            if not fresh:
                tensor.detach().copy_(old)

    def restore(self) -> None:
        if self._before is None:
            return
        for tensor, before in zip(self.call.tensors(), self._before.tensors()):
            if not overlaps_itself(tensor):
                tensor.detach().copy_(before.detach())
        self._before = None

    def drop(self) -> None:
        """Callbacks and their owners refer to each other: without this the copies live until the
        next collection."""
        self.restore()
        self.arguments, self.last = [], None


def _contender(
    label: str,
    function: Callable[..., Any],
    timed: _Timed,
    check: Optional[Checked],
    declared_bytes: Optional[float],
    flops: Optional[float],
) -> _measure.Contender:
    torch = torch_module()

    def one_call(rotation: int) -> None:
        args, kwargs = timed.arguments[rotation]
        timed.last = None
        timed.last = function(*args, **kwargs)

    def check_last() -> None:
        seen = results_of(timed.last)
        if check is not None and isinstance(seen[0], torch.Tensor):
            check.watch(seen)

    def capture(calls: int) -> Callable[[], Any]:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=timed.stream):
                for index in range(calls):
                    args, kwargs = timed.arguments[index % len(timed.arguments)]
                    function(*args, **kwargs)
        except Exception as error:
            _end_broken_capture()
            raise KilnError(
                f"{label} cannot be captured in a CUDA graph", str(error).splitlines()[0]
            ) from None
        return graph.replay

    one_call(0)
    inputs = {one.data_ptr() for one in timed.call.tensors()}
    new = [
        one
        for one in results_of(timed.last)
        if isinstance(one, torch.Tensor) and one.data_ptr() not in inputs
    ]
    moved = timed.input_bytes + _touched_bytes(new) + _touched_bytes(timed.call.written())
    if declared_bytes is not None:
        moved = declared_bytes
    # An op that writes to its arguments has new contents in each call anyway.
    renewable = not timed.call.written() and 0 < timed.input_bytes <= _MOST_RENEWED_BYTES
    return _measure.Contender(
        label,
        one_call,
        check=check_last if check else None,
        capture=capture if timed.device.type == "cuda" else None,
        refresh=timed.renew if renewable else None,
        rotations=len(timed.arguments),
        bytes=moved,
        bytes_declared=declared_bytes is not None,
        flops=flops or 0.0,
    )


def _end_broken_capture() -> None:
    """A capture that failed leaves torch's random generator inside it; one that succeeds takes
    it out again."""
    torch = torch_module()
    with contextlib.suppress(Exception), torch.cuda.graph(torch.cuda.CUDAGraph()):
        pass


def _touched_bytes(tensors: Sequence[Any]) -> float:
    return float(sum(map(touched_bytes, tensors)))


def _rotations(input_bytes: float, device: Any) -> int:
    if device.type != "cuda" or input_bytes <= 0:
        return 1
    torch = torch_module()
    cache = torch.cuda.get_device_properties(device).L2_cache_size
    free = torch.cuda.mem_get_info(device)[0]
    wanted = math.ceil(3 * cache / input_bytes)
    return max(1, min(wanted, _MOST_ROTATIONS, int(free / 4 / input_bytes)))


def _title(label: str, call: Call) -> str:
    parts = []
    for _, value in call.slots():
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            parts.append(
                f"{str(value.dtype).replace('torch.', '')} "
                f"{'x'.join(map(str, value.shape)) or 'scalar'}"
            )
        else:
            parts.append(repr(value) if not isinstance(value, (list, tuple)) else "[...]")
    return f"{label}({', '.join(parts)})"
