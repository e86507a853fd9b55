# SPDX-License-Identifier: Apache-2.0
"""Do the pages of benchmarks, cold starts and profiles work in a real browser: charts, zoom, two
themes, no network?"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from devtools import Browser
from looks import check_looks

READY = "document.readyState === 'complete'"


def summary(median_ns: float) -> dict:
    names = ("least", "greatest", "mean", "trimmed", "p05", "p25", "p75", "p95")
    return {
        "median_ns": median_ns,
        "low_ns": median_ns * 0.998,
        "high_ns": median_ns * 1.002,
        "count": 400,
        **{f"{name}_ns": median_ns for name in names},
        "outliers": 0,
        "far_outliers": 0,
    }


def result(title: str, us: float, size: int) -> dict:
    def contender(name: str, factor: float) -> dict:
        samples = [
            1e3 * us * factor * (1 + 0.004 * math.sin(i * 1.7) + 0.002 * math.sin(i * 5.1))
            for i in range(400)
        ]
        middle = 1e3 * us * factor
        return {
            "name": name,
            "cold": {
                **summary(middle),
                "converged": True,
                "throttled": 0,
                "late": 0,
                "drift": 0.0,
                "burst_ns": middle,
                "sustained_ns": middle,
                "samples_ns": samples,
            },
            "hot": summary(middle * 0.8),
            "batched": summary(middle * 0.85),
            "batch_calls": 10,
            "graph": summary(middle * 0.82),
            "kernel": summary(middle * 0.95),
            "kernel_busy_ns": None,
            "kernels": [],
            "launch": summary(4000.0),
            "host_sync": None,
            "plain_events": None,
            "first_ns": 1e6,
            "second_ns": 1e5,
            "bytes": 12 * size,
            "bytes_declared": True,
            "flops": 0,
            "gb_per_s": 12 * size / middle,
            "of_copy": 12 * size / middle / 4000,
        }

    return {
        "format": 1,
        "time": "GPU time",
        "title": title,
        "date": "2026-11-15T06:00:00Z",
        "kiln": "0.1.0",
        "correct": "equal to torch.add",
        "device": {
            "kind": "cuda",
            "name": "NVIDIA H200",
            "index": 0,
            "driver": "580.1",
            "cuda": "13.0",
            "compute": "9.0",
            "multiprocessors": 132,
            "l2_bytes": 50 << 20,
            "memory_bytes": 141 << 30,
            "most_mhz": 1980,
            "peak_gb_per_s": 4800.0,
            "notes": "",
        },
        "machine": {"host": "here", "cpu": "a CPU"},
        "versions": {"torch": "2.11.0"},
        "clocks": {
            "median_mhz": 1980,
            "least_mhz": 1965,
            "greatest_mhz": 1980,
            "reasons": "",
            "watts": 300,
            "celsius": 45,
        },
        "contenders": [contender("my_add", 1.0), contender("torch.add", 1.012)],
        "comparisons": [
            {
                "a": "my_add",
                "b": "torch.add",
                "verdict": "FASTER",
                "ratio": {"value": 0.988, "low": 0.986, "high": 0.99},
                "threshold": 0.005,
                "a_against_a": {"value": 1.0, "low": 0.999, "high": 1.001},
            }
        ],
        "findings": [
            {
                "trap": "L2-resident inputs",
                "weight": "note",
                "contender": "my_add",
                "text": "with its data in L2 <1.2x>",
            },
            {
                "trap": "competing process",
                "weight": "warning",
                "contender": "",
                "text": "another process uses this GPU",
            },
        ],
        "refused": False,
        "roof": {
            "copy_gb_per_s": 4000.0,
            "copy_same_size_gb_per_s": 3900.0,
            "gemm_tflop_per_s": 0,
            "gemm_why": "",
        },
        "empty_pair_ns": 1300.0,
        "harness_host_ns": 900.0,
        "seconds": 2.0,
    }


def node(
    name: str, begin: float, us: float, children: list | None = None, kernels: list | None = None
) -> dict:
    below = children or []
    gpu = sum(k["us"] for k in kernels or [])
    return {
        "name": name,
        "shapes": "4096x4096",
        "begin_us": begin,
        "cpu_us": us,
        "cpu_self_us": us - sum(c["cpu_us"] for c in below),
        "gpu_self_us": gpu,
        "gpu_us": gpu + sum(c["gpu_us"] for c in below),
        "kernels": kernels or [],
        "children": below,
    }


def profile() -> dict:
    kernel = {
        "name": "vectorized_elementwise_kernel<4>",
        "us": 35.0,
        "grid": [4096, 1, 1],
        "block": [128, 1, 1],
        "registers": 24,
        "occupancy": 98,
        "shared_bytes": 0,
        "stream": 7,
        "bytes": 140_000_000,
    }
    tree = [
        node("aten::mul", 5, 40, kernels=[kernel]),
        node("aten::sqrt", 50, 60, [node("aten::empty_like", 52, 9)], [kernel]),
    ]
    timeline = [
        {
            "kind": "op",
            "name": n["name"],
            "begin_us": n["begin_us"],
            "us": n["cpu_us"],
            "lane": f"CPU {d}",
        }
        for d, n in [(0, tree[0]), (0, tree[1]), (1, tree[1]["children"][0])]
    ] + [
        {"kind": "kernel", "name": kernel["name"], "begin_us": b, "us": 35.0, "lane": "stream 7"}
        for b in (30, 90)
    ]
    return {
        "format": 1,
        "title": "torch.sqrt(x * x)",
        "time": "GPU time",
        "wall_us": 130.0,
        "gpu_us": 70.0,
        "gpu_idle": 0.46,
        "verdict": "launch bound: fuse them",
        "tree": tree,
        "timeline": timeline,
        "kernel_count": 2,
    }


def cold() -> dict:
    stages = [
        ("driver library", 2),
        ("cuInit", 40),
        ("context", 210),
        ("dlopen of the library", 1),
        ("first allocation", 3),
        ("first call", 27),
        ("wait for it", 0.2),
    ]
    rows = [
        {"name": n, "median_ns": ms * 1e6, "low_ns": ms * 0.9e6, "high_ns": ms * 1.2e6}
        for n, ms in stages
    ]
    rows.append({"name": "cuDNN handle", "median_ns": None, "why": "not there"})
    return {
        "format": 1,
        "title": "my_add",
        "kinds": [{"kind": "native", "runs": 10, "stages": rows, "total_ns": 283.2e6}],
        "advice": ["the driver and the CUDA context take 250 ms"],
    }


@pytest.fixture(scope="module")
def pages(render: Callable[..., Path]) -> dict[str, Path]:
    sweep = [
        {**result(f"my_add(f32 2^{n})", 12 * 2**n / 3.9e6 + 4, 2**n), "axes": {"n": f"2^{n}"}}
        for n in (20, 22, 24, 26)
    ]
    past = [result("my_add(f32 2^20)", 7 + 0.1 * i, 2**20) for i in range(8)]
    return {
        "bench": render("bench", "html", {"results": sweep, "history": past}),
        "profile": render("profile", "profile-html", profile()),
        "cold": render("cold", "cold-html", cold()),
    }


@pytest.mark.parametrize("name", ["bench", "profile", "cold"])
def test_a_page(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.messages.clear()
    browser.open(pages[name], READY)
    assert browser.run("document.querySelectorAll('svg').length") >= 1
    # Nothing lies outside of its picture, and no figure is missing.
    assert browser.run(
        "![...document.querySelectorAll('svg *')].some(n => [...n.attributes].some(a => "
        "/NaN|inf/.test(a.value)))"
    )
    outside = """[...document.querySelectorAll('svg rect, svg circle')].filter(n => {
      const box = n.getBBox(), view = n.ownerSVGElement.viewBox.baseVal;
      return box.x < -1 || box.x + box.width > view.width + 1 ||
             box.y < -1 || box.y + box.height > view.height + 1; }).length"""
    assert browser.run(outside) == 0
    colours = []
    for theme in ("light", "dark"):
        browser.theme(theme)
        colours.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    check_looks(browser, name)
    assert colours[0] != colours[1]
    assert browser.complaints() == []


def test_the_benchmark_page_has_its_parts(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["bench"], READY)
    text = browser.run("document.body.textContent")
    for word in (
        "my_add(f32 2^20)",
        "my_add over n",
        "FASTER",
        "competing process",
        "Roofline",
        "History",
        "NVIDIA H200",
        "with its data in L2 <1.2x>",
    ):
        assert word in text
    assert browser.run("document.querySelectorAll('path.area').length") == 8
    # The sweep's points, over the axis and in the roofline, and the past.
    assert browser.run("document.querySelectorAll('circle.mark').length") == 8 + 8 + 8


def test_a_link_of_the_summary_opens_its_result(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["bench"], READY)
    assert browser.run("document.getElementById('result2').open") is False
    browser.click("a[href='#result2']")
    assert browser.run("new Promise((done) => setTimeout(() => done(result2.open)))") is True


def test_the_timeline_zooms(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["profile"], READY)
    assert "4000 GB/s" in browser.run("document.body.textContent")
    width = "document.querySelector('.timeline svg').clientWidth"
    ticks = "[...document.querySelectorAll('.ticks text')].map(n => n.textContent)"
    before, first = browser.run(width), browser.run(ticks)
    browser.click("[data-zoom='2']")
    assert browser.run(width) == pytest.approx(2 * before, rel=0.02)
    # More ticks, each a round number; names are not stretched.
    assert len(browser.run(ticks)) > len(first)
    assert first[:2] == ["0", "20 us"]
    assert browser.run("document.querySelector('.timeline svg').getScreenCTM().a") == 1
    browser.run("document.querySelector('.timeline').focus()")
    browser.press("+")
    assert browser.run(width) == pytest.approx(4 * before, rel=0.02)
    browser.click("[data-zoom='0']")
    assert browser.run(width) == pytest.approx(before, rel=0.02)
    assert browser.run(
        "[...document.querySelectorAll('.flame title')].some(n => "
        "n.textContent.includes('aten::sqrt'))"
    )
