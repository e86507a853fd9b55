# SPDX-License-Identifier: Apache-2.0
"""Does kiln.lanes count sectors and turns of shared memory as the hardware would? From traces
written here, without a kernel."""

from __future__ import annotations

import json
import xml.etree.ElementTree
from pathlib import Path

import pytest

from kiln import KilnError, lanes

HEAD = {"launch": 1, "kernel": "k(float*)", "grid": [1, 1, 1], "block": [32, 1, 1]}


def trace(tmp_path: Path, **access: object) -> lanes.Trace:
    one = {"launch": 1, "block": 0, "warp": 0, "lanes": "ffffffff", "kind": "load",
           "space": "global", "bytes": 4, "at": "/a/b.cu:7", "ptx_line": 1, **access}  # fmt: skip
    if one["space"] == "global":
        one.setdefault("offset", 0)
        one.setdefault("in", "x")
    path = tmp_path / "trace.jsonl"
    path.write_text(f"{json.dumps(HEAD)}\n{json.dumps(one)}\n" + '{"launch":1,"ended":true}\n')
    return lanes.read(path)


@pytest.mark.parametrize(
    ("step", "size", "sectors", "needed"),
    [(4, 4, 4, 4), (8, 4, 8, 4), (32, 4, 32, 4), (256, 4, 32, 4), (0, 4, 1, 1), (16, 16, 16, 16),
     (1, 1, 1, 1), (8, 8, 8, 8)],
)  # fmt: skip
def test_sectors(tmp_path, step, size, sectors, needed):
    (one,) = trace(tmp_path, address=1 << 40, step=step, bytes=size)
    assert (len(one.sectors), one.needed_sectors) == (sectors, needed)


def test_an_access_across_two_sectors_touches_both(tmp_path):
    (one,) = trace(tmp_path, address=1 << 40, step=4, offset=16)
    assert len(one.sectors) == 5 and one.needed_sectors == 4


@pytest.mark.parametrize(
    ("step", "size", "turns", "needed"),
    [(4, 4, 1, 1), (8, 4, 2, 1), (128, 4, 32, 1), (132, 4, 1, 1), (0, 4, 1, 1), (16, 16, 4, 4),
     (8, 8, 2, 2), (16, 8, 4, 2), (1, 1, 1, 1), (2, 2, 1, 1)],
)  # fmt: skip
def test_turns_of_shared_memory(tmp_path, step, size, turns, needed):
    (one,) = trace(tmp_path, space="shared", address=0, step=step, bytes=size)
    assert (one.turns, one.needed_turns) == (turns, needed)


def test_lanes_without_a_common_step(tmp_path):
    (one,) = trace(tmp_path, lanes="00000015", addresses=[100, 40, 4096], offset=100)
    assert one.addresses == {0: 100, 2: 40, 4: 4096} and len(one.sectors) == 3


def test_a_picture_is_svg_and_says_it_in_words(tmp_path):
    for access in ({"space": "global", "step": 8}, {"space": "shared", "step": 128}):
        picture = trace(tmp_path, address=0, **access).draw(line=7)
        xml.etree.ElementTree.fromstring(picture.svg)
        assert repr(picture) in picture.svg
    assert "32 turns" in repr(picture)


def test_the_same_access_at_another_address_is_the_same_picture(tmp_path):
    first, second = (trace(tmp_path, address=at, step=4).draw().svg for at in (1 << 40, 1 << 41))
    assert first == second


def test_what_is_not_in_the_trace_is_an_error_that_says_what_is(tmp_path):
    with pytest.raises(KilnError, match="line 7 load global"):
        trace(tmp_path, address=0, step=4).draw(line=8)


def test_rows_add_up(tmp_path):
    (row,) = trace(tmp_path, address=0, step=8).rows()
    assert (row["line"], row["accesses"], row["units"], row["needed"]) == (7, 1, 8, 4)
