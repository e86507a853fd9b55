# SPDX-License-Identifier: Apache-2.0
"""Is `kiln bench` right? It is held against CUPTI, a plain program of CUDA events, Triton's do_bench and itself.

    python benchmarks/bench_bars.py --out DIR        writes bench.md and bench.json; needs a GPU, takes under 4 minutes

Agreement with kernel durations (torch.profiler's CUPTI records) and with plain events, A against A, a planted slowdown of
3 %, a competing process, what the harness costs the host, and how long a default benchmark takes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import kiln
import torch
from kiln import _measure

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
from sampling import machine  # noqa: E402

SIZES = (22, 24, 26, 28)
QUICK = {"warm_up_least_s": 0.1, "time_least_s": 0.25, "side_s": 0.03, "time_most_s": 3}
FAST = {
    "warm_up_least_s": 0.01,
    "warm_up_most_s": 0.05,
    "time_least_s": 0.1,
    "time_most_s": 0.6,
    "side": False,
    "kernels": False,
    "roof": False,
}


def pair(bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(1 << bits, device="cuda"), torch.randn(1 << bits, device="cuda")


def kineto_us(call: Callable[[], Any], flush: torch.Tensor, count: int = 40) -> float:
    """The median kernel duration of a call by torch.profiler, L2 flushed before each."""
    from torch.profiler import ProfilerActivity, profile

    def kernels(body: Callable[[], Any]) -> list[tuple[str, float]]:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            body()
            torch.cuda.synchronize()
        found = [e for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]
        return [
            (e.name, e.time_range.end - e.time_range.start) for e in sorted(found, key=lambda e: e.time_range.start)
        ]

    own = {name for name, _ in kernels(call)}

    def flushed() -> None:
        for _ in range(count):
            flush.zero_()
            call()

    times: list[float] = []
    per_call = [us for name, us in kernels(flushed) if name in own and "Memset" not in name]
    each = max(1, len(per_call) // count)
    for i in range(0, len(per_call) - each + 1, each):
        times.append(sum(per_call[i : i + each]))
    return statistics.median(times)


def event_us(call: Callable[[], Any], flush: torch.Tensor, count: int = 200) -> float:
    """As everybody writes it in Python: events around a call, L2 flushed before."""
    times = []
    for i in range(count):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush.zero_()
        begin.record()
        call()
        end.record()
        end.synchronize()
        if i >= count // 4:
            times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times)


def agreement(out: dict[str, Any]) -> None:
    k = kiln.load(ROOT / "kernels")
    plain = kiln.load(ROOT / "benchmarks/plain_op.cu")
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.empty(2 * cache, dtype=torch.uint8, device="cuda")
    program = plain_program()
    plain_us = dict(
        line.split()
        for line in subprocess.run(
            [program, *map(str, SIZES)], check=True, capture_output=True, text=True
        ).stdout.splitlines()
    )
    try:
        from triton.testing import do_bench
    except ImportError:
        do_bench = None
    rows = []
    for bits in SIZES:
        x, y = pair(bits)
        for name, function, args in (
            ("torch.add", torch.add, (x, y)),
            ("my_add", k.my_add, (x, y)),
            ("my_fast_add", k.my_fast_add, (x, y)),
            ("fused_abs", k.fused_abs, (x,)),
            ("plain_add", plain.plain_add_op, (x, y)),
        ):
            result = kiln.bench(function, *args, check=False, options=QUICK)
            one = result.json["contenders"][0]
            kernel = one["kernel"]["median_ns"] / 1e3 if one["kernel"] else None
            call = lambda f=function, a=args: f(*a)  # noqa: E731
            row = {
                "op": name,
                "size": f"2^{bits}",
                "events_us": result.median_ns / 1e3,
                "kernel_us": kernel,
                "kernel_why": one.get("kernel_why", ""),
                "kineto_us": kineto_us(call, flush),
                "python_events_us": event_us(call, flush),
                "plain_us": float(plain_us[str(bits)]) if name == "plain_add" else None,
                "do_bench_us": 1e3 * do_bench(call, warmup=25, rep=60, return_mode="median") if do_bench else None,
                "empty_pair_us": result.json["empty_pair_ns"] / 1e3,
                "hot_us": one["hot"]["median_ns"] / 1e3,
            }
            rows.append(row)
            print(row, flush=True)
    out["agreement"] = rows


def plain_program() -> str:
    build = ROOT / "build/bench-bars"
    build.mkdir(parents=True, exist_ok=True)
    major, minor = torch.cuda.get_device_capability()
    nvcc = "nvcc" if not os.environ.get("CUDA_HOME") else os.environ["CUDA_HOME"] + "/bin/nvcc"
    command = [
        nvcc,
        "-O3",
        f"-arch=sm_{major}{minor}",
        "-cudart=shared",
        "-o",
        str(build / "plain_events"),
        str(ROOT / "benchmarks/plain_events.cu"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return str(build / "plain_events")


def compare_once(a_bits: int, factor: float, seed: int, cache: dict) -> dict[str, Any]:
    """One comparison by the core alone; the second contender has `factor` times as many elements."""
    if (a_bits, factor) not in cache:
        n = 1 << a_bits
        m = int(n * factor) // 4 * 4
        cache[a_bits, factor] = [
            [torch.randn(n, device="cuda") for _ in range(3)],
            [torch.randn(m, device="cuda") for _ in range(3)],
        ]
    (a, b, c), (d, e, f) = cache[a_bits, factor]
    stream = torch.cuda.current_stream()
    rows = [
        _measure.Contender("a", lambda _: torch.add(a, b, out=c), bytes=12 * a.numel()),
        _measure.Contender("b", lambda _: torch.add(d, e, out=f), bytes=12 * d.numel()),
    ]
    value = _measure.run({"device": "cuda", "stream": stream.cuda_stream, "seed": seed, **FAST}, rows)
    return {
        "verdict": value["comparisons"][0]["verdict"],
        "ratio": value["comparisons"][0]["ratio"],
        "traps": sorted({f["trap"] for f in value["findings"]}),
        "seconds": value["seconds"],
    }


def verdicts(out: dict[str, Any], same: int, planted: int) -> None:
    with torch.cuda.stream(torch.cuda.Stream()):
        cache: dict = {}
        equal = [compare_once((20, 22, 24, 26)[i % 4], 1.0, i, cache) for i in range(same)]
        slower = [compare_once((24, 25, 26)[i % 3], 1.03, i, cache) for i in range(planted)]
    false = sum(one["verdict"] in ("FASTER", "SLOWER") for one in equal)
    found = sum(one["verdict"] == "FASTER" for one in slower)  # A is faster than B, which has 3 % more to do
    out["same"] = {"count": same, "false": false, "runs": equal}
    out["planted"] = {"count": planted, "found": found, "runs": slower}
    accused = sum("competing process" in one["traps"] for one in equal + slower)
    out["accused_alone"] = {"count": same + planted, "accused": accused}
    print(
        f"A against A: {false} false verdicts of {same}; planted 3 %: {found} of {planted}; accused {accused}",
        flush=True,
    )


COMPETITOR = """
import torch, sys
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
print("ready", flush=True)
while True:
    for _ in range(50): a @ a
    torch.cuda.synchronize()
"""


def competitor(out: dict[str, Any], runs: int) -> None:
    child = subprocess.Popen([sys.executable, "-c", COMPETITOR], stdout=subprocess.PIPE, text=True)
    try:
        child.stdout.readline()
        time.sleep(1)
        x, y = pair(24)
        results = [kiln.bench(torch.add, x, y, check=False, options=FAST) for _ in range(runs)]
    finally:
        child.kill()
        child.wait()
    warned = sum("competing process" in one.traps() for one in results)
    out["competitor"] = {"runs": runs, "warned": warned, "findings": [one.findings for one in results]}
    print(f"competing process: {warned} of {runs} runs warned", flush=True)


def costs(out: dict[str, Any]) -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        nothing = _measure.Contender("nothing", lambda _: None)
        value = _measure.run(
            {"device": "cuda", "stream": stream.cuda_stream, **FAST, "side": True, "side_s": 0.05}, [nothing]
        )
    callback = value["contenders"][0]["launch"]["median_ns"]
    k = kiln.load(ROOT / "kernels")
    x, y = pair(24)
    began = time.perf_counter()
    kiln.bench(k.my_add, x, y, check=False)
    unchecked = time.perf_counter() - began
    began = time.perf_counter()
    result = kiln.bench(k.my_add, x, y, against=torch.add)
    compared = time.perf_counter() - began
    out["costs"] = {
        "events_host_ns": value["harness_host_ns"],
        "python_callback_ns": callback,
        "default_bench_s": unchecked,
        "default_bench_against_s": compared,
        "core_s": result.json["seconds"],
    }
    print(out["costs"], flush=True)
    print(result, flush=True)


def commands(out: dict[str, Any], folder: Path) -> None:
    """What the commands print on this machine, for the docs; and how long the plain one takes."""
    command = str(Path(kiln.__file__).parent / "bin/kiln")
    op = [str(ROOT / "kernels"), "my_add", "randn:f32:2^24", "randn:f32:2^24"]
    fused = folder / "fused.py"
    fused.write_text(
        f"import torch, kiln\nk = kiln.load({str(ROOT / 'kernels')!r})\nx = torch.randn(1 << 24, device='cuda')\n"
        "torch.cuda.synchronize()\ntorch.sqrt(x * x)\nk.fused_abs(x)\n"
    )
    wanted = {
        "plain": ["bench", *op],
        "explain": ["bench", *op, "--against", "torch.add", "--explain", "--html", str(folder / "bench-page.html")],
        "cold": ["bench", *op, "--cold", "--cold-runs", "5", "--html", str(folder / "bench-cold.html")],
        "sweep": [
            "bench",
            op[0],
            "my_add",
            "randn:{t}:{n}",
            "randn:{t}:{n}",
            "--axis",
            "n=2^20,2^24",
            "--axis",
            "t=f32,bf16",
            "--bytes",
            "3 * n * size(t)",
            "--quick",
            "--markdown",
            "-",
        ],
        "profile": ["profile", str(fused), "--html", str(folder / "profile-page.html")],
    }
    subprocess.run([command, "build", op[0]], capture_output=True)
    out["commands"] = {}
    for name, words in wanted.items():
        began = time.perf_counter()
        env = {**os.environ, "KILN_PYTHON": sys.executable}
        done = subprocess.run([command, *words], capture_output=True, text=True, env=env, timeout=120)
        seconds = time.perf_counter() - began
        out["commands"][name] = {"code": done.returncode, "seconds": seconds}
        text = f"$ kiln {' '.join(words)}\n{done.stdout}{done.stderr}\nexit {done.returncode}, {seconds:.2f} s\n"
        (folder / f"bench-{name}.txt").write_text(text)
        print(text, flush=True)


def percent(a: float | None, b: float | None) -> str:
    return "" if not a or not b else f"{100 * (a / b - 1):+.2f} %"


def markdown(out: dict[str, Any]) -> str:
    lines = ["# `kiln bench` against others", "", "Written by `python benchmarks/bench_bars.py`.", ""]
    if "agreement" in out:
        lines += [
            "## Agreement",
            "",
            "Microseconds, cold L2, medians. `kernel` is kiln's own CUPTI time of the call's kernels, `kineto` that of",
            "torch.profiler; `events` is kiln's headline, `python events` a plain loop of torch.cuda.Event, `plain` the",
            "program benchmarks/plain_events.cu, `do_bench` is Triton's.",
            "",
            "| op | size | kernel | kineto | kernel/kineto | events | events/kineto | python events | events/python | plain | events/plain | do_bench |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for r in out["agreement"]:
            cells = [
                r["op"],
                r["size"],
                *(f"{r[c]:.2f}" if r[c] else "" for c in ("kernel_us", "kineto_us")),
                percent(r["kernel_us"], r["kineto_us"]),
                f"{r['events_us']:.2f}",
                percent(r["events_us"], r["kineto_us"]),
                f"{r['python_events_us']:.2f}",
                percent(r["events_us"], r["python_events_us"]),
                f"{r['plain_us']:.2f}" if r["plain_us"] else "",
                percent(r["events_us"], r["plain_us"]),
                f"{r['do_bench_us']:.2f}" if r["do_bench_us"] else "",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "## Verdicts", "", "| what | wanted | seen |", "|---|---|---|"]
    if "same" in out:
        s, p, a = out["same"], out["planted"], out["accused_alone"]
        lines += [
            f"| A against A, false verdicts | at most 5 % | {s['false']} of {s['count']} |",
            f"| 3 % more work, found | at least 95 % | {p['found']} of {p['count']} |",
            f"| a competing process seen where there is none | 0 | {a['accused']} of {a['count']} |",
        ]
    if "competitor" in out:
        c = out["competitor"]
        lines.append(f"| a competing process, warned | every run | {c['warned']} of {c['runs']} |")
    if "costs" in out:
        c = out["costs"]
        host = c["events_host_ns"] + c["python_callback_ns"]
        lines += [
            f"| host time of the harness a call (two events and a Python callback) | under 3 us | {host / 1e3:.2f} us |",
            f"| a default kiln.bench of one op | under 3 s | {c['default_bench_s']:.2f} s |",
            f"| the same against torch.add | | {c['default_bench_against_s']:.2f} s |",
        ]
    if "commands" in out:
        plain = out["commands"]["plain"]
        lines.append(
            f"| the command `kiln bench` of one op, no torch | under 3 s | {plain['seconds']:.2f} s (exit {plain['code']}) |"
        )
    lines += ["", "| machine | |", "|---|---|"] + [f"| {n} | {v} |" for n, v in out["machine"].items()]
    for name, why in out.get("failed", {}).items():
        lines.append(f"\n{name} failed: {why}")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold kiln bench against CUPTI, plain events, Triton and itself.")
    parser.add_argument("--out", type=Path, default=ROOT / "build/benchmarks")
    parser.add_argument("--same", type=int, default=200, help="comparisons of equals (200)")
    parser.add_argument("--planted", type=int, default=100, help="comparisons with 3 %% more work (100)")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped, no GPU")
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    out: dict[str, Any] = {"machine": machine(), "failed": {}}
    parts = {
        "costs": lambda: costs(out),
        "agreement": lambda: agreement(out),
        "commands": lambda: commands(out, given.out),
        "competitor": lambda: competitor(out, 10),
        "verdicts": lambda: verdicts(out, given.same, given.planted),
    }
    for name, part in parts.items():
        began = time.perf_counter()
        try:
            part()
        except Exception as error:  # the other parts still tell
            out["failed"][name] = f"{type(error).__name__}: {error}"
            print(f"{name} failed: {error}", flush=True)
        print(f"-- {name}: {time.perf_counter() - began:.1f} s", flush=True)
        with contextlib.suppress(KeyError):
            (given.out / "bench.md").write_text(markdown(out))
        (given.out / "bench.json").write_text(json.dumps(out, indent=1) + "\n")
    print((given.out / "bench.md").read_text())
    return 1 if out["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
