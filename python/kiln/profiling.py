# SPDX-License-Identifier: Apache-2.0
"""Which ops ran, each under its caller, down to the GPU kernels, and where did the time go?
kiln.profile.

    print(kiln.profile(lambda: torch.sqrt(x * x)))
    kiln.profile(fused_abs, x).html()

torch.profiler records; the tree, the kernels and the verdict are made here, and shown by the timing
core.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

from . import _measure
from ._facts.engine_launches import engine_launches
from ._facts.machine import machine_facts
from ._facts.moved_bytes import moved_bytes
from ._torch import torch_module
from .errors import KilnError

_MARKER = "kiln.profile"  # where the call begins in the trace
_NOT_OPS = (_MARKER, "PyTorch Profiler (0)")


class Profile:
    """What kiln.profile saw. `json` has the tree, the timeline and the totals."""

    def __init__(self, value: dict[str, Any], trace: str) -> None:
        self.json = value
        self.chrome_trace = trace  # the text of a trace for chrome://tracing and Perfetto

    def __str__(self) -> str:
        return _measure.render("profile-text", self.json).rstrip("\n")

    def html(self) -> str:
        """One self-contained page: the tree, a flame graph, a timeline."""
        return _measure.render("profile-html", self.json)

    def save_trace(self, path: Any) -> None:
        Path(path).write_text(self.chrome_trace)

    def ops(self) -> list[str]:
        """The names of the ops, depth first."""
        found: list[str] = []

        def walk(nodes: Sequence[dict[str, Any]]) -> None:
            for node in nodes:
                found.append(node["name"])
                walk(node["children"])

        walk(self.json["tree"])
        return found

    def kernels(self) -> list[str]:
        return [row["name"] for row in self.json["timeline"] if row["kind"] == "kernel"]


def profile(function: Callable[..., Any], *args: Any, warm_up: int = 3, **kwargs: Any) -> Profile:
    """Runs function(*args, **kwargs) once under torch's profiler, after `warm_up` calls without
    it."""
    torch = torch_module()
    on_gpu = torch.cuda.is_available()
    for _ in range(warm_up):
        function(*args, **kwargs)
    # After the warm-up: what is done once is not in it.
    moved = moved_bytes(lambda: function(*args, **kwargs))
    if on_gpu:
        torch.cuda.synchronize()
    return _recorded(
        lambda: function(*args, **kwargs),
        getattr(function, "__name__", str(function)),
        on_gpu,
        moved,
        True,
    )


def _recorded(
    body: Callable[[], Any],
    title: str,
    on_gpu: bool,
    moved: Optional[dict[str, list[int]]] = None,
    rehearse: bool = False,
) -> Profile:
    torch = torch_module()
    from torch.profiler import ProfilerActivity

    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    try:
        recorder = torch.profiler.profile(
            activities=activities, record_shapes=True, acc_events=True
        )
    except TypeError:  # an older torch has no acc_events
        recorder = torch.profiler.profile(activities=activities, record_shapes=True)
    fix = "one profiler at a time can use CUPTI: end the other one"
    # Starting another one would fail, and end the first.
    if torch.autograd._profiler_enabled():
        raise KilnError("cannot profile", "torch's profiler is already running", fix)
    with engine_launches() as launches:
        try:
            with recorder as seen:
                if rehearse:  # the first call under a profiler pays for its start: 3 ms on an H200
                    body()
                    if on_gpu:
                        torch.cuda.synchronize()
                    launches.clear()
                begun_ns = time.perf_counter_ns()
                unix_ns = (
                    time.time_ns() - begun_ns
                )  # the trace has Unix time, the engine's launches CLOCK_MONOTONIC
                with torch.profiler.record_function(_MARKER):
                    body()
                if on_gpu:
                    torch.cuda.synchronize()
                wall_us = (time.perf_counter_ns() - begun_ns) / 1e3
        except RuntimeError as error:
            if "rofiler" not in str(error):
                raise
            raise KilnError("cannot profile", str(error).splitlines()[0], fix) from None
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(path))
        trace = path.read_text()
    value = _value(title, json.loads(trace), wall_us, on_gpu, unix_ns, launches)
    if on_gpu:  # a rate of the engine would only mislead
        add_bytes(value["tree"], moved or {})
    value.update(machine_facts(torch))
    return Profile(value, trace)


@dataclass
class _Node:
    name: str
    begin_us: float
    end_us: float
    shapes: str
    number: Any  # that ties kernels to it
    children: list[_Node] = field(default_factory=list)


def _value(
    title: str,
    trace: dict[str, Any],
    wall_us: float,
    on_gpu: bool,
    unix_ns: int,
    launches: list[dict[str, Any]],
) -> dict[str, Any]:
    events = [e for e in trace.get("traceEvents", []) if e.get("ph") == "X"]
    marker = next(
        (e for e in events if e["name"] == _MARKER and e.get("cat") == "user_annotation"), None
    )
    zero = float(marker["ts"]) if marker else min((float(e["ts"]) for e in events), default=0.0)
    events = [e for e in events if float(e["ts"]) >= zero]  # not the rehearsal
    kernels = _kernels(events)
    by_number: dict[Any, list[dict[str, Any]]] = {}
    for kernel in kernels:
        by_number.setdefault(kernel["external"], []).append(kernel)
    tree = [_node_json(root, by_number, zero) for root in _nested(events)]
    base_ns = trace.get("baseTimeNanoseconds", 0)
    for launch in launches:
        launch["name"] = short_name(launch["name"])
        launch["begin_us"] = (launch.pop("begin_ns") + unix_ns - base_ns) / 1e3 - zero
    _add_launches(tree, launches)
    gpu_us = _union([(k["begin_us"], k["end_us"]) for k in kernels])
    timeline = [
        {
            "kind": "op",
            "name": node["name"],
            "begin_us": node["begin_us"],
            "us": node["cpu_us"],
            "lane": f"CPU {depth}",
        }
        for depth, node in _flat(tree)
    ]
    timeline += [
        {
            "kind": "kernel",
            "name": k["name"],
            "begin_us": k["begin_us"] - zero,
            "us": k["us"],
            "lane": f"stream {k['stream']}",
        }
        for k in kernels
    ]
    timeline += [
        {
            "kind": "kernel",
            "name": one["name"],
            "begin_us": one["begin_us"],
            "us": one["us"],
            "lane": "engine",
        }
        for one in launches
    ]
    idle, verdict = None, "no GPU: the tree shows CPU time, and kernels ran on the engine"
    if on_gpu:
        idle = max(0.0, 1 - gpu_us / wall_us) if wall_us else 0.0
        verdict = _verdict(gpu_us, wall_us, kernels)
    return {
        "format": 1,
        "title": title,
        "time": "GPU time" if on_gpu else "engine time",
        "wall_us": wall_us,
        "gpu_us": gpu_us,
        "gpu_idle": idle,
        "verdict": verdict,
        "tree": tree,
        "timeline": timeline,
        "kernel_count": len(kernels) or len(launches),
    }


def _verdict(gpu_us: float, wall_us: float, kernels: list[dict[str, Any]]) -> str:
    if not kernels:
        return "no kernel ran on the GPU"
    mean = gpu_us / len(kernels)
    if gpu_us < 0.5 * wall_us and mean < 20:
        return (
            f"launch bound: the GPU worked {gpu_us:.0f} us of {wall_us:.0f} us, in {len(kernels)} "
            f"kernels of "
            f"{mean:.1f} us on average; fuse them, or use a CUDA graph"
        )
    if gpu_us < 0.5 * wall_us:
        return f"host bound: the GPU worked {gpu_us:.0f} us of {wall_us:.0f} us"
    return f"GPU bound: the GPU worked {gpu_us:.0f} us of {wall_us:.0f} us"


def _union(spans: list[tuple[float, float]]) -> float:
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def _nested(events: list[dict[str, Any]]) -> list[_Node]:
    """Each op under the one that was open when it began, thread by thread."""
    roots: list[_Node] = []
    threads: dict[Any, list[_Node]] = {}
    ops = [
        e
        for e in events
        if e.get("cat") in ("cpu_op", "user_annotation") and e["name"] not in _NOT_OPS
    ]
    for event in sorted(ops, key=lambda e: (float(e["ts"]), -float(e["dur"]))):
        args, begin = event.get("args", {}), float(event["ts"])
        node = _Node(
            event["name"],
            begin,
            begin + float(event["dur"]),
            _shapes(args),
            args.get("External id"),
        )
        open_nodes = threads.setdefault(event.get("tid"), [])
        while open_nodes and open_nodes[-1].end_us < node.end_us:
            open_nodes.pop()
        (open_nodes[-1].children if open_nodes else roots).append(node)
        open_nodes.append(node)
    return roots


def _shapes(args: dict[str, Any]) -> str:
    shapes = [s for s in args.get("Input Dims", []) if s]
    return " ".join(
        "x".join(map(str, s)) if all(isinstance(n, int) for n in s) else "[...]" for s in shapes
    )


def short_name(name: str) -> str:
    """A kernel's name without "void" and arguments; the trace keeps the whole."""
    depth = 0
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0 and not name.startswith("(anonymous namespace)", at):
            name = name[:at]
            break
    return name.removeprefix("void ")


def _kernels(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for event in events:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        args = event.get("args", {})
        found.append(
            {
                "name": short_name(event["name"]) if event["cat"] == "kernel" else event["name"],
                "begin_us": float(event["ts"]),
                "end_us": float(event["ts"]) + float(event["dur"]),
                "us": float(event["dur"]),
                "stream": args.get("stream", 0),
                "grid": args.get("grid"),
                "block": args.get("block"),
                "registers": args.get("registers per thread"),
                "shared_bytes": args.get("shared memory"),
                "occupancy": args.get("est. achieved occupancy %"),
                "external": args.get("External id"),
                "bytes": args.get("bytes"),
            }
        )
    return sorted(found, key=lambda k: k["begin_us"])


def _node_json(
    node: _Node, by_number: dict[Any, list[dict[str, Any]]], zero: float
) -> dict[str, Any]:
    children = [_node_json(child, by_number, zero) for child in node.children]
    cpu_us = node.end_us - node.begin_us
    kernels = [
        {
            key: kernel[key]
            for key in (
                "name",
                "us",
                "grid",
                "block",
                "registers",
                "shared_bytes",
                "occupancy",
                "stream",
                "bytes",
            )
        }
        for kernel in (by_number.get(node.number, []) if node.number is not None else [])
    ]
    own_gpu = sum(kernel["us"] for kernel in kernels)
    return {
        "name": node.name,
        "shapes": node.shapes,
        "begin_us": node.begin_us - zero,
        "cpu_us": cpu_us,
        "cpu_self_us": cpu_us - sum(child["cpu_us"] for child in children),
        "gpu_self_us": own_gpu,
        "gpu_us": own_gpu + sum(child["gpu_us"] for child in children),
        "kernels": kernels,
        "children": children,
    }


def add_bytes(tree: list[dict[str, Any]], moved: dict[str, list[int]]) -> None:
    """To each op what it moves, where the profile saw as many calls of it as the dispatcher did; to
    a kernel, where it is the op's only one."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for _, node in _flat(tree):
        by_name.setdefault(node["name"], []).append(node)
    for name, bytes_of_calls in moved.items():
        nodes = by_name.get(name, [])
        if len(nodes) != len(bytes_of_calls):
            continue
        for node, total in zip(nodes, bytes_of_calls):
            node["bytes"] = total
            if len(node["kernels"]) == 1 and node["kernels"][0]["bytes"] is None:
                node["kernels"][0]["bytes"] = total


def _add_launches(tree: list[dict[str, Any]], launches: list[dict[str, Any]]) -> None:
    """What the engine ran, under the deepest op that was open when it did: its clock is the
    profiler's."""
    for launch in launches:
        begin = launch["begin_us"]
        nodes, home = tree, None
        while True:
            inside = [n for n in nodes if n["begin_us"] <= begin <= n["begin_us"] + n["cpu_us"]]
            if not inside:
                break
            home, nodes = inside[-1], inside[-1]["children"]
        row = {
            "name": launch["name"],
            "us": launch["us"],
            "grid": launch["grid"],
            "block": launch["block"],
            "registers": None,
            "shared_bytes": launch["shared_bytes"],
            "occupancy": None,
            "stream": "engine",
            "bytes": None,
        }
        if home is not None:
            home["kernels"].append(row)


def _flat(tree: list[dict[str, Any]], depth: int = 0) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for node in tree:
        found.append((depth, node))
        found += _flat(node["children"], depth + 1)
    return found


def profile_script(path: str, arguments: Sequence[str]) -> Profile:
    """A whole script under the profiler, as `python path arguments` would run it."""
    import runpy
    import sys

    before = sys.argv
    sys.argv = [path, *arguments]
    try:
        return _recorded(
            lambda: _run_script(runpy, path), Path(path).name, torch_module().cuda.is_available()
        )
    finally:
        sys.argv = before


def _run_script(runpy: Any, path: str) -> None:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise KilnError(f"{path} ended with {end.code}", "the script called sys.exit") from None


def profile_named(target: Optional[str]) -> Callable[..., Any]:
    from ._against import named

    if not target:
        raise KilnError("nothing to profile", "no script, op or function was named")
    return named(target)
