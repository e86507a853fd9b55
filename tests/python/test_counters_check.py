# SPDX-License-Identifier: Apache-2.0
"""Does the comparison with ncu keep what it has when ncu hangs or refuses, and does it name causes
from what was counted? ncu is a script here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import counters_causes  # noqa: E402
import counters_ncu  # noqa: E402

FAKE = """#!/usr/bin/env python3
import os, sys, time
words = sys.argv
value = lambda name: words[words.index(name) + 1]
names = value("--metrics").split(",")
if "hangs" in words[-1]:
    time.sleep(60)
if os.environ.get("FAKE_REFUSES") and len(names) > 15:
    sys.exit("too many metrics")
skip, count = int(value("--launch-skip")), int(value("--launch-count"))
with open(value("--log-file"), "w") as log:
    print("==PROF== Connected", file=log)
    print(",".join(f'"{n}"' for n in ["ID", "Kernel Name", *names]), file=log)
    print(",".join('""' for n in [0, 1, *names]), file=log)
    for i in range(skip, min(3, skip + count)):
        print(",".join(f'"{n}"' for n in [i, "k(int, int)", *["1,234"] * len(names)]), file=log)
"""


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ncu").write_text(FAKE)
    (folder / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setattr(counters_ncu, "RUN_S", 2.0)
    return tmp_path


def jobs(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "built": f"/{name}", "arguments": []} for name in names]


def test_a_program_that_hangs_costs_its_own_numbers_alone(ncu: Path) -> None:
    found = counters_ncu.count(jobs("good", "hangs", "later"), lambda one: "", ncu, 60, 12)
    assert [len(found[name].get("launches", [])) for name in ("good", "hangs", "later")] == [
        3,
        0,
        3,
    ]
    assert found["hangs"]["missing"] == {"whole": "stopped after 2 s"}
    assert json.loads((ncu / "ncu.json").read_text()) == found
    metrics = found["good"]["launches"][2]["metrics"]
    assert metrics["gpu__time_duration.sum"] == 1234 and set(metrics) == set(counters_ncu.ALL)


def test_groups_apart_where_one_run_is_refused(ncu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_REFUSES", "yes")
    found = counters_ncu.count(jobs("good"), lambda one: "", ncu, 60, 12)
    assert set(found["good"]["launches"][0]["metrics"]) == set(counters_ncu.ALL)


def test_no_time_and_no_program(ncu: Path) -> None:
    found = counters_ncu.count(jobs("good", "bad"), lambda one: "nvcc: no", ncu, 60, 12)
    assert found == {"good": {"why": "nvcc: no"}, "bad": {"why": "nvcc: no"}}
    assert counters_ncu.count(jobs("good"), lambda one: "", ncu, 0.5, 12) == {}


LOADS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"


def pair(metric: str, **more: Any) -> dict[str, Any]:
    known = {"metric": metric, "ncu": 7, "engine": 9, "in_another_order": None, "sass": None}
    known |= {"passes_in_l1": None, "passes_by_patching": None, "engine_passes": 9}
    return known | {"other_registers": None} | more


def change(of: str, **more: int) -> dict[str, Any]:
    none = dict.fromkeys(("absent", "other_width", "copies", "moved", "added"), 0)
    return {"of": of, "ptx": 12} | none | more


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (pair(LOADS), "not explained"),
        (pair(LOADS, in_another_order=9, sass=[change("global loads")]), "not explained"),
        (pair(LOADS, in_another_order=8), "order of warps"),
        (pair(LOADS, sass=[change("global loads", moved=2)]), "moved 2 of 12 global loads"),
        (pair(LOADS, sass=[change("shared loads", absent=2)]), "not explained"),
        (pair(LOADS, sass=[change("branches", copies=1)]), "several copies of 1 of 12 branches"),
        (pair(PASSES, sass=[change("shared loads", absent=2)]), "joined or removed 2 of 12"),
        (pair(PASSES, passes_in_l1=9, passes_by_patching=18), "9 in L1, 18 by patching SASS"),
        (pair(PASSES, passes_in_l1=8, passes_by_patching=18), "not explained"),
        (pair(LOADS, other_registers=("k", 31, 24)), "k has 31 and 24 registers"),
    ],
)
def test_causes(found: dict[str, Any], words: str) -> None:
    assert words in counters_causes.cause_of(found)
