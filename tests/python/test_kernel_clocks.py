# SPDX-License-Identifier: Apache-2.0
"""Are the clocks that benchmarks/bench_bars.py holds kiln against read rightly? Their records are
written down here; a GPU has the rest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import bench_report
import kernel_clocks

COLUMNS = ["ID", "Process ID", "Kernel Name", "Block Size", "Grid Size", "Section Name"]
COLUMNS += ["Metric Name", "Metric Unit", "Metric Value"]


def ncu_row(launch: int, blocks: int, metric: str, unit: str, value: str) -> str:
    section = "Command line profiler metrics"
    cells = [
        launch,
        42,
        "plain_add",
        "(256, 1, 1)",
        f"({blocks}, 1, 1)",
        section,
        metric,
        unit,
        value,
    ]
    return ",".join(f'"{cell}"' for cell in cells)


NCU = "\n".join(
    [
        "==PROF== Connected to process 42",
        ",".join(f'"{name}"' for name in COLUMNS),
        ncu_row(0, 4096, "gpu__time_duration.sum", "ns", "14,880"),
        ncu_row(1, 16384, "gpu__time_duration.sum", "us", "49.3"),
        ncu_row(2, 4096, "gpu__time_duration.sum", "ns", "15,008"),
        ncu_row(2, 4096, "other", "ns", "1"),
        "==PROF== Disconnected from process 42\n",
    ]
)


def test_a_call_lasts_from_its_first_kernel_to_its_last():
    seen = [("spin", 0.0, 30.0), ("Memset", 31.0, 70.0), ("first", 71.5, 80.0), ("second", 81.0,
            86.5), ("spin", 100.0, 130.0), ("Memset", 131.0, 170.0), ("first", 171.0, 180.0),
            ("second", 181.0, 187.0)]  # fmt: skip
    times, gaps = kernel_clocks.durations(seen, {"first", "second"})
    assert times == [15.0, 16.0]
    assert gaps == [1.5, 1.0]


def test_rounds_have_every_way_and_another_order():
    order = []
    ways = {
        name: lambda name=name: order.append(name) or {"trimmed": float(ord(name))}
        for name in "abc"
    }
    rounds = kernel_clocks.in_rounds(ways, 8)
    assert [set(one) for one in rounds] == [set("abc")] * 8
    assert len({tuple(order[i : i + 3]) for i in range(0, 24, 3)}) > 1
    assert kernel_clocks.ratio(rounds, "b", "a") == pytest.approx(98 / 97)


def test_a_clock_that_is_not_there_has_no_ratio():
    assert kernel_clocks.ratio([{"a": None, "b": {"trimmed": 1.0}}], "a", "b") is None


def test_what_ncu_lists():
    rows = kernel_clocks.ncu_rows(NCU)
    assert rows["4096,1,1"] == pytest.approx([14.88, 15.008]) and rows[
        "16384,1,1"
    ] == pytest.approx([49.3])
    assert kernel_clocks.ncu_rows("==ERROR== ERR_NVGPUCTRPERM\n") == {}


def agreement(off: float) -> dict:
    """One row, kiln `off` times as long as torch.profiler in each of three rounds that drift."""
    rounds = [
        {
            "kernel": {"trimmed": 15.0 * drift * off},
            "kineto": {"trimmed": 15.0 * drift},
            "kineto, plain loop": None,
        }
        for drift in (1.0, 1.02, 0.98)
    ]
    place = {"events": {"trimmed": 17.4}, "rounds": rounds}
    plain = {"bits": 22, "in_flight": 1.0, "stream": "default", "busy_us": 0.0, "trimmed_us": 17.3}
    return {
        "agreement": [{"op": "plain_add", "size": "2^22", "places": [place]}],
        "plain": [plain],
        "machine": {},
    }


@pytest.mark.parametrize(
    "off, holds", [(1.004, True), (0.993, True), (1.012, False), (0.985, False)]
)
def test_the_bar_is_the_ratio_within_rounds(off, holds):
    (_, _, seen, ok), *_ = bench_report.bars(agreement(off))
    assert ok == holds, seen
    assert f"{abs(off - 1):.2%}".replace("%", " %") in seen


def test_the_report_has_each_round_of_the_loops_and_why_ncu_is_missing():
    out = agreement(1.001)
    out["ncu"] = {"why": "ncu is not here"}
    out["loops"] = {
        "torch.add 2^22": {
            "kiln": {"trimmed": 15.0, "to_kineto": 1.01, "gap_us": None, "medians": [14.9, 15.1]}
        }
    }
    text = bench_report.markdown(out)
    assert "No times of ncu: ncu is not here." in text
    assert "| kiln | 15.00 | +1.00 % |  | 14.90 15.10 |" in text
