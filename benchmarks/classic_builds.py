# SPDX-License-Identifier: Apache-2.0
"""What is the classic advice about slow extension builds worth? torch.utils.cpp_extension with each
piece of it added in turn.

Folklore: all architectures 180 s, with ninja 35, with a pinned architecture 12, with jobs 8, with
ccache under 1. A kernel with torch's headers takes a minute of a core for one architecture: on a
machine of a few cores there is one kernel for two architectures, so that the table takes less than
ten minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sampling import seconds_of

FIVE = "7.5;8.0;8.6;8.9;9.0+PTX"
TWO = "8.0;9.0+PTX"
MANY_CORES = 8
BUDGET_S = 500  # no build begins later

KERNEL = """#include <torch/extension.h>
__global__ void scale_{n}(const float* a, float* out, long n) {{
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * {n}.0f;
}}
torch::Tensor op_{n}(torch::Tensor a) {{
  auto out = torch::empty_like(a);
  scale_{n}<<<(a.numel() + 255) / 256, 256>>>(a.data_ptr<float>(), out.data_ptr<float>(),
                                              a.numel());
  return out;
}}
"""
BINDING = """#include <torch/extension.h>
{declarations}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {definitions} }}
"""
SETUP = """
import sys
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(name="classic", ext_modules=[CUDAExtension("classic", {sources})],
      cmdclass={{"build_ext": BuildExtension.with_options(use_ninja={ninja})}})
"""
KILN = """#include <kiln/op.h>
__global__ void scale_kernel(const float* a, float* out, long long n) {
  long long i = kiln::global_thread();
  if (i < n) out[i] = a[i] * 2.0f;
}
kiln::Tensor op(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  scale_kernel<<<kiln::blocks_for(out.numel(), 256), 256, 0, kiln::stream(a)>>>(
      a.data<const float>(), out.data<float>(), out.numel());
  return out;
}
KILN_OP(op, "a").fake("like(a)");
"""


@dataclass
class Way:
    what: str
    folklore: str
    ninja: bool
    arch: str
    jobs: str = ""
    ccache: bool = False


@dataclass
class Size:
    """What is built: enough to see the advice at work, not more than the machine can do in
    minutes."""

    kernels: int
    archs: str

    def told(self) -> str:
        kernels = "one kernel" if self.kernels == 1 else f"{self.kernels} kernels"
        return f"{kernels} and a binding, {len(self.archs.split(';'))} architectures"


def size_for(cores: int) -> Size:
    return Size(2, FIVE) if cores >= MANY_CORES else Size(1, TWO)


def sources_in(folder: Path, size: Size) -> list[str]:
    folder.mkdir(parents=True)
    numbers = range(1, size.kernels + 1)
    declarations = "\n".join(f"torch::Tensor op_{n}(torch::Tensor a);" for n in numbers)
    definitions = " ".join(f'm.def("op_{n}", &op_{n});' for n in numbers)
    (folder / "binding.cpp").write_text(
        BINDING.format(declarations=declarations, definitions=definitions)
    )
    for number in numbers:
        (folder / f"kernel_{number}.cu").write_text(KERNEL.format(n=number))
    return ["binding.cpp", *(f"kernel_{number}.cu" for number in numbers)]


def build(folder: Path, way: Way, sources: list[str]) -> float:
    shutil.rmtree(folder / "build", ignore_errors=True)
    for library in folder.glob("*.so"):
        library.unlink()
    (folder / "setup.py").write_text(SETUP.format(ninja=way.ninja, sources=sources))
    environment = {
        k: v for k, v in os.environ.items() if k not in ("MAX_JOBS", "NVCC_APPEND_FLAGS")
    }
    environment |= {"TORCH_CUDA_ARCH_LIST": way.arch}
    if way.jobs:
        environment |= {"MAX_JOBS": way.jobs, "NVCC_APPEND_FLAGS": f"--threads={way.jobs}"}
    if way.ccache:
        # Torch asks $CXX for its version, and "ccache g++" has none: ccache goes by the compiler's
        # own name.
        links = folder / "bin"
        links.mkdir(exist_ok=True)
        for name in ("g++", "gcc", "c++", "cc"):
            if not (links / name).exists():
                (links / name).symlink_to(shutil.which("ccache"))
        environment |= {
            "PYTORCH_NVCC": "ccache nvcc",
            "CXX": str(links / "g++"),
            "CC": str(links / "gcc"),
        }
        environment |= {
            "CCACHE_DIR": str(folder / "ccache"),
            "PATH": f"{links}:{environment['PATH']}",
        }
    return seconds_of([sys.executable, "setup.py", "build_ext", "--inplace"], environment, folder)


def seconds_shown(folder: Path, way: Way, size: Size, end: float) -> str:
    if way.ccache and not shutil.which("ccache"):
        return "no ccache here"
    sources = sources_in(folder, size)
    try:
        for last in (False, True) if way.ccache else (True,):  # the first build fills ccache
            if time.monotonic() > end:
                return "not measured: out of time"
            seconds = build(folder, way, sources)
            if last:
                return f"{seconds:.2f}"
    except RuntimeError as error:
        return "failed: " + str(error).strip().splitlines()[-1][:80]
    return ""


def edited(bench: Any, source: Path) -> float:
    """The second edit: the first one shows NVRTC to be right."""
    for factor in (3, 4, 5):
        source.write_text(KILN.replace("2.0f", f"{factor}.0f"))
        seconds = bench.build(source)[0]
    return seconds


def classic_rows(scratch: Path, bench: Any) -> list[tuple[str, str, str]]:
    """(what, seconds, folklore); a piece that cannot be tried here says why. Torch's own builds run
    side by side where there are cores for all of them, else one after another."""
    cores = len(os.sched_getaffinity(0))
    size, end = size_for(cores), time.monotonic() + BUDGET_S
    has_torch = (
        subprocess.run(
            [sys.executable, "-c", "import torch, setuptools"], capture_output=True
        ).returncode
        == 0
    )
    ways = [
        Way("all architectures, no ninja", "180", False, size.archs),
        Way("+ ninja", "35", True, size.archs),
        Way("+ pinned architecture", "12", True, "9.0"),
        Way("+ jobs", "8", True, "9.0", str(cores)),
        Way("+ ccache, second build", "< 1", True, "9.0", str(cores), True),
    ]
    rows: list[tuple[str, str, str]] = []

    def keep(what: str, seconds: str, folklore: str) -> None:
        rows.append((what, seconds, folklore))
        print(" | ".join(rows[-1]), flush=True)

    source = bench.source("classic.cu", KILN)
    kiln = {
        "kiln, all architectures, from nothing": lambda: bench.cold(source, arch=size.archs),
        "kiln, pinned architecture, from nothing": lambda: bench.cold(source),
        "kiln, after rm -rf build": lambda: bench.hit(source),
        "kiln, an edit of the kernel": lambda: edited(bench, source),
        "kiln, nothing changed": lambda: bench.build(source)[0],
    }
    own = [(what, f"{way():.2f}", "") for what, way in kiln.items()]
    with ThreadPoolExecutor(len(ways) if cores >= 3 * len(ways) else 1) as pool:
        shown = [
            pool.submit(seconds_shown, scratch / f"classic-{n}", way, size, end)
            if has_torch
            else None
            for n, way in enumerate(ways)
        ]
        for way, seconds in zip(ways, shown):
            keep(way.what, seconds.result() if seconds else "no torch here", way.folklore)
    for row in own:
        keep(*row)
    return rows
