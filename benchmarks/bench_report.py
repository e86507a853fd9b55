# SPDX-License-Identifier: Apache-2.0
"""What does a bench.json of bench_bars.py say, and which bars hold? Its Markdown.

python benchmarks/bench_report.py FILE
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any


def percent(a: float | None, b: float | None) -> str:
    return "" if not a or not b else f"{100 * (a / b - 1):+.2f} %"


def middle(row: dict[str, Any], clock: str) -> float | None:
    values = [place[clock]["trimmed"] for place in row["places"] if place.get(clock)]
    return statistics.median(values) if values else None


def rounds_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Of all places; each has what the clocks of kernels said one after the other, on the same
    tensors."""
    return [one for place in row["places"] for one in place.get("rounds", [place])]


def of_rounds(row: dict[str, Any], clock: str) -> float | None:
    values = [one[clock]["trimmed"] for one in rounds_of(row) if one.get(clock)]
    return statistics.median(values) if values else None


def against_kineto(row: dict[str, Any], clock: str = "kineto") -> float | None:
    """The median of the ratios within rounds."""
    pairs = [(one.get("kernel"), one.get(clock)) for one in rounds_of(row)]
    ratios = [mine["trimmed"] / theirs["trimmed"] for mine, theirs in pairs if mine and theirs]
    return statistics.median(ratios) if ratios else None


def plain_us(out: dict[str, Any], bits: int, **way: Any) -> float | None:
    way = {"in_flight": 1.0, "stream": "default", "busy_us": 0.0, **way}
    times = [
        r["trimmed_us"]
        for r in out["plain"]
        if r["bits"] == bits and all(r[k] == v for k, v in way.items())
    ]
    return statistics.median(times) if times else None


def diagnosis_lines(rows: dict[str, Any]) -> list[str]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    lines = [
        "| loop | us | to the equal loop | gap before the call, us | medians of the rounds, us |",
        "|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        off = "" if row["to_kineto"] is None else f"{100 * (row['to_kineto'] - 1):+.2f} %"
        medians = " ".join(f"{value:.2f}" for value in row["medians"])
        lines.append(
            f"| {name} | {number(row['trimmed'])} | {off} | {number(row['gap_us'])} | {medians} |"
        )
    return lines


def loop_lines(out: dict[str, Any]) -> list[str]:
    """What of a loop changes a short kernel's time, with each round's median."""
    lines: list[str] = []
    for name, rows in out.get("loops", {}).items():
        lines += [
            "",
            f"What of a loop changes the kernel time of {name}:",
            "",
            *diagnosis_lines(rows),
        ]
    return lines


AGREEMENT = [
    "## Agreement",
    "",
    "Microseconds, cold L2, means without the outer tenths: at 2^24 the times of all have two "
    "modes, 1.4 us apart, which",
    "take turns every millisecond, and a median jumps between them (bench.json has medians and "
    "quartiles as well).",
    "`kernel` is kiln's time from CUPTI; `kineto` the kernel's in torch.profiler, in a loop "
    "that does what kiln's trace does, `loop`",
    "in one without the kernel that holds the stream while the host enqueues: all three in "
    "turns, the median of the ratios within",
    "rounds. `ncu` is its gpu__time_duration of the plain program's kernel.",
    "`events` is kiln's time between two events; `plain` is the program "
    "benchmarks/plain_events.cu, `python` a loop of",
    "torch.cuda.Event that waits for each call, `do_bench` Triton's.",
    "",
    "| op | size | kernel | kineto | | loop | | ncu | | events | plain | | python | do_bench |",
    "|" + "---|" * 14,
]


def agreement_lines(out: dict[str, Any]) -> list[str]:
    lines = list(AGREEMENT)

    def number(value: float | None) -> str:
        return f"{value:.2f}" if value else ""

    for row in out["agreement"]:
        events = middle(row, "events")
        plain = plain_us(out, int(row["size"][2:])) if row["op"] == "plain_add" else None
        kernel, loop = of_rounds(row, "kernel"), "kineto, plain loop"
        counted = (
            out.get("ncu", {}).get("rows", {}).get(row["size"][2:])
            if row["op"] == "plain_add"
            else None
        )
        by_ncu = counted["trimmed"] if counted else None
        cells = [
            row["op"],
            row["size"],
            number(kernel),
            number(of_rounds(row, "kineto")),
            percent(against_kineto(row), 1.0),
        ]
        cells += [
            number(of_rounds(row, loop)),
            percent(against_kineto(row, loop), 1.0),
            number(by_ncu),
            percent(kernel, by_ncu),
        ]
        cells += [number(events), number(plain), percent(events, plain)]
        cells += [number(middle(row, "python_events")), number(middle(row, "do_bench"))]
        lines.append("| " + " | ".join(cells) + " |")
    if not any("rounds" in place for row in out["agreement"] for place in row["places"]):
        lines += [
            "",
            "In this run torch.profiler's loop flushed the L2 with torch's `zero_()`, as `python` "
            "does, and not with a memset: after",
            "that a short add is 0.1 to 0.2 us faster by any clock. It was also run after kiln's "
            "trace and not in turns with it.",
        ]
    if why := out.get("ncu", {}).get("why"):
        lines += ["", f"No times of ncu: {why}."]
    lines += loop_lines(out)
    lines += [
        "",
        "What the way of enqueueing changes, for plain_add (us): samples in the stream before the "
        "host waits, the stream,",
        "and a kernel of 20 us before the flush.",
        "",
        "| size | 1, default stream | 16 | 1, own stream | 16 | 1, own, busy | 16 | kiln, 1 | "
        "kiln, 16 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in out["agreement"]:
        bits = int(row["size"][2:])
        if row["op"] != "plain_add" or not plain_us(out, bits, in_flight=16.0):
            continue
        cells = [row["size"]]
        for stream, busy in (("default", 0.0), ("own", 0.0), ("own", 20.0)):
            cells += [
                number(plain_us(out, bits, in_flight=n, stream=stream, busy_us=busy))
                for n in (1.0, 16.0)
            ]
        cells += [number(middle(row, "events")), number(middle(row, "events_16_in_flight"))]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def bars(out: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """Each bar: what, wanted, seen, and whether it holds."""
    found: list[tuple[str, str, str, bool]] = []

    def add(what: str, wanted: str, seen: str, holds: bool) -> None:
        found.append((what, wanted, seen, holds))

    if "agreement" in out:
        off = [100 * abs(ratio - 1) for row in out["agreement"] if (ratio := against_kineto(row))]
        rows = len(out["agreement"])
        add("kernel time against torch.profiler's CUPTI records", "within 1 % in every row",
            f"at most {max(off, default=100):.2f} % in {len(off)} rows",
            len(off) == rows and max(off) <= 1)  # fmt: skip
        off = [
            100 * abs(middle(row, "events") / plain_us(out, int(row["size"][2:])) - 1)
            for row in out["agreement"]
            if row["op"] == "plain_add"
        ]
        add(
            "time between events against a plain C++ program",
            "within 2 %",
            f"at most {max(off):.2f} %",
            max(off) <= 2,
        )
    if "same" in out:
        s, p, a = out["same"], out["planted"], out["accused_alone"]
        add(
            "A against A, false verdicts",
            "at most 5 %",
            f"{s['false']} of {s['count']}",
            s["false"] <= 0.05 * s["count"],
        )
        add(
            "3 % more work, found",
            "at least 95 %",
            f"{p['found']} of {p['count']}",
            p["found"] >= 0.95 * p["count"],
        )
        add(
            "a competing process seen where there is none",
            "0",
            f"{a['accused']} of {a['count']}",
            a["accused"] == 0,
        )
    if "competitor" in out:
        c = out["competitor"]
        add(
            "a competing process, warned",
            "every run",
            f"{c['warned']} of {c['runs']}",
            c["warned"] == c["runs"],
        )
    if "costs" in out:
        c = out["costs"]
        host = c["events_host_ns"] + c["python_callback_ns"]
        add("host time of the harness a call (two events and a Python callback)", "under 3 us",
            f"{host / 1e3:.2f} us", host < 3000)  # fmt: skip
        add(
            "a default kiln.bench of one op",
            "under 3 s",
            f"{c['default_bench_s']:.2f} s",
            c["default_bench_s"] < 3,
        )
        add("the same against torch.add", "", f"{c['default_bench_against_s']:.2f} s", True)
    if "commands" in out:
        plain = out["commands"]["plain"]
        add(
            "the command `kiln bench` of one op, no torch",
            "under 3 s",
            f"{plain['seconds']:.2f} s",
            plain["seconds"] < 3,
        )
    return found


def markdown(out: dict[str, Any]) -> str:
    lines = [
        "# `kiln bench` against others",
        "",
        "Written by `python benchmarks/bench_bars.py`.",
        "",
    ]
    lines += ["| what | wanted | seen | |", "|---|---|---|---|"]
    lines += [
        f"| {what} | {wanted} | {seen} | {'' if not wanted else 'holds' if ok else 'MISSED'} |"
        for what, wanted, seen, ok in bars(out)
    ]
    if "other_memory" in out:
        m = out["other_memory"]
        lines += [
            "",
            f"The same add on tensors in other places was told apart in {m['told_apart']} of "
            f"{m['count']} comparisons: where",
            "tensors lie changes the time, and kiln.bench gives all contenders the same ones.",
        ]
    if "agreement" in out:
        lines += ["", *agreement_lines(out)]
    lines += ["", "| machine | |", "|---|---|"] + [
        f"| {n} | {v} |" for n, v in out["machine"].items()
    ]
    if dates := out.get("dates"):
        lines += [
            "",
            "Measured: " + ", ".join(f"{name} {date}" for name, date in dates.items()) + ".",
        ]
    for name, why in out.get("failed", {}).items():
        lines.append(f"\n{name} failed: {why}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text())), end="")
