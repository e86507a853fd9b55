# SPDX-License-Identifier: Apache-2.0
"""Is `kiln bench` right? It is held against CUPTI, a plain program of CUDA events, Triton's
do_bench and itself.

    python benchmarks/bench_bars.py --out DIR        writes bench.md, bench.json and
                                                     bench-files.tar.gz (what the commands printed,
                                                     and their pages); needs a GPU, takes 4 minutes

Agreement with kernel durations (torch.profiler's CUPTI records; `--parts ncu`: ncu's) and with
plain events, what of a loop changes a short kernel's time, A against A, a planted slowdown of 3 %,
a competing process, what the harness costs the host, and how long a default benchmark takes.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any, Callable

import kiln
import torch
from kiln import _measure

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build/bench-bars"
sys.path.insert(0, str(ROOT / "benchmarks"))
from bench_report import bars, diagnosis_lines, markdown  # noqa: E402
from kernel_clocks import compare, diagnosis, kineto, ncu, spread  # noqa: E402
from sampling import machine  # noqa: E402

SIZES = (22, 24, 26, 28)
ROUNDS = 7
PLACES = 2  # sets of tensors a row: where they lie in memory changes a time by 1 %
QUICK = {
    "min_warm_up_s": 0.05,
    "min_time_s": 0.15,
    "side_s": 0.01,
    "max_time_s": 3,
    "rotations": 1,
}
FAST = {
    "min_warm_up_s": 0.01,
    "max_warm_up_s": 0.05,
    "min_time_s": 0.07,
    "max_time_s": 0.6,
    "side": False,
    "kernels": False,
    "roof": False,
    "rotations": 1,
    # less than 0.1 s is enough for a verdict; the median of an add of 2^24 has two modes and takes
    # longer
    "precision_percent": 5,
}


def pair(bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(1 << bits, device="cuda"), torch.randn(1 << bits, device="cuda")


def python_events(
    call: Callable[[], Any], flush: torch.Tensor, in_flight: int, count: int = 200
) -> dict[str, float]:
    """As everybody writes it in Python: events around a call in us, L2 flushed before."""
    times = []
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(in_flight)]
    for i in range(0, count, in_flight):
        for begin, end in pairs:
            flush.zero_()
            begin.record()
            call()
            end.record()
        torch.cuda.synchronize()
        if i >= count // 4:
            times += [1e3 * begin.elapsed_time(end) for begin, end in pairs]
    return spread(times)


def agreement_at(
    name: str, function: Callable, args: tuple, flush: torch.Tensor, do_bench: Any, rounds: int
) -> dict[str, Any]:
    """All clocks on the same tensors, the result in the same memory."""

    def call() -> None:
        function(*args)

    gc.collect()
    torch.cuda.empty_cache()
    call()
    result = kiln.bench(function, *args, name=name, check=False, options=QUICK)
    one = result.json["contenders"][0]
    seen: dict[str, Any] = {
        "events": {c: one["cold"][f"{c}_ns"] / 1e3 for c in ("p25", "median", "p75", "trimmed")},
        "count": one["cold"]["count"],
        "late": one["cold"]["late"],
        "hot_us": one["hot"]["median_ns"] / 1e3,
        "empty_pair_us": result.json["empty_pair_ns"] / 1e3,
        "cupti_clock": one.get("cupti_clock"),
        "kernel_why": one.get("kernel_why", ""),
        "traps": sorted(result.traps()),
    }
    seen["rounds"] = compare(
        function, args, flush, rounds, 200 if args[0].numel() <= 1 << 24 else 80
    )
    seen["python_events"] = python_events(call, flush, 1)
    seen["python_events_16_in_flight"] = python_events(call, flush, 16)
    if name == "plain_add":
        deep = kiln.bench(
            function,
            *args,
            name=name,
            check=False,
            options={**QUICK, "in_flight": 16, "side": False},
        )
        cold = deep.json["contenders"][0]["cold"]
        seen["events_16_in_flight"] = {
            c: cold[f"{c}_ns"] / 1e3 for c in ("p25", "median", "p75", "trimmed")
        }
    if do_bench:
        seen["do_bench"] = spread(
            [1e3 * ms for ms in do_bench(call, warmup=10, rep=30, return_mode="all")]
        )
    return seen


def round_line(one: dict[str, Any]) -> str:
    return "; ".join(
        f"{clock} {seen['median']:.2f} median, {seen['trimmed']:.2f} mean"
        for clock, seen in one.items()
        if seen
    )


def agreement(out: dict[str, Any]) -> None:
    k = kiln.load(ROOT / "kernels")
    plain = kiln.load(ROOT / "benchmarks/plain_op.cu")
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    lines = subprocess.run(
        [plain_program(), *map(str, SIZES)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    names = (
        "bits",
        "place",
        "in_flight",
        "stream",
        "busy_us",
        "median_us",
        "p25_us",
        "p75_us",
        "trimmed_us",
    )
    out["plain"] = [
        dict(zip(names, (word if word.isalpha() else float(word) for word in line.split())))
        for line in lines
    ]
    try:
        from triton.testing import do_bench
    except ImportError:
        do_bench = None
    out["agreement"] = []
    # Not the default stream: on any other kiln.bench takes the caller's, and memory of torch
    # belongs to a stream.
    with torch.cuda.stream(torch.cuda.Stream()):
        flush = torch.empty(2 * cache, dtype=torch.uint8, device="cuda")
        kineto(lambda: flush.zero_(), flush, 8)  # the profiler's own start
        for bits in SIZES:
            tensors = [pair(bits) for _ in range(PLACES if bits < 26 else 1)]
            for name, function in (
                ("torch.add", torch.add),
                ("my_add", k.my_add),
                ("my_fast_add", k.my_fast_add),
                ("fused_abs", k.fused_abs),
                ("plain_add", plain.plain_add_op),
            ):
                count = 1 if name == "fused_abs" else 2
                rounds = (
                    ROUNDS if bits < 26 else 3
                )  # at the first place: a ratio within rounds is of the same tensors
                places = [
                    agreement_at(
                        name,
                        function,
                        one[:count],
                        flush,
                        do_bench,
                        rounds if one is tensors[0] else 0,
                    )
                    for one in tensors
                ]
                out["agreement"].append({"op": name, "size": f"2^{bits}", "places": places})
                print(
                    name,
                    f"2^{bits}",
                    *(round_line(one) for one in places[0]["rounds"]),
                    sep="\n  ",
                    flush=True,
                )
            del tensors


def loops(out: dict[str, Any]) -> None:
    """Which part of a loop changes a short kernel's time?"""
    plain = kiln.load(ROOT / "benchmarks/plain_op.cu")
    out["loops"] = {}
    with torch.cuda.stream(torch.cuda.Stream()):
        flush = torch.empty(
            2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.uint8, device="cuda"
        )
        kineto(lambda: flush.zero_(), flush, 8)
        x, y = pair(SIZES[0])
        for name, function in (("torch.add", torch.add), ("plain_add", plain.plain_add_op)):
            rows = out["loops"][f"{name} 2^{SIZES[0]}"] = diagnosis(function, (x, y), flush)
            print("\n".join([name, *diagnosis_lines(rows)]), flush=True)


def plain_program() -> str:
    major, minor = torch.cuda.get_device_capability()
    nvcc = "nvcc" if not os.environ.get("CUDA_HOME") else os.environ["CUDA_HOME"] + "/bin/nvcc"
    command = [
        nvcc,
        "-O3",
        f"-arch=sm_{major}{minor}",
        "-cudart=shared",
        "-o",
        str(WORK / "plain_events"),
        str(ROOT / "benchmarks/plain_events.cu"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return str(WORK / "plain_events")


def add_of(x: torch.Tensor, y: torch.Tensor) -> Callable[..., torch.Tensor]:
    return lambda *_: torch.add(x, y)


def compare_once(function: Callable, args: tuple, peer: Callable, seed: int) -> dict[str, Any]:
    result = kiln.bench(
        function, *args, against={"b": peer}, name="a", check=False, options={**FAST, "seed": seed}
    )
    comparison = result.json["comparisons"][0]
    return {
        "verdict": comparison["verdict"],
        **{name: comparison[name] for name in ("ratio", "threshold", "a_against_a")},
        "counts": [one["cold"]["count"] for one in result.json["contenders"]],
        "late": [one["cold"]["late"] for one in result.json["contenders"]],
        "traps": sorted(result.traps()),
        "seconds": result.json["seconds"],
    }


def verdicts(out: dict[str, Any], same: int, planted: int) -> None:
    """A against A is one function on the same tensors, under two names; the planted one has 3 %
    more elements."""
    sizes, larger = (20, 22, 24, 26), (24, 25, 26)
    with torch.cuda.stream(torch.cuda.Stream()):
        equal, moved, slower = [], [], []
        tensors = {bits: pair(bits) for bits in {*sizes, *larger}}
        for i in range(same):
            bits = sizes[i % len(sizes)]
            equal.append(
                {
                    "bits": bits,
                    **compare_once(torch.add, tensors[bits], lambda a, b: torch.add(a, b), i),
                }
            )
        others = {bits: pair(bits) for bits in sizes}
        for i in range(2 * len(sizes)):
            bits = sizes[i % len(sizes)]
            moved.append(
                {"bits": bits, **compare_once(torch.add, tensors[bits], add_of(*others[bits]), i)}
            )
        del others
        more = {
            bits: [torch.randn(int(1.03 * (1 << bits)) // 4 * 4, device="cuda") for _ in "ab"]
            for bits in larger
        }
        for i in range(planted):
            bits = larger[i % len(larger)]
            slower.append(
                {"bits": bits, **compare_once(torch.add, tensors[bits], add_of(*more[bits]), i)}
            )
    false = sum(one["verdict"] in ("FASTER", "SLOWER") for one in equal)
    found = sum(
        one["verdict"] == "FASTER" for one in slower
    )  # A is faster than B, which has 3 % more to do
    out["same"] = {"count": same, "false": false, "runs": equal}
    out["other_memory"] = {
        "count": len(moved),
        "told_apart": sum(one["verdict"] in ("FASTER", "SLOWER") for one in moved),
        "runs": moved,
    }
    out["planted"] = {"count": planted, "found": found, "runs": slower}
    accused = sum("competing process" in one["traps"] for one in equal + slower)
    out["accused_alone"] = {"count": same + planted, "accused": accused}
    print(
        f"A against A: {false} false verdicts of {same}; planted 3 %: {found} of {planted}; "
        f"accused {accused}",
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
    out["competitor"] = {
        "runs": runs,
        "warned": warned,
        "findings": [one.findings for one in results],
    }
    print(f"competing process: {warned} of {runs} runs warned", flush=True)


def costs(out: dict[str, Any]) -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        nothing = _measure.Contender("nothing", lambda _: None)
        core = {name: value for name, value in FAST.items() if name != "rotations"}
        value = _measure.run(
            {"device": "cuda", "stream": stream.cuda_stream, **core, "side": True, "side_s": 0.05},
            [nothing],
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


FUSED = """
import kiln, torch
from torch.profiler import record_function
k = kiln.load({kernels!r})
x = torch.randn(1 << 24, device="cuda")

def both():
    with record_function("torch.sqrt(x * x)"):
        torch.sqrt(x * x)
    with record_function("fused_abs(x)"):
        k.fused_abs(x)
"""


def commands(out: dict[str, Any], archive: Path) -> None:
    """What the commands print on this machine, for the docs; and how long the plain one takes."""
    command = str(Path(kiln.__file__).parent / "bin/kiln")
    pages = WORK.relative_to(ROOT)
    op = ["kernels", "my_add", "randn:f32:2^24", "randn:f32:2^24"]
    sweep = ["randn:{t}:{n}", "randn:{t}:{n}", "--axis", "n=2^20,2^24", "--axis", "t=f32,bf16"]
    kept = ["--baseline", f"{pages}/first.jsonl", "--history", f"{pages}/history.jsonl"]
    (WORK / "fused.py").write_text(FUSED.format(kernels=str(ROOT / "kernels")))
    for name in ("first", "history"):
        (WORK / f"{name}.jsonl").unlink(missing_ok=True)
    wanted = {
        "plain": ["bench", *op],
        "explain": [
            "bench",
            *op,
            "--against",
            "torch.add",
            "--naive-times",
            "--html",
            f"{pages}/bench.html",
        ],
        "cold": ["bench", *op, "--cold", "--cold-runs", "3", "--html", f"{pages}/cold.html"],
        "sweep": [
            "bench",
            *op[:2],
            *sweep,
            "--bytes",
            "3 * n * size(t)",
            "--quick",
            "--markdown",
            "-",
        ],
        "save": ["bench", *op, "--quick", *kept],
        "again": ["bench", *op, "--quick", *kept],
        "profile": ["profile", "fused.both", "--html", "profile.html", "--trace", "trace.json"],
    }
    subprocess.run([command, "build", op[0]], capture_output=True, cwd=ROOT)
    out["commands"] = {}
    env = {**os.environ, "KILN_PYTHON": sys.executable}
    for name, words in wanted.items():
        began = time.perf_counter()
        place = WORK if name == "profile" else ROOT
        done = subprocess.run(
            [command, *words], capture_output=True, text=True, env=env, timeout=120, cwd=place
        )
        seconds = time.perf_counter() - began
        shown = [f"'{word}'" if set(word) & set("{}* ") else word for word in words]
        text = (
            f"$ kiln {' '.join(shown)}\n{done.stdout}{done.stderr}\nexit {done.returncode}, "
            f"{seconds:.2f} s\n"
        )
        text = text.replace(f"{ROOT}/", "")
        out["commands"][name] = {"code": done.returncode, "seconds": seconds, "text": text}
        (WORK / f"{name}.txt").write_text(text)
        print(text, flush=True)
    with tarfile.open(archive, "w:gz") as files:
        for path in sorted(WORK.iterdir()):
            if path.suffix in (".txt", ".html", ".json", ".jsonl"):
                files.add(path, path.name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Hold kiln bench against CUPTI, plain events, Triton and itself."
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build/benchmarks")
    parser.add_argument("--same", type=int, default=200, help="comparisons of equals (200)")
    parser.add_argument(
        "--planted", type=int, default=100, help="comparisons with 3 %% more work (100)"
    )
    parser.add_argument(
        "--parts",
        type=lambda text: text.split(","),
        help="verdicts,agreement,loops,ncu,costs,competitor,commands: only these, into the "
        "bench.json that is there",
    )
    parser.add_argument(
        "--onto",
        type=Path,
        metavar="FILE",
        help="a bench.json whose other parts are kept, with their dates",
    )
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped, no GPU")
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    parts = {
        "verdicts": lambda out: verdicts(out, given.same, given.planted),
        "agreement": agreement,
        "loops": loops,
        "ncu": lambda out: out.update(ncu=ncu(plain_program(), SIZES)),
        "costs": costs,
        "competitor": lambda out: competitor(out, 10),
        "commands": lambda out: commands(out, given.out / "bench-files.tar.gz"),
    }
    file = given.out / "bench.json"
    if not given.parts:
        # In another process: the commands would tell of one that has a context on the GPU as of a
        # neighbour.
        file.unlink(missing_ok=True)
        first = ["--parts", ",".join(name for name in parts if name not in ("commands", "ncu"))]
        counts = ["--same", str(given.same), "--planted", str(given.planted)]
        subprocess.run([sys.executable, __file__, "--out", str(given.out), *first, *counts])
    known = file if file.exists() or not given.onto else given.onto
    out: dict[str, Any] = json.loads(known.read_text()) if known.exists() else {}
    known_parts = [name for name in parts if {"verdicts": "same"}.get(name, name) in out]
    dates = out.setdefault("dates", dict.fromkeys(known_parts, out.get("machine", {}).get("date")))
    out.update(machine=machine(), failed=out.get("failed", {}))
    for name in given.parts or ["commands"]:
        began = time.perf_counter()
        try:
            parts[name](out)
            out["failed"].pop(name, None)
        except Exception as error:  # the other parts still tell
            out["failed"][name] = f"{type(error).__name__}: {error}"
            print(f"{name} failed: {error}", flush=True)
        dates[name] = out["machine"]["date"]
        out.setdefault("seconds", {})[name] = time.perf_counter() - began
        print(f"-- {name}: {out['seconds'][name]:.1f} s", flush=True)
        file.write_text(
            "{\n"
            + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items())
            + "\n}\n"
        )
        with contextlib.suppress(KeyError, ValueError, TypeError):
            (given.out / "bench.md").write_text(markdown(out))
    print((given.out / "bench.md").read_text())
    return 1 if out["failed"] or not all(ok for *_, ok in bars(out)) else 0


if __name__ == "__main__":
    sys.exit(main())
