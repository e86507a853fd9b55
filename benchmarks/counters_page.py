# SPDX-License-Identifier: Apache-2.0
"""How do the counters of the engine compare with those of ncu? The page and its verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from counters_causes import UNKNOWN, cause_of
from counters_check import EQUAL, SPACES, UNSEEN
from counters_ncu import L1_PASSES, SASS_PASSES

ROOT = Path(__file__).resolve().parents[1]
SHARE = 0.95  # of the pairs that must be equal
DRAM = 0.15
SHORT_US = 5.0
L2_BYTES = 50 << 20  # of an H200

# ncu's own noise: its counters of L1 have passes that wait for other traffic, which differ from run
# to run. ncu has an exact count of passes too, by patching SASS: where that is the engine's, what
# the other counter has above it is noise. Without it, up to 1 % counts as noise.
NOISY = ("l1tex__data_bank_conflicts", "l1tex__data_pipe_lsu_wavefronts_mem_shared")


def is_equal(metric: str, ncu: float, engine: float, passes: float, exact: float | None) -> bool:
    """`passes` of the engine, `exact` those that ncu counted by patching."""
    if ncu == engine:
        return True
    if metric.startswith("sm__maximum_warps"):
        return abs(ncu - engine) < 0.01
    if metric.startswith(NOISY):
        is_noise = ncu >= engine and exact is not None and exact == passes
        return is_noise or 0 <= ncu - engine <= max(64.0, 0.01 * passes)
    return False


def named(metric: str) -> str:
    """The engine has one count of passes, under the name of ncu's counter of L1."""
    return metric.replace("smsp__sass_l1tex_data_pipe", "l1tex__data_pipe")


def base_name(kernel: str) -> str:
    """ncu and a demangler write types in their own ways; names are the same."""
    return kernel.removeprefix("void ").split("(")[0].split("<")[0].split("::")[-1]


def together(measured: dict[str, Any], counted: dict[str, Any]) -> list[tuple[int, Any, Any]]:
    """Launches of both sides in order, with their number. A kernel that only the engine ran is
    left out."""
    out = []
    ours = counted.get("launches", [])
    at = 0
    for number, launch in enumerate(measured.get("launches", []), 1):
        while at < len(ours) and base_name(ours[at]["kernel"]) != base_name(launch["kernel"]):
            at += 1
        if at == len(ours):
            break
        out.append((number, launch, ours[at]))
        at += 1
    return out


def unlike_code(measured: Any, counted: Any) -> tuple[str, float, float] | None:
    """A kernel whose registers are not those that ncu saw: name, ncu's, the engine's."""
    name = "launch__registers_per_thread"
    a, b = measured["metrics"].get(name), counted["metrics"].get(name)
    if a is None or b is None or a == b:
        return None
    return short_kernel(counted["kernel"]), a, b


def pairs(ncu: dict[str, Any], engine: dict[str, Any]) -> list[dict[str, Any]]:
    """One per launch and metric: program, kernel, both numbers."""
    out = []
    for program, measured in ncu.items():
        both = together(measured, engine.get(program, {}))
        unlike = next((found for one in both if (found := unlike_code(*one[1:]))), None)
        for number, launch, ours in both:
            for metric in EQUAL:
                if metric not in launch["metrics"]:
                    continue
                a, b = launch["metrics"][metric], float(ours["metrics"].get(named(metric), 0))
                if a == 0 and b == 0:
                    continue  # no such access on either side: not a comparison
                op = "ld" if "_ld." in metric else "st"
                passes = ours["metrics"].get(f"shared_{op}_wavefronts", 0)
                exact = launch["metrics"].get(SASS_PASSES.format(op))
                out.append(
                    {
                        "program": program,
                        "launch": number,
                        "kernel": ours["kernel"],
                        "metric": metric,
                        "ncu": a,
                        "engine": b,
                        "equal": is_equal(metric, a, b, passes, exact),
                        "without_exact": is_equal(metric, a, b, passes, None),
                        # For the cause of a difference.
                        "in_another_order": ours.get("in_another_order", {}).get(named(metric)),
                        "passes_in_l1": launch["metrics"].get(L1_PASSES.format(op)),
                        "passes_by_patching": exact,
                        "engine_passes": passes,
                        "other_registers": unlike,
                        "sass": ours.get("sass"),
                    }
                )
    return out


def times(ncu: dict[str, Any], engine: dict[str, Any]) -> list[dict[str, Any]]:
    out = []
    for program, measured in ncu.items():
        for _, launch, counted in together(measured, engine.get(program, {})):
            us = launch["metrics"].get("gpu__time_duration.sum", 0) / 1e3
            limits = counted["bound"]["limits"]
            if us < SHORT_US or not limits:
                continue
            read = launch["metrics"].get("dram__bytes_read.sum", 0)
            written = launch["metrics"].get("dram__bytes_write.sum", 0)
            mine = counted["metrics"]
            out.append(
                {
                    "program": program,
                    "kernel": counted["kernel"],
                    "us": us,
                    "bound_us": limits[0]["us"],
                    "by": limits[0]["resource"],
                    "dram": read + written,
                    "modelled": mine["dram__bytes_read.sum"] + mine["dram__bytes_write.sum"],
                }
            )
    return out


def ranks(values: list[float]) -> list[float]:
    """Equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for i in range(at, end + 1):
            out[order[i]] = (at + end) / 2
        at = end + 1
    return out


def rank_correlation(a: list[float], b: list[float]) -> float:
    """Spearman's."""
    x, y = ranks(a), ranks(b)
    middle = (len(x) - 1) / 2
    above = sum((p - middle) * (q - middle) for p, q in zip(x, y))
    below = sum((p - middle) ** 2 for p in x) * sum((q - middle) ** 2 for q in y)
    return above / below**0.5 if below else 0.0


def spaces(ncu: dict[str, Any], engine: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each space of variants: measured and predicted times, and their rank correlation."""
    out = []
    for program in SPACES:
        rows = []
        for _, launch, counted in together(ncu.get(program, {}), engine.get(program, {})):
            us = launch["metrics"].get("gpu__time_duration.sum", 0) / 1e3
            bound = counted["bound"]
            if us:
                row = {"kernel": counted["kernel"], "us": us, "predicted_us": bound["predicted_us"]}
                rows.append({**row, "by": bound["predicted_by"]})
        if len(rows) > 2:
            of = rank_correlation([r["us"] for r in rows], [r["predicted_us"] for r in rows])
            out.append({"space": program, "rank_correlation": of, "variants": rows})
    return out


def other_predictions(ncu: dict[str, Any], engine: dict[str, Any]) -> list[tuple[float, float]]:
    """Measured and predicted times of launches outside the spaces, of at least 5 us."""
    out = []
    for program, measured in ncu.items():
        if program in SPACES:
            continue
        for _, launch, counted in together(measured, engine.get(program, {})):
            us = launch["metrics"].get("gpu__time_duration.sum", 0) / 1e3
            if us >= SHORT_US:
                out.append((us, counted["bound"]["predicted_us"]))
    return out


def other_lines(found: list[tuple[float, float]]) -> list[str]:
    ratios = sorted(predicted / us for us, predicted in found)
    if not ratios:
        return []
    near = sum(0.5 <= ratio <= 2 for ratio in ratios)
    of = rank_correlation([us for us, _ in found], [predicted for _, predicted in found])
    return [
        "",
        "The model was made with the spaces of transpose, reduction, matmul and softmax at hand:",
        "an update of one address by an atomic (1.76 ns) and stores of parts of sectors (67 per",
        "ns) were read off their times; the start of blocks (0.606 ns each, of 32 to 512 threads)",
        "and what a block's end costs (440 clocks) were measured by",
        f"`tests/gpu/counters/launch_rate.cu`. Of the other {len(found)} launches of this page,",
        f"{near} are predicted within a factor of two, with a median of"
        f" {ratios[len(ratios) // 2]:.2f} of the time;",
        f"rank correlation {of:.2f}.",
    ]


def short_kernel(name: str) -> str:
    """Without parameters; template arguments stay, "(Keep)0" among them."""
    depth = 0
    for at, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            name = name[:at]
            break
    return name.removeprefix("void ")


def space_lines(found: list[dict[str, Any]]) -> list[str]:
    lines = ["", "## Predicted order of variants", ""]
    lines += ["| space | variants | rank correlation |", "|---|---:|---:|"]
    for one in found:
        lines.append(f"| {one['space']} | {len(one['variants'])} | {one['rank_correlation']:.2f} |")
    lines += ["", "| space | variant | time | predicted | by |", "|---|---|---:|---:|---|"]
    for one in found:
        for row in one["variants"]:
            lines.append(
                f"| {one['space']} | {short_kernel(row['kernel'])} | {row['us']:.1f} us |"
                f" {row['predicted_us']:.1f} us | {row['by']} |"
            )
    return lines


def time_lines(timed: list[dict[str, Any]]) -> list[str]:
    lines = [
        "",
        "## Bound and time",
        "",
        "Launches of at least 5 us; caches are flushed before.",
        "",
    ]
    lines += ["| program | kernel | time | bound | | by | DRAM | modelled |"]
    lines += ["|---|---|---:|---:|---:|---|---:|---:|"]
    for row in timed:
        lines.append(
            f"| {row['program']} | {short_kernel(row['kernel'])} |"
            f" {row['us']:.1f} us | {row['bound_us']:.1f} us |"
            f" {row['bound_us'] / row['us']:.2f} | {row['by']} | {row['dram'] / 1e6:.1f} MB |"
            f" {row['modelled'] / 1e6:.1f} MB |"
        )
    return lines


def page(
    rows: list[dict[str, Any]],
    timed: list[dict[str, Any]],
    ordered: list[dict[str, Any]],
    other: list[str],
    machine: str,
) -> tuple[str, bool]:
    kernels = {(row["program"], row["launch"]) for row in rows}
    equal = [row for row in rows if row["equal"]]
    share = len(equal) / max(len(rows), 1)
    above = [row for row in timed if row["bound_us"] > row["us"]]
    memory = [row for row in timed if row["by"] == "DRAM"]
    half = [row for row in memory if row["bound_us"] >= 0.5 * row["us"]]
    large = [row for row in timed if max(row["dram"], row["modelled"]) > 2 * L2_BYTES]
    near = [r for r in large if abs(r["modelled"] / max(r["dram"], 1) - 1) <= DRAM]
    unseen = [row for row in rows if row["program"] in UNSEEN]
    unknown = [row for row in rows if not row["equal"] and cause_of(row) == UNKNOWN]
    good = share >= SHARE and not above and not unknown
    good = good and len(half) >= 20 and len(near) == len(large)
    strict = sum(row["without_exact"] for row in rows)
    lines = [
        "# Counters compared with Nsight Compute",
        "",
        f"Written by `benchmarks/counters_check.py compare`. ncu's counts are those of {machine}.",
        "The engine counts what PTX does, and follows the cubin where ptxas joined, narrowed or",
        "removed an instruction; ncu counts what the GPU does.",
        "`tools/gpu-check --only counters` makes both sides and this page.",
        "",
        "Passes of shared memory have two counts in ncu. The one of L1 adds passes that wait for",
        "other traffic and differs from run to run; the one of the source page (`smsp__sass_...`)",
        "is exact. Where the engine has the exact count, the rest of the first one is ncu's noise.",
        f"Without that rule, with 1 % of noise allowed, {strict} of {len(rows)} pairs are equal.",
        "",
        "| bar | found | |",
        "|---|---|---|",
        f"| launches compared | {len(kernels)} | {'PASS' if len(kernels) >= 60 else 'MISS'} |",
        f"| pairs of launch and metric that are equal, at least 95 % | {len(equal)} of {len(rows)}"
        f" ({100 * share:.1f} %) | {'PASS' if share >= SHARE else 'MISS'} |",
        f"| of these in kernels written after the rules |"
        f" {sum(row['equal'] for row in unseen)} of {len(unseen)} | |",
        f"| pairs that differ without a cause | {len(unknown)} | {'MISS' if unknown else 'PASS'} |",
        f"| bound above the measured time | {len(above)} of {len(timed)} |"
        f" {'MISS' if above else 'PASS'} |",
        f"| DRAM-bound launches whose bound is at least half of the time, at least 20 |"
        f" {len(half)} of {len(memory)} | {'PASS' if len(half) >= 20 else 'MISS'} |",
        f"| DRAM bytes within 15 %, launches that move more than twice the L2 |"
        f" {len(near)} of {len(large)} | {'PASS' if len(near) == len(large) else 'MISS'} |",
        "",
        "## By metric",
        "",
        "| metric | equal | of |",
        "|---|---:|---:|",
    ]
    for metric in EQUAL:
        of = [row for row in rows if row["metric"] == metric]
        lines.append(f"| `{metric}` | {sum(row['equal'] for row in of)} | {len(of)} |")
    lines += ["", "## Pairs that differ", ""]
    lines += [
        "Causes are computed from what was counted (`benchmarks/counters_causes.py`).",
        "",
    ]
    lines += ["| program | kernel | metric | ncu | engine | cause |", "|---|---|---|---:|---:|---|"]
    for row in rows:
        if not row["equal"]:
            kernel = short_kernel(row["kernel"])
            short = row["metric"].replace("l1tex__", "").replace("_pipe_lsu", "")
            lines.append(
                f"| {row['program']} | {row['launch']}. {kernel} | {short} | {row['ncu']:,.0f} |"
                f" {row['engine']:,.0f} | {cause_of(row)} |"
            )
    lines += time_lines(timed) + space_lines(ordered) + other
    return "\n".join(lines) + "\n", good


def kept_pairs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With their causes; what these were found in is in engine.json and ncu.json."""
    keys = ("program", "launch", "kernel", "metric", "ncu", "engine", "equal", "without_exact")
    return [
        {key: row[key] for key in keys} | ({} if row["equal"] else {"cause": cause_of(row)})
        for row in rows
    ]


def not_compared(ncu: dict[str, Any], engine: dict[str, Any]) -> list[str]:
    """Programs that one side did not run, and why."""
    lines = []
    for name, side in (("ncu", ncu), ("the engine", engine)):
        for program, found in side.items():
            why = found.get("why") or (
                "" if "launches" in found else str(found.get("missing") or "no launches")
            )
            if why:
                lines.append(f"| {program} | {name} | {' '.join(why.split())[-200:]} |")
    if not lines:
        return []
    return ["", "## Not compared", "", "| program | by | why |", "|---|---|---|", *lines]


def compare(out: Path) -> int:
    ncu = json.loads((out / "ncu.json").read_text())
    engine = json.loads((out / "engine.json").read_text())
    rows, timed = pairs(ncu, engine), times(ncu, engine)
    ordered = spaces(ncu, engine)
    other = other_lines(other_predictions(ncu, engine)) + not_compared(ncu, engine)
    text, good = page(rows, timed, ordered, other, "an H200")
    (out / "counters.md").write_text(text)
    (out / "counters.json").write_text(
        json.dumps({"pairs": kept_pairs(rows), "times": timed, "spaces": ordered}, indent=1)
    )
    print(text)
    return 0 if good else 1
