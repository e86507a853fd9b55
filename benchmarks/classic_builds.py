# SPDX-License-Identifier: Apache-2.0
"""What is the classic advice about slow extension builds worth? torch.utils.cpp_extension with each piece of it added in turn.

Folklore: all architectures 180 s, with ninja 35, with a pinned architecture 12, with jobs 8, with ccache under 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from sampling import seconds_of

ALL = "7.5;8.0;8.6;8.9;9.0;10.0;12.0+PTX"

KERNEL = """#include <torch/extension.h>
__global__ void scale_{n}(const float* a, float* out, long n) {{
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * {n}.0f;
}}
torch::Tensor op_{n}(torch::Tensor a) {{
  auto out = torch::empty_like(a);
  scale_{n}<<<(a.numel() + 255) / 256, 256>>>(a.data_ptr<float>(), out.data_ptr<float>(), a.numel());
  return out;
}}
"""
BINDING = """#include <torch/extension.h>
torch::Tensor op_1(torch::Tensor a);
torch::Tensor op_2(torch::Tensor a);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("op_1", &op_1); m.def("op_2", &op_2); }
"""
SETUP = """
import sys
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(name="classic", ext_modules=[CUDAExtension("classic", ["binding.cpp", "one.cu", "two.cu"])],
      cmdclass={{"build_ext": BuildExtension.with_options(use_ninja={ninja})}})
"""
KILN = """#include <kiln/op.h>
__global__ void scale_kernel(const float* a, float* out, long long n) {
  long long i = kiln::global_thread();
  if (i < n) out[i] = a[i] * 2.0f;
}
kiln::Tensor op(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  scale_kernel<<<kiln::blocks_for(out.numel(), 256), 256, 0, kiln::stream(a)>>>(a.data<const float>(), out.data<float>(), out.numel());
  return out;
}
KILN_OP(op, "a").fake("like(a)");
"""


def build(folder: Path, ninja: bool, arch: str, jobs: str, ccache: bool) -> float:
    shutil.rmtree(folder / "build", ignore_errors=True)
    for library in folder.glob("*.so"):
        library.unlink()
    (folder / "setup.py").write_text(SETUP.format(ninja=ninja))
    environment = {k: v for k, v in os.environ.items() if k not in ("MAX_JOBS", "NVCC_APPEND_FLAGS")}
    environment |= {"TORCH_CUDA_ARCH_LIST": arch}
    if jobs:
        environment |= {"MAX_JOBS": jobs, "NVCC_APPEND_FLAGS": f"--threads={jobs}"}
    if ccache:
        environment |= {"PYTORCH_NVCC": "ccache nvcc", "CXX": "ccache g++", "CC": "ccache gcc"}
        environment["CCACHE_DIR"] = str(folder / "ccache")
    return seconds_of([sys.executable, "setup.py", "build_ext", "--inplace"], environment, folder)


def edited(bench: Any, source: Path) -> float:
    """The second edit: the first one shows NVRTC to be right."""
    for factor in (3, 4, 5):
        source.write_text(KILN.replace("2.0f", f"{factor}.0f"))
        seconds = bench.build(source)[0]
    return seconds


def classic_rows(scratch: Path, bench: Any) -> list[tuple[str, str, str]]:
    """(what, seconds, folklore); a piece that cannot be tried here says why."""
    folder = scratch / "classic"
    folder.mkdir()
    (folder / "binding.cpp").write_text(BINDING)
    for number, name in ((1, "one.cu"), (2, "two.cu")):
        (folder / name).write_text(KERNEL.format(n=number))
    cores = str(os.cpu_count() or 1)
    has_torch = subprocess.run([sys.executable, "-c", "import torch, setuptools"], capture_output=True).returncode == 0
    rows: list[tuple[str, str, str]] = []

    def row(what: str, folklore: str, way: Any, missing: str = "") -> None:
        try:
            rows.append((what, missing or f"{way():.2f}", folklore))
        except RuntimeError as error:
            rows.append((what, "failed: " + str(error).strip().splitlines()[-1][:80], folklore))
        print(" | ".join(rows[-1]), flush=True)

    no_torch = "" if has_torch else "no torch here"
    row("all architectures, no ninja", "180", lambda: build(folder, False, ALL, "", False), no_torch)
    row("+ ninja", "35", lambda: build(folder, True, ALL, "", False), no_torch)
    row("+ pinned architecture", "12", lambda: build(folder, True, "9.0", "", False), no_torch)
    row("+ jobs", "8", lambda: build(folder, True, "9.0", cores, False), no_torch)
    no_ccache = no_torch or ("" if shutil.which("ccache") else "no ccache here")

    def with_ccache() -> float:
        build(folder, True, "9.0", cores, True)
        return build(folder, True, "9.0", cores, True)

    row("+ ccache, second build", "< 1", with_ccache, no_ccache)
    source = bench.source("classic.cu", KILN)
    row("kiln, all architectures, from nothing", "", lambda: bench.cold(source, arch=ALL))
    row("kiln, pinned architecture, from nothing", "", lambda: bench.cold(source))
    row("kiln, an edit of the kernel", "", lambda: edited(bench, source))
    row("kiln, after rm -rf build", "", lambda: bench.hit(source))
    row("kiln, nothing changed", "", lambda: bench.build(source)[0])
    return rows
