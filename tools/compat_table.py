# SPDX-License-Identifier: Apache-2.0
"""What tools/compat-calls found, as a table: an extension and what its calls did in both builds."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

_COMPARED = ("equal", "raises alike", "differs")


def table(files: list[Path]) -> str:
    """Of all results of several runs. An extension that was called more than once has the row of
    its last run, in the order of the files; what does not build or was not called is counted."""
    rows: dict[tuple, dict] = {}
    for path in files:
        for one in json.loads(path.read_text()):
            rows[one["repository"], one["name"], tuple(one["sources"]), one.get("on", "")] = one
    names = ["extension", "repository", "on", "result", "returned", "to the bit", "raised"]
    names.append("not comparable")
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for (repository, name, _, place), one in sorted(rows.items(), key=lambda row: row[0]):
        if one["verdict"] in _COMPARED:
            counts = one["calls"]
            numbers = [
                counts.get(what, 0 if what != "to the bit" else "")
                for what in ("returned", "to the bit", "raised", "not comparable")
            ]
            cells = [name, repository, place, one["verdict"], *map(str, numbers)]
            lines.append("| " + " | ".join(cells) + " |")
    verdicts = Counter(one["verdict"] for one in rows.values())
    compared = {key[:3] for key, one in rows.items() if one["verdict"] in _COMPARED}
    counted = ", ".join(f"{what} {count}" for what, count in verdicts.most_common())
    lines.append(
        f"\n{len(compared)} extensions of {len({key[0] for key in compared})} repositories were "
        f"called in both builds. Results: {counted}."
    )
    return "\n".join(lines)
