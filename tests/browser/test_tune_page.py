# SPDX-License-Identifier: Apache-2.0
"""Does the page of `kiln tune` work in a real browser: the heat map over any two axes, the table
that sorts, no network?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from devtools import Browser
from looks import check_looks

READY = "document.readyState === 'complete'"
PARAMS = {
    "BLOCK_M": ["32", "64", "128"],
    "BLOCK_N": ["32", "64", "96", "128"],
    "WARPS": ["2", "4", "8"],
}
# Of a run with a GPU (True) and of one on the engine.
DEVICES = {
    True: {"kind": "gpu", "name": "NVIDIA H200"},
    False: {"kind": "engine", "name": "kiln's engine on this CPU"},
}


def result(timed: bool) -> dict:
    """The fastest is BLOCK_M=128 BLOCK_N=64 WARPS=4; all with WARPS=8 and BLOCK_N=128 spill."""
    outcomes = []
    for m in PARAMS["BLOCK_M"]:
        for n in PARAMS["BLOCK_N"]:
            for w in PARAMS["WARPS"]:
                one = {
                    "defines": [f"BLOCK_M={m}", f"BLOCK_N={n}", f"WARPS={w}"],
                    "fate": "timed" if timed else "checked",
                }
                if w == "8" and n == "128":
                    one |= {
                        "fate": "pruned",
                        "reason": "40 bytes of registers spill </script> to local memory",
                    }
                elif timed:
                    one["us"] = (
                        400 + abs(int(n) - 64) * 3 + (128 - int(m)) * 2 + abs(int(w) - 4) * 25
                    )
                    one |= {"low_us": one["us"] * 0.99, "high_us": one["us"] * 1.01}
                one["facts"] = {
                    "registers": 128 + int(w),
                    "spill_bytes": 0,
                    "shared_bytes": 65536,
                    "blocks": 2,
                    "build_s": 3.5,
                }
                outcomes.append(one)
    best = {
        "defines": ["BLOCK_M=128", "BLOCK_N=64", "WARPS=4"],
        "us": 401.0,
        "low_us": 400.0,
        "high_us": 402.0,
        "ratio": [1.0, 0.99, 1.01],
    }
    second = {**best, "defines": ["BLOCK_M=128", "BLOCK_N=64", "WARPS=2"], "us": 450.0}
    return {
        "kiln_tune_result": 1, "name": "forward", "kiln": "0.1.0", "mode": "exhaustive",
        "op": "forward", "arguments": ["randn:bf16:32x16x512x128"], "check": [],
        "device": DEVICES[timed], "date": "2026-11-15",
        "space": {"params": PARAMS, "where": [], "size": 36, "allowed": 36},
        "counts": Counter(one["fate"] for one in outcomes),
        "timed": timed, "best": best if timed else None,
        "seconds": {"total": 9.0, "build": 5.0, "measure": 6.0, "total_over_longer_lane": 1.5},
        "finalists": [best, second] if timed else [], "outcomes": outcomes,
    }  # fmt: skip


def show(browser: Browser, render: Callable[..., Path], timed: bool) -> None:
    browser.messages.clear()
    browser.open(render("tune", "tune-html", result(timed)), READY)


def cells(browser: Browser) -> list[list[str]]:
    return browser.run(
        "[...document.querySelectorAll('.heat tbody tr')].map(r => [...r.cells].map(c => "
        "c.firstChild ? c.firstChild.textContent : ''))"
    )


def test_the_heat_map_shows_the_best_of_the_other_axes(
    browser: Browser, render: Callable[..., Path]
) -> None:
    show(browser, render, True)
    table = cells(browser)
    assert [row[0] for row in table] == PARAMS["BLOCK_M"]
    assert table[2][1:] == ["496.0 us", "400.0 us", "496.0 us", "592.0 us"]
    assert browser.run("document.querySelectorAll('.cell.best').length") == 1
    assert browser.run("document.querySelector('.cell.best').title").startswith(
        "BLOCK_M=128 BLOCK_N=64 WARPS=4"
    )
    # The nearer to the fastest, the stronger.
    heats = browser.run(
        "[...document.querySelectorAll('.heat tbody tr:nth-child(3) .cell')].map(c => "
        "+c.style.getPropertyValue('--heat'))"
    )
    assert heats[1] == 1 and heats[0] > heats[3]
    assert "NVIDIA H200" in browser.run("document.body.innerText")
    check_looks(browser, "tune")
    assert browser.complaints() == []


def test_other_axes_can_be_chosen(browser: Browser, render: Callable[..., Path]) -> None:
    show(browser, render, True)
    browser.run(
        "const s = document.getElementById('columns'); s.value = 'WARPS'; s.dispatchEvent(new "
        "Event('change')); 0"
    )
    table = cells(browser)
    assert table[2][1:] == ["450.0 us", "400.0 us", "500.0 us"]
    browser.run(
        "const r = document.getElementById('rows'); r.value = 'BLOCK_N'; r.dispatchEvent(new "
        "Event('change')); 0"
    )
    table = cells(browser)
    assert len(table) == 4
    assert table[3][3] == "pruned"
    assert "</script>" in browser.run(
        "document.querySelectorAll('.heat tbody tr')[3].cells[3].title"
    )


def test_one_define_is_a_row(browser: Browser, render: Callable[..., Path]) -> None:
    value = result(False)
    value["space"] = {"params": {"BLOCK": ["64", "128"]}, "where": [], "size": 2, "allowed": 2}
    value["outcomes"] = [
        {"defines": [f"BLOCK={block}"], "fate": "checked",
         "facts": {"registers": 20, "occupancy": 1.0, "build_s": seconds}}
        for block, seconds in (("64", 3.5), ("128", 2.5))
    ]  # fmt: skip
    browser.messages.clear()
    browser.open(render("tune", "tune-html", value), READY)
    assert cells(browser) == [["occupancy", "100 %", "100 %"]]
    assert not browser.run("document.getElementById('rows').offsetParent")
    check_looks(browser, "tune-one")
    assert browser.complaints() == []


def test_the_table_sorts(browser: Browser, render: Callable[..., Path]) -> None:
    show(browser, render, True)
    first = "document.querySelector('#all tbody tr:first-child td:nth-child({})').textContent"
    assert browser.run(first.format(2)) == "400.00"
    browser.run("document.querySelectorAll('#all th button')[2].click(); 0")
    assert browser.run(first.format(3)) == "130"
    browser.run("document.querySelectorAll('#all th button')[2].click(); 0")
    assert browser.run(first.format(3)) == "136"


def test_without_a_gpu_it_says_so(browser: Browser, render: Callable[..., Path]) -> None:
    show(browser, render, False)
    assert "Nothing was timed" in browser.run("document.getElementById('best').textContent")
    head = browser.run("document.querySelector('h1 + p').textContent")
    assert head.endswith("33 checked, 3 pruned.")
    # What tells variants apart colours them: here registers, since nothing spills.
    assert browser.run("document.getElementById('by').value") == "registers"
    assert cells(browser)[0][1] == "130 registers"
    assert browser.run("document.querySelector('.cell small').textContent") == "correct"
    heats = "[...document.querySelectorAll('.cell')].map(c => +c.style.getPropertyValue('--heat'))"
    assert set(browser.run(heats)) == {1}
    browser.run(
        "const c = document.getElementById('columns'); c.value = 'WARPS'; c.dispatchEvent(new "
        "Event('change')); 0"
    )
    assert browser.run(heats)[:3] == [1, 0.667, 0]
    check_looks(browser, "tune-untimed")
    assert browser.complaints() == []
