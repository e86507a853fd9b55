# SPDX-License-Identifier: Apache-2.0
"""How does one access of a warp look? Lanes above, sectors or banks below, a line from each lane to
what it touches."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Union

_WIDTH, _STEP, _LEFT = 704, 21, 16
_TOP, _BOTTOM, _BOX = 44, 150, 18
_COLOURS = ("#2b7bba", "#c9541f", "#3d8c40", "#8a4fa3")
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
    'height="{height}" font-family="sans-serif" font-size="10" role="img">'
    "<title>{title}</title>"
    '<rect width="{width}" height="{height}" fill="#ffffff"/>'
    '<text x="{left}" y="20" font-size="13" fill="#222">{title}</text>'
)


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


def sectors_picture(
    kind: str, line: int, size: int, addresses: Mapping[int, int], where: str
) -> Picture:
    """Sectors of 32 bytes, each filled as far as its bytes are used."""
    used: dict[int, set[int]] = {}
    for at in addresses.values():
        for byte in range(at, at + size):
            used.setdefault(byte // 32, set()).add(byte % 32)
    sectors = sorted(used)
    step = min(_STEP * 2, (_WIDTH - 2 * _LEFT) // max(1, len(sectors)))
    place = {sector: _LEFT + index * step for index, sector in enumerate(sectors)}
    wanted = sum(map(len, used.values()))
    text = (
        f"line {line}: {kind} of {size} bytes per lane, {len(addresses)} lanes, "
        f"{len(sectors)} sectors, {wanted} of {32 * len(sectors)} bytes used"
    )
    parts = _lanes(addresses)
    for lane, at in addresses.items():
        sector = at // 32
        x = place[sector] + (at % 32) / 32 * (step - 4)
        parts.append(_ray(lane, x, sector))
    for sector, x in place.items():
        parts.append(_box(x, _BOTTOM, step - 4, "#eeeeee", "#999999"))
        for first, count in _runs(used[sector]):
            parts.append(
                f'<rect x="{x + first / 32 * (step - 4):.2f}" y="{_BOTTOM}" '
                f'width="{count * (step - 4) / 32:.2f}" height="{_BOX}" fill="{_colour(sector)}"/>'
            )
    parts.append(_label(f"sectors of {where or 'global memory'}, 32 bytes each; filled: used"))
    return Picture(_svg(text, parts), text)


def banks_picture(
    kind: str, line: int, size: int, addresses: Mapping[int, int], turns: int
) -> Picture:
    """The 32 banks, each with the number of different words that lanes need from it."""
    words: dict[int, set[int]] = {bank: set() for bank in range(32)}
    for at in addresses.values():
        for word in range(at // 4, (at + size + 3) // 4):
            words[word % 32].add(word)
    text = (
        f"line {line}: {kind} of {size} bytes per lane in shared memory, {len(addresses)} lanes, "
        f"{turns} {'turn' if turns == 1 else 'turns'}"
    )
    parts = _lanes(addresses)
    for lane, at in addresses.items():
        bank = at // 4 % 32
        parts.append(_ray(lane, _LEFT + bank * _STEP + _BOX / 2, bank))
    for bank, wanted in words.items():
        x = _LEFT + bank * _STEP
        fill = "#ffffff" if not wanted else "#cfe3f3" if len(wanted) == 1 else "#f3c9b5"
        parts.append(_box(x, _BOTTOM, _BOX, fill, "#999999"))
        if wanted:
            parts.append(_number(x, _BOTTOM, str(len(wanted))))
    parts.append(_label("banks 0 to 31; the number: different words wanted from the bank"))
    return Picture(_svg(text, parts), text)


def _runs(bytes_used: set[int]) -> list[tuple[int, int]]:
    """Neighbouring bytes together: the first, and how many."""
    runs: list[tuple[int, int]] = []
    for byte in sorted(bytes_used):
        if runs and sum(runs[-1]) == byte:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((byte, 1))
    return runs


def _lanes(addresses: Mapping[int, int]) -> list[str]:
    parts = []
    for lane in range(32):
        x = _LEFT + lane * _STEP
        active = lane in addresses
        parts.append(_box(x, _TOP, _BOX, "#cfe3f3" if active else "#f4f4f4", "#999999"))
        parts.append(_number(x, _TOP, str(lane)))
    return parts


def _ray(lane: int, x: float, group: int) -> str:
    return (
        f'<line x1="{_LEFT + lane * _STEP + _BOX / 2:.1f}" y1="{_TOP + _BOX}" x2="{x:.1f}" '
        f'y2="{_BOTTOM}" stroke="{_colour(group)}" stroke-width="1" opacity="0.7"/>'
    )


def _colour(group: int) -> str:
    return _COLOURS[group % len(_COLOURS)]


def _box(x: float, y: float, width: float, fill: str, stroke: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width}" height="{_BOX}" rx="2" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="0.8"/>'
    )


def _number(x: float, y: float, text: str) -> str:
    return (
        f'<text x="{x + _BOX / 2:.1f}" y="{y + 13}" text-anchor="middle" fill="#222">{text}</text>'
    )


def _label(text: str) -> str:
    return f'<text x="{_LEFT}" y="{_BOTTOM + 36}" fill="#555">{html.escape(text)}</text>'


def _svg(title: str, parts: list[str]) -> str:
    head = _HEAD.format(width=_WIDTH, height=_BOTTOM + 48, left=_LEFT, title=html.escape(title))
    return "\n".join([head, *parts, "</svg>", ""])
