# SPDX-License-Identifier: Apache-2.0
"""Does `kiln inspect` say of this machine's GPU what the driver then does with the library?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import kiln
import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

SOURCE = """
#include <cstdio>
__global__ void k(int* p) { *p = 7; }
extern "C" int run() {
  int* p = nullptr;
  if (cudaMalloc(&p, 4) != cudaSuccess) return -1;
  k<<<1, 1>>>(p);
  int value = 0;
  cudaError_t launched = cudaGetLastError();
  if (launched != cudaSuccess) return -static_cast<int>(launched);
  if (cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost) != cudaSuccess) return -2;
  return value;
}
"""
NO_IMAGE = -209  # cudaErrorNoKernelImageForDevice


def capability() -> int:
    major, minor = torch.cuda.get_device_capability()
    return major * 10 + minor


def build(folder: Path, *codes: str) -> Path:
    (folder / "k.cu").write_text(SOURCE)
    words = ["nvcc", "-shared", "-Xcompiler", "-fPIC", "k.cu", "-o", "k.so"]
    for code in codes:
        words += ["-gencode", code]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "k.so"


def inspect(library: Path) -> tuple[dict, str]:
    command = [Path(kiln.__file__).parent / "bin/kiln", "inspect", library, "--overview"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    answer = json.loads(
        subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout
    )
    here = next(line for line in text.splitlines() if line.startswith("  here"))
    return answer["files"][0]["here"][0], here


def run(library: Path, **env: str) -> int:
    script = f"import ctypes; print(ctypes.CDLL({str(library)!r}).run())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **env}
    )
    return int(done.stdout)


def test_native(tmp_path):
    number = capability()
    library = build(tmp_path, f"arch=compute_{number},code=sm_{number}")
    here, line = inspect(library)
    assert here == {
        "arch": f"{number // 10}.{number % 10}",
        "service": "native",
        "by": f"sm_{number}",
        "jit_containers": 0,
    }
    assert f"runs sm_{number} natively" in line
    # Native: it runs where the driver may not compile PTX.
    assert run(library, CUDA_DISABLE_PTX_JIT="1") == 7


def test_by_jit(tmp_path):
    library = build(tmp_path, "arch=compute_75,code=compute_75")
    if capability() < 75:
        pytest.skip("the GPU is older than sm_75")
    here, line = inspect(library)
    assert (here["service"], here["by"]) == ("jit", "compute_75")
    assert "the driver compiles compute_75" in line
    assert run(library) == 7


def test_not_at_all(tmp_path):
    other = 120 if capability() // 10 != 12 else 90
    library = build(tmp_path, f"arch=compute_{other},code=sm_{other}")
    here, line = inspect(library)
    assert (here["service"], here["by"]) == ("none", None)
    assert "cannot run" in line
    assert run(library) == NO_IMAGE
