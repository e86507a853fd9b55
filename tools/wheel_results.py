# SPDX-License-Identifier: Apache-2.0
"""What was seen of wheels, and where? docs/results/wheel.json keeps it part by part; wheel.md is
made of that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))
from sampling import machine  # noqa: E402

TITLES = {
    "project": (
        "The wheel of a fresh project",
        "`tools/wheel-matrix`: one file, built once, in each torch and Python",
    ),
    "kiln-cuda": (
        "kiln-cuda",
        "`tools/wheel --arch CPU`: tag, size and what was tried, for each CPU",
    ),
    "first-result": (
        "From pip install to the first result of `kiln call`, without GPU, torch, ninja and nvcc",
        "`tools/wheel --arch CPU --full-try`; the bar is 30 s",
    ),
}


def record(folder: Path, part: str, key: str, row: dict[str, str]) -> None:
    """A row replaces the one of the same key; machine and date stand beside it."""
    path = folder / "wheel.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    facts = machine()
    row = row | {
        "machine": f"{facts['CPU']}; GPU: {facts['GPU']}; load {facts['load']}",
        "date": facts["date"],
    }
    known.setdefault(part, {})[key] = row
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    (folder / "wheel.md").write_text(page(known))


def page(known: dict[str, dict[str, dict[str, str]]]) -> str:
    lines = [
        "# Wheels: what ran where",
        "",
        "Written by the commands named below; each row has its machine and date.",
    ]
    for part, (title, how) in TITLES.items():
        rows = known.get(part, {})
        if not rows:
            continue
        named = sorted({name for row in rows.values() for name in row} - {"machine", "date"})
        columns = [*named, "machine", "date"]
        lines += [
            "",
            f"## {title}",
            how + ".",
            "",
            "| " + " | ".join(["", *columns]) + " |",
            "|---" * (len(columns) + 1) + "|",
        ]
        lines += [
            "| " + " | ".join([key, *(row.get(name, "") for name in columns)]) + " |"
            for key, row in sorted(rows.items())
        ]
    return "\n".join(lines) + "\n"
