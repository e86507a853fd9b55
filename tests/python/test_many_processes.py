# SPDX-License-Identifier: Apache-2.0
"""Do several processes that load one source at once build it once, and does one that dies block
nobody?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import kiln
import pytest

SOURCE = """
#include <kiln/op.h>
__global__ void fill(float* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 7.0f;
}
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


LOADER = """
import sys, torch, kiln
class Sevens(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return kiln.load(sys.argv[1]).seven(torch.zeros(1))
loader = torch.utils.data.DataLoader(Sevens(), num_workers=4, batch_size=1)
print(sum(batch.sum().item() for batch in loader))
"""


def environment(cache: Path) -> dict[str, str]:
    return os.environ | {
        "XDG_CACHE_HOME": str(cache),
        "PYTHONPATH": str(Path(kiln.__file__).parents[1]),
    }


def start(source: Path, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RANK, str(source)], env=environment(cache), text=True,
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def assert_built_once(cache: Path) -> None:
    """Each step was made once; the others found it built."""
    counts = json.loads((cache / "kiln/store/counts.json").read_text())
    assert counts["misses"] <= 5, counts
    assert len(list(cache.glob("kiln/lone/*/*/libseven-*.so"))) == 1


@pytest.mark.long
def test_ranks_build_once_and_a_dead_one_blocks_nobody(tmp_path: Path) -> None:
    source = tmp_path / "seven.cu"
    source.write_text(SOURCE)
    cache = tmp_path / "cache"
    ranks = [start(source, cache) for _ in range(3)]
    # The one that builds, or waits to, dies with its children as soon as a build folder is there.
    limit = time.monotonic() + 120
    while not list(cache.glob("kiln/lone/*/*/.kiln.lock")) and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(ranks[0].pid, signal.SIGKILL)
    ranks[0].communicate()
    for rank in ranks[1:]:
        out, err = rank.communicate(timeout=240)
        assert rank.returncode == 0, err
        assert out.strip() == "28.0"
    assert_built_once(cache)


@pytest.mark.long
def test_workers_of_a_data_loader_build_once(tmp_path: Path) -> None:
    source, cache = tmp_path / "seven.cu", tmp_path / "cache"
    source.write_text(SOURCE)
    env = environment(cache) | {"KILN_DEVICE": "engine"}
    line = [sys.executable, "-c", LOADER, str(source)]
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "56.0"
    assert_built_once(cache)


@pytest.mark.long
def test_ranks_of_torchrun_build_once(tmp_path: Path) -> None:
    source, cache, rank = tmp_path / "seven.cu", tmp_path / "cache", tmp_path / "rank.py"
    source.write_text(SOURCE)
    rank.write_text(RANK)
    line = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        str(rank),
        str(source),
    ]
    done = subprocess.run(line, env=environment(cache), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("28.0") == 2, (
        done.stdout
    )  # two ranks write at once: their lines may run together
    assert_built_once(cache)
