# SPDX-License-Identifier: Apache-2.0
"""What does docs/results/triton.md say? One row per kernel: what came out on the engine for each
target, and how far the GPU's own result is from the engine's."""

from __future__ import annotations

import datetime
import json
import platform
import re
from pathlib import Path
from typing import Any, Optional

import torch

HERE = Path(__file__).resolve().parent
TARGETS = ("sm_80", "sm_90")
INTRODUCTION = """# Public Triton kernels on the engine

Triton's tutorials 01 to 06 and 40 kernels of five repositories, drawn by
[rule.md](../../tests/triton/rule.md) with the id of the commit that added it; the
[list](../../tests/triton/public/list.json) was committed before any of them was tried. Sources are
not in this repository: `python tests/triton/public/run.py SOURCES` runs them from checkouts.

Each is called through its wrapper as its repository's own test does, and compared with that test's
reference and tolerance. "Right" means that every comparison passed; "refused" that an error named
what is missing; "wrong" a result outside of the tolerance without an error. Lines that only choose
a device were changed (`x.is_cuda`, `device="cuda"`), kernels were not.
"""


def load(folder: Optional[Path], case: str, target: str) -> Optional[dict[str, Any]]:
    if folder is None:
        return None
    file = folder / (re.sub(r"[^\w.]+", "-", f"{case} {target}") + ".pt")
    return torch.load(file, weights_only=False) if file.exists() else None


def outcome(kept: Optional[dict[str, Any]]) -> str:
    if kept is None:
        return "not run"
    if kept["wrong"]:
        return "WRONG: " + kept["wrong"][0][:100]
    if kept["skipped"]:
        return kept["skipped"]
    if kept["error"]:
        return "refused: " + kept["error"][:120].replace("|", "/")
    return "right"


def beside(engine: Optional[dict[str, Any]], gpu: Optional[dict[str, Any]]) -> str:
    """The engine's results against the GPU's, by the test's tolerance."""
    if gpu is None or engine is None:
        return "not run"
    if gpu["error"] or gpu["wrong"] or not gpu["compared"]:
        return "the GPU: " + outcome(gpu)
    worst, equal = 0.0, True
    for name, one in gpu["compared"].items():
        if name not in engine["compared"]:
            return "not compared: " + outcome(engine)
        mine, theirs = engine["compared"][name]["found"], one["found"]
        if torch.equal(mine, theirs):
            continue
        equal = False
        a, b = mine.double(), theirs.double()
        # Equal bits of two kernels on one device say nothing about two devices: PTX bounds the
        # approximate functions.
        rtol, atol = one["rtol"], one["atol"]
        if rtol + atol == 0 and mine.is_floating_point():
            rtol, atol = 1e-5, 1e-6
        allowed = atol + rtol * b.abs()
        worst = max(worst, float(((a - b).abs() / allowed).nan_to_num(posinf=1e9).max()))
    if equal:
        return "equal bits"
    return f"{worst:.2g} of the tolerance" if worst <= 1 else f"DIFFERS: {worst:.2g} tolerances"


def write(path: Path, out: Path, gpu: Optional[Path], cases: list[str]) -> int:
    import triton

    rows, right, wrong = [], 0, 0
    for case in cases:
        kept = {target: load(out, case, target) for target in TARGETS}
        found = {target: outcome(one) for target, one in kept.items()}
        ran = [one for one in found.values() if not one.startswith("its own test")]
        right += bool(ran) and all(one == "right" for one in ran)
        wrong += any(one.startswith("WRONG") for one in found.values())
        repository, file, kernel = case.split(" ")
        row = [f"{repository} `{file}`", f"`{kernel}`", *found.values()]
        rows.append(row + ([beside(kept["sm_90"], load(gpu, case, "cuda"))] if gpu else []))
    last = " GPU (H200) against the engine, sm_90 |" if gpu else ""
    seed = json.loads((HERE / "list.json").read_text())["seed"]
    lines = [
        INTRODUCTION,
        f"{datetime.date.today()}, {platform.machine()}, Triton {triton.__version__}, "
        f"seed `{seed}`: **{right} of {len(cases)} right, {wrong} wrong without an error.**",
        "",
        "| source | kernel | sm_80 | sm_90 |" + last,
        "|---|---|---|---|" + ("---|" if gpu else ""),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]
    notes = HERE / "notes.md"
    path.write_text("\n".join(lines) + ("\n" + notes.read_text() if notes.exists() else ""))
    print(f"{right} of {len(cases)} right, {wrong} wrong; {path}")
    return 1 if wrong or right < 0.9 * len(cases) else 0
