# SPDX-License-Identifier: Apache-2.0
"""Does `kiln tune` keep its promises on this machine? Tunes the portable path of fa_s512 at one
shape, all configurations, then with fewer trials, and prints each bar with its figure.

    python benchmarks/tune.py --out FOLDER        tune.json, tune.html, tune.md, fa_builds.json
                                                  there; three minutes

Bars: at least 100 configurations; the whole takes at most 1.3 times the longer of its two lanes
(building, measuring); a search with a third as many trials finds a configuration within 2 % of the
best of all. A trial is a configuration that gets to the GPU; how many were built for them, with
those that were pruned, stands beside it. Beside the bars: the search replayed with 100 seeds over
the times of the whole run, for one seed may be lucky, with so many trials and with fewer; what each
path of fa_s512 takes to compile, an architecture at a time, from an empty cache (at most 10 s).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sampling import machine

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ROOT / "kernels" / "fa_s512"
PATHS = {"Hopper": ("forward_",), "portable": ("portable_",)}
SEEDS = 100


def kiln(words: list[str], **environment: str) -> dict[str, Any]:
    from kiln.command import checked_command

    line = [str(checked_command()), *words, "--json"]
    done = subprocess.run(
        line,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "KILN_PYTHON": sys.executable, **environment},
    )
    if done.returncode != 0:
        raise SystemExit(
            f"error: {' '.join(line)} ended with {done.returncode}\n{done.stdout[-2000:]}"
        )
    return json.loads(done.stdout)


def compile_times() -> list[dict[str, Any]]:
    """Seconds of the slowest source of each path for each architecture: the sources compile side by
    side."""
    rows = []
    for arch in ("8.0", "9.0a"):
        with tempfile.TemporaryDirectory() as folder:
            built = kiln(
                ["build", str(PROJECT), "--arch", arch, "--build-dir", f"{folder}/build"],
                XDG_CACHE_HOME=f"{folder}/cache",
            )
        for path, stems in PATHS.items():
            seconds: dict[str, float] = {}
            for step in built["steps"]:
                source = re.search(r"(\w+)\.cu", step["what"])
                if source and source.group(1).startswith(stems):
                    seconds[source.group(1)] = seconds.get(source.group(1), 0) + step["seconds"]
            rows.append(
                {
                    "path": path,
                    "arch": arch,
                    "slowest_source_s": max(seconds.values()),
                    "sources": seconds,
                }
            )
    return rows


def verdict(ok: bool) -> str:
    return "PASS" if ok else "FAIL"


def written_compile_times(out: Path, facts: dict[str, Any]) -> list[dict[str, Any]]:
    rows = compile_times()
    text = json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n"
    (out / "fa_builds.json").write_text(text)
    return rows


def say_replays(result_file: Path, trials: int, say: Callable[[str], None]) -> None:
    """Not bars: how lucky the one seed was, and what two thirds of the trials come to, for which
    about as many are built as the bar has trials."""
    for fewer in (trials, trials * 2 // 3):
        ratios, built = [], []
        for seed in range(SEEDS):
            played = kiln(
                ["tune", "--replay", str(result_file), "--trials", str(fewer), "--seed", str(seed)]
            )
            ratios.append(played["ratio"])
            built.append(played["tried"])
        near = sum(r <= 1.02 for r in ratios)
        say(
            f"| {fewer} trials, replayed with {SEEDS} seeds | {near} of {SEEDS} within 2 %, median "
            f"{statistics.median(ratios):.4f}, worst {max(ratios):.4f}; "
            f"{statistics.mean(built):.0f} built | | |"
        )


def say_tables(result: dict[str, Any], say: Callable[[str], None]) -> None:
    """The fastest configurations, and why others were not timed."""
    say("\n| the fastest, timed in turns | us | 95 % | to the first |\n|---|---|---|---|")
    for one in result["finalists"]:
        say(
            f"| {' '.join(one['defines'])} | {one['us']:.2f} | {one['low_us']:.2f} to "
            f"{one['high_us']:.2f} | "
            f"{one['us'] / result['finalists'][0]['us']:.3f} |"
        )
    reasons: dict[str, int] = {}
    for outcome in result["outcomes"]:
        if "reason" in outcome:
            key = (
                f"{outcome['fate']}: "
                f"{re.sub(r'[0-9]+', 'N', re.sub(r'/[^ ]*/', '', outcome['reason']))[:120]}"
            )
            reasons[key] = reasons.get(key, 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:10]:
        say(f"\n{count} x {reason.rstrip()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "tune-results")
    parser.add_argument(
        "--arch", default="9.0", help="without the 'a', nothing of the Hopper path is compiled"
    )
    parser.add_argument("--no-compile-times", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)
        (given.out / "tune.md").write_text("\n".join(lines) + "\n")

    facts = machine()
    say("# kiln tune on fa_s512's portable path\n\nWritten by `benchmarks/tune.py`.\n")
    say(", ".join(f"{name} {value}" for name, value in facts.items()) + "\n")
    failed = 0

    def bar(what: str, figure: str, wanted: str, ok: bool) -> None:
        nonlocal failed
        failed += not ok
        say(f"| {what} | {figure} | {wanted} | {verdict(ok)} |")

    result_file, page = given.out / "tune.json", given.out / "tune.html"
    with tempfile.TemporaryDirectory() as cache:
        begun = time.monotonic()
        tune = [
            "tune",
            str(PROJECT),
            "forward_portable",
            "--arch",
            given.arch,
            "--no-save",
            "--fresh",
        ]
        result = kiln(
            [*tune, "--output", str(result_file), "--html", str(page)], XDG_CACHE_HOME=cache
        )
        took = time.monotonic() - begun
        say("| bar | here | wanted | |\n|---|---|---|---|")
        seconds, counts = result["seconds"], result["counts"]
        tried = len(result["outcomes"])
        bar(
            "configurations",
            f"{tried} ({', '.join(f'{n} {fate}' for fate, n in counts.items())})",
            "100",
            tried >= 100,
        )
        if not result["timed"]:
            say("\nskipped: there is no GPU, so nothing was timed")
            return 0
        ratio = seconds["total_over_longer_lane"]
        bar(
            "total time over the longer lane",
            f"{ratio:.2f} (total {seconds['total']:.1f} s, building {seconds['build']:.1f} s, "
            f"measuring "
            f"{seconds['measure']:.1f} s; the command {took:.1f} s)",
            "1.30",
            ratio <= 1.3,
        )
        allowed = result["space"]["allowed"]
        trials = max(30, allowed // 3)
        journal = Path(cache) / "search.jsonl"
        search = kiln(
            [*tune, "--trials", str(trials), "--journal", str(journal), "--seed", "0"],
            XDG_CACHE_HOME=cache,
        )
    times = {tuple(o["defines"]): o["us"] for o in result["outcomes"] if "us" in o}
    best_us = times[tuple(result["best"]["defines"])]
    found = times.get(tuple(search["best"]["defines"]), float("inf"))
    bar(
        f"found with {trials} trials of {allowed}, over the best of all",
        f"{found / best_us:.4f} ({' '.join(search['best']['defines'])}; {len(search['outcomes'])} "
        f"built, "
        f"{search['counts'].get('timed', 0)} timed, {search['seconds']['total']:.1f} s)",
        "1.02",
        found / best_us <= 1.02,
    )
    say_replays(result_file, trials, say)
    for row in [] if given.no_compile_times else written_compile_times(given.out, facts):
        seconds = row["slowest_source_s"]
        what = f"{row['path']} path for sm_{row['arch'].replace('.', '')}"
        bar(what, f"{seconds:.1f} s", "10 s", seconds <= 10)
    say_tables(result, say)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
