# SPDX-License-Identifier: Apache-2.0
"""Does kiln.bench see through every trick on a real GPU, and is what it says of honest calls
true?"""

from __future__ import annotations

import sys
from pathlib import Path

import kiln
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "traps"))
from traps import TRAPS  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
QUICK = {
    "min_warm_up_s": 0.02,
    "max_warm_up_s": 0.1,
    "min_time_s": 0.1,
    "max_time_s": 2,
    "side_s": 0.02,
}


def pair(elements: int):
    return torch.randn(elements, device="cuda"), torch.randn(elements, device="cuda")


@pytest.mark.parametrize("trap", TRAPS, ids=lambda t: f"{t.name}-{getattr(t.make, '__name__', '')}")
def test_traps(trap):
    x, y = pair(trap.elements)
    against = trap.right if trap.options.get("check", True) else None
    if trap.refused:
        with pytest.raises(kiln.KilnError) as caught:
            kiln.bench(trap.make(), x, y, against=against, options=QUICK, **trap.options)
        assert (
            getattr(caught.value, "trap", caught.value.why).startswith(trap.name)
            or trap.name == "allocates without end"
        )
    else:
        assert (
            trap.name
            in kiln.bench(trap.make(), x, y, against=against, options=QUICK, **trap.options).traps()
        )


def test_an_honest_add(capsys):
    x, y = pair(1 << 24)
    result = kiln.bench(torch.add, x, y, name="add", against={"add again": torch.add})
    with capsys.disabled():
        print("\n" + str(result))
    one = result.json["contenders"][0]
    assert result.verdict in ("SAME", "AMBIGUOUS")
    assert result.json["time"] == "GPU time"
    assert one["kernel"] is not None, one["kernel_why"]
    assert one["graph"] is not None, one["graph_why"]
    assert one["cold"]["converged"]
    assert 0.5 < one["of_copy"] < 1.1
    assert result.json["clocks"]["median_mhz"] > 500
    assert "competing process" not in result.traps(), result.findings


def test_a_gemm_has_a_roof():
    x, y = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    result = kiln.bench(torch.matmul, x, y, flops=2 * 4096**3, check=False, options=QUICK)
    assert 0.3 < result.json["contenders"][0]["of_gemm"] < 1.1, result.json["roof"]


def test_errors_of_the_call_come_through():
    def broken(a, b):
        raise ValueError("no luck today")

    x, y = pair(1 << 10)
    with pytest.raises(ValueError, match="no luck today"):
        kiln.bench(broken, x, y, check=False, options=QUICK)


def test_more_memory_than_there_is():
    x, y = pair(1 << 10)
    with pytest.raises(torch.OutOfMemoryError):
        kiln.bench(
            lambda a, b: torch.empty(1 << 42, device="cuda"), x, y, check=False, options=QUICK
        )


def test_an_endless_kernel_ends_at_the_limit():
    script = (
        "import torch, kiln\n"
        "x = torch.zeros(4, device='cuda')\n"
        "try:\n"
        "    kiln.bench(lambda a: torch.cuda._sleep(30_000_000_000), x, check=False, "
        "options={'call_limit_s': 1})\n"
        "except kiln.KilnError as error:\n"
        "    print(error, flush=True)\n"
        "import os; os._exit(0)\n"
    )
    import os
    import subprocess

    path = str(Path(kiln.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "still runs after 1 s" in done.stdout, done.stdout + done.stderr


def test_profiler_that_is_taken_is_told():
    x, y = pair(1 << 20)
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]):
        result = kiln.bench(torch.add, x, y, check=False, options=QUICK)
    assert result.json["contenders"][0]["kernel"] is None
    after = kiln.bench(torch.add, x, y, check=False, options=QUICK)
    assert after.json["contenders"][0]["kernel"] is not None, after.json["contenders"][0][
        "kernel_why"
    ]
    # torch.profiler leaves its own clock with CUPTI: times in it were 2.1 times too long.
    assert 0.3 * after.median_ns < after.kernel_ns < after.median_ns
    assert 0.9 < after.json["contenders"][0]["cupti_clock"] < 1.1


def test_an_op_without_torch_is_captured(tmp_path):
    import json
    import subprocess

    command = Path(kiln.__file__).parent / "bin/kiln"
    words = [
        "bench",
        str(ROOT / "kernels"),
        "my_add",
        "randn:f32:2^20",
        "randn:f32:2^20",
        "--json",
        "--no-history",
    ]
    done = subprocess.run(
        [str(command), *words], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    one = json.loads(done.stdout)["results"][0]["contenders"][0]
    assert one["graph"] is not None, one["graph_why"]
    assert one["graph"]["median_ns"] < 1.2 * one["batched"]["median_ns"]


def test_a_profile_knows_its_bytes():
    x = torch.randn(1 << 24, device="cuda")
    tree = kiln.profile(lambda: torch.sqrt(x * x)).json
    kernels = [kernel for node in tree["tree"] for kernel in node["kernels"]]
    assert [kernel["bytes"] for kernel in kernels] == [8 << 24, 8 << 24]
    assert tree["wall_us"] < 2000, "the profiler's start is not in it"
