# SPDX-License-Identifier: Apache-2.0
"""Which lane of a warp touched which bytes? Reads the trace of `kiln call --accesses` and draws
it: lanes against sectors of global memory, or against banks of shared memory.

    %kiln call twice x --accesses trace.jsonl
    kiln.lanes.read("trace.jsonl")                    # one row per source line
    kiln.lanes.read("trace.jsonl").draw(line=5)       # lane by lane
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from . import _measure
from .errors import KilnError

SECTOR_BYTES = 32  # what global memory is fetched in
BANKS, BANK_BYTES = 32, 4  # of shared memory
_MAKE_ONE = "make it: kiln call FILE.cu OP ARGS --accesses FILE.jsonl"


class Picture:
    """An SVG that a notebook shows; `text` says the same in words."""

    def __init__(self, svg: str, text: str) -> None:
        self.svg, self.text = svg, text

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.text

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        Path(path).write_text(self.svg, encoding="utf-8")


@dataclass(frozen=True)
class Access:
    """One instruction of one warp. Addresses count from the start of the tensor, or of the block's
    shared memory."""

    kernel: str
    block: int
    warp: int
    kind: str  # load, store, atomic, reduction
    space: str  # global, shared, ...
    line: int
    bytes: int  # per lane
    where: str  # the tensor
    addresses: dict[int, int]  # by lane
    launch: int = 0  # counted from the first

    @property
    def sectors(self) -> list[int]:
        touched = {
            sector
            for at in self.addresses.values()
            for sector in range(at // SECTOR_BYTES, (at + self.bytes - 1) // SECTOR_BYTES + 1)
        }
        return sorted(touched)

    @property
    def needed_sectors(self) -> int:
        """What the distinct bytes would take if they were packed."""
        distinct = len(set(self.addresses.values())) * self.bytes
        return -(-distinct // SECTOR_BYTES)

    @property
    def turns(self) -> int:
        """How often shared memory has to serve the access. Lanes with 8 or 16 bytes are served in
        halves or quarters of the warp; within one, a bank gives one word per turn."""
        group = max(1, 32 * BANK_BYTES // max(self.bytes, BANK_BYTES))
        return sum(
            max(len(words) for words in self._words(range(first, first + group)).values())
            for first in range(0, 32, group)
            if any(lane in self.addresses for lane in range(first, first + group))
        )

    @property
    def needed_turns(self) -> int:
        return max(1, self.bytes // BANK_BYTES)

    def draw(self) -> Picture:
        """Lanes above, sectors or banks below, a line from each lane to what it touches."""
        lanes = [{"lane": lane, "address": at} for lane, at in sorted(self.addresses.items())]
        turns = self.turns if self.space == "shared" else 0
        value = {"kind": self.kind, "space": self.space, "where": self.where, "line": self.line,
                 "bytes": self.bytes, "turns": turns, "lanes": lanes}  # fmt: skip
        return Picture(_measure.render("lanes-svg", value), _measure.render("lanes-text", value))

    def _words(self, lanes: Sequence[int]) -> dict[int, set[int]]:
        """Of each bank: the words that these lanes want."""
        words: dict[int, set[int]] = {}
        for lane in lanes:
            if lane not in self.addresses:
                continue
            first = self.addresses[lane] // BANK_BYTES
            for word in range(first, first + max(1, self.bytes // BANK_BYTES)):
                words.setdefault(word % BANKS, set()).add(word)
        return words


class Trace:
    """The accesses of a call, in the order in which they were made."""

    def __init__(self, accesses: Sequence[Access]) -> None:
        self.accesses = list(accesses)

    def __iter__(self) -> Iterator[Access]:
        return iter(self.accesses)

    def draw(
        self,
        line: Optional[int] = None,
        kind: Optional[str] = None,
        space: Optional[str] = None,
        warp: int = 0,
        block: int = 0,
        index: int = 0,
    ) -> Picture:
        """One access of one warp: the first that fits, or the one after `index` others."""
        fits = [
            one
            for one in self
            if (one.block, one.warp) == (block, warp)
            and line in (None, one.line)
            and kind in (None, one.kind)
            and space in (None, one.space)
        ]
        if not 0 <= index < len(fits):
            seen = sorted({(one.line, one.kind, one.space) for one in self})
            raise KilnError(
                "the trace has no such access",
                "it has: " + (", ".join(f"line {a} {b} {c}" for a, b, c in seen) or "none"),
                "choose by line, kind, space, warp, block; index counts those that are left",
            )
        return fits[index].draw()

    def rows(self) -> list[dict[str, Any]]:
        """One per source line, kind and space, with the sums over all warps."""
        sums: dict[tuple[int, str, str], dict[str, Any]] = {}
        for one in self:
            key = (one.line, one.kind, one.space)
            row = sums.setdefault(
                key,
                {"line": one.line, "kind": one.kind, "space": one.space, "bytes": one.bytes,
                 "accesses": 0, "units": 0, "needed": 0},
            )  # fmt: skip
            shared = one.space == "shared"
            row["accesses"] += 1
            row["units"] += one.turns if shared else len(one.sectors)
            row["needed"] += one.needed_turns if shared else one.needed_sectors
        return [sums[key] for key in sorted(sums)]

    def __repr__(self) -> str:
        lines = ["line  kind    space   bytes/lane  accesses  sectors or turns  needed"]
        for row in self.rows():
            unit = "turns" if row["space"] == "shared" else "sectors"
            lines.append(
                f"{row['line']:>4}  {row['kind']:<6}  {row['space']:<6}  {row['bytes']:>10}  "
                f"{row['accesses']:>8}  {row['units']:>8} {unit:<7}  {row['needed']:>6}"
            )
        return "\n".join(lines)


def read(path: Union[str, os.PathLike[str]]) -> Trace:
    """A file of `kiln call --accesses`."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not a text file"
        raise KilnError(f"cannot read {os.fspath(path)}", why, _MAKE_ONE) from None
    kernels: dict[int, str] = {}
    found = []
    for number, text in enumerate(lines, 1):
        try:
            one = json.loads(text)
            if "kernel" in one:
                kernels[one["launch"]] = one["kernel"]
            elif "kind" in one:
                found.append(_access(one, kernels.get(one["launch"], "")))
        except (ValueError, KeyError, TypeError, IndexError):
            raise KilnError(
                f"cannot read {os.fspath(path)}", f"line {number} is not of a trace", _MAKE_ONE
            ) from None
    return Trace(found)


def _access(one: dict[str, Any], kernel: str) -> Access:
    mask = int(one["lanes"], 16)
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    if "addresses" in one:
        absolute = one["addresses"]
    else:
        absolute = [one["address"] + index * one["step"] for index in range(len(lanes))]
    # Relative to the tensor, where it is known: the same picture in every run.
    base = absolute[0] - one["offset"] if "offset" in one and absolute else 0
    return Access(
        kernel, one["block"], one["warp"], one["kind"], one["space"],
        int(one.get("at", ":0").rpartition(":")[2]), one["bytes"], one.get("in", ""),
        {lane: at - base for lane, at in zip(lanes, absolute)}, one.get("launch", 0),
    )  # fmt: skip
