# SPDX-License-Identifier: Apache-2.0
"""Do several processes that load one source at once build it once, and does one that dies block nobody?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import kiln

SOURCE = """
#include <kiln/op.h>
__global__ void fill(float* out, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 7.0f; }
kiln::Tensor seven(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  fill<<<1, 32, 0, kiln::stream(a)>>>(out.data<float>(), static_cast<int>(out.numel()));
  return out;
}
KILN_OP(seven, "a").fake("like(a)");
"""

RANK = """
import sys, torch, kiln
module = kiln.load(sys.argv[1])
print(module.seven(torch.zeros(4, device=kiln.device())).sum().item())
"""


def start(source: Path, cache: Path) -> subprocess.Popen[str]:
    stage = str(Path(kiln.__file__).parents[1])
    environment = os.environ | {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": stage}
    return subprocess.Popen(
        [sys.executable, "-c", RANK, str(source)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip


def test_ranks_build_once_and_a_dead_one_blocks_nobody(tmp_path: Path) -> None:
    source = tmp_path / "seven.cu"
    source.write_text(SOURCE)
    cache = tmp_path / "cache"
    ranks = [start(source, cache) for _ in range(3)]
    # The one that builds, or waits to, dies with its children as soon as a build folder is there.
    limit = time.monotonic() + 120
    while not list(cache.glob("kiln/lone/*/*/lock")) and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(ranks[0].pid, signal.SIGKILL)
    ranks[0].communicate()
    for rank in ranks[1:]:
        out, err = rank.communicate(timeout=240)
        assert rank.returncode == 0, err
        assert out.strip() == "28.0"
    # Each step was made once by those who lived; the second one found it built.
    counts = json.loads((cache / "kiln/store/counts.json").read_text())
    assert counts["misses"] <= 5, counts
    assert len(list(cache.glob("kiln/lone/*/*/libseven-*.so"))) == 1
