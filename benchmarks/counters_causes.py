# SPDX-License-Identifier: Apache-2.0
"""Why do two counts of a launch differ? Each cause is found in what was counted, never by the name
of a kernel: the engine's counts in another order of warps, ncu's own second count, the registers of
both sides, and what ptxas did to the instructions by the line table of the cubin."""

from __future__ import annotations

from typing import Any

UNKNOWN = "not explained"


def family(metric: str) -> str:
    """Of the instructions that a metric counts, as `kiln counters --json` has it under "sass"."""
    if "branch" in metric:
        return "branches"
    memory = next((name for name in ("global", "shared") if f"mem_{name}" in metric), "")
    kind = {"_ld.": "loads", "_st.": "stores"}.get(metric[metric.rfind("_") :][:4], "")
    return f"{memory} {kind}" if memory and kind else ""


def order(pair: dict[str, Any]) -> str:
    """Atomics hand out places, or warps wait for locks."""
    other = pair["in_another_order"]
    if other is None or other == pair["engine"]:
        return ""
    return (
        f"depends on the order of warps: the engine counts {other:,.0f} in another one, since the"
        " results of atomics decide"
    )


def two_counts(pair: dict[str, Any]) -> str:
    """ncu counts passes of shared memory in L1 and by patching SASS."""
    first, exact, mine = pair["passes_in_l1"], pair["passes_by_patching"], pair["engine_passes"]
    if "shared" not in pair["metric"] or None in (first, exact) or first >= exact:
        return ""
    if mine not in (first, exact):
        return ""
    kept = "in L1" if mine == first else "by patching"
    return (
        f"ncu's two counts of passes differ: {first:,.0f} in L1, {exact:,.0f} by patching SASS;"
        f" the engine has those {kept}"
    )


def registers(pair: dict[str, Any]) -> str:
    found = pair["other_registers"]
    if not found:
        return ""
    kernel, ncu, engine = found
    return (
        f"the two sides ran other code of one source: {kernel} has {ncu:.0f} and {engine:.0f}"
        " registers; nvcc of an Arm and of an x86 host differ, by the sign of `char` for one"
    )


def change_text(change: dict[str, Any]) -> str:
    of, ptx = change["of"], change["ptx"]
    parts = []
    if change["absent"]:
        parts.append(f"joined or removed {change['absent']} of {ptx} {of}")
    if change["other_width"]:
        parts.append(f"made {change['other_width']} of {ptx} {of} wider or narrower")
    if change["moved"]:
        parts.append(f"moved {change['moved']} of {ptx} {of} behind a branch")
    if change["copies"]:
        parts.append(f"made several copies of {change['copies']} of {ptx} {of}")
    if change["added"]:
        parts.append(f"added {change['added']} {of} (division, roots and calls have some inside)")
    return "ptxas " + ", ".join(parts) if parts else ""


def by_sass(pair: dict[str, Any]) -> str:
    changes = {change["of"]: change for change in pair["sass"] or []}
    own = family(pair["metric"])
    text = change_text(changes[own]) if own in changes else ""
    if text or not own or own == "branches":
        return text
    # Branches of its own let lanes part at other places, and then an access is made by parts of a
    # warp one after the other.
    branches = changes.get("branches", {})
    return change_text(branches) if branches.get("copies") or branches.get("added") else ""


def cause_of(pair: dict[str, Any]) -> str:
    for find in (order, two_counts, registers, by_sass):
        found = find(pair)
        if found:
            return found
    return UNKNOWN
