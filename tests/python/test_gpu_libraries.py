# SPDX-License-Identifier: Apache-2.0
"""Is a call to cuBLAS, cuFFT and the like on the engine an error that names it, even if the source
ignores its status? With a stand-in for the library, and with NVIDIA's own where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")

# As most code does: no status is looked at.
SOURCE = """#include <cstdio>
#ifdef KILN_STAND_IN
extern "C" int cublasCreate_v2(void**);
extern "C" int cublasSgemm_v2(void*, int, int, int, int, int, const float*, const float*, int,
                              const float*, int, const float*, float*, int);
typedef void* cublasHandle_t;
#define cublasCreate cublasCreate_v2
#define cublasSgemm cublasSgemm_v2
#define CUBLAS_OP_N 0
#else
#include <cublas_v2.h>
#endif
static void multiply(const float* a, const float* b, float* c) {
  cublasHandle_t handle;
  cublasCreate(&handle);
  const float one = 1, zero = 0;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a, 4, b, 4, &zero, c, 4);
}
"""
PROGRAM = (
    SOURCE
    + """int main() {
  float* a;
  cudaMalloc(&a, 192);
  multiply(a, a + 16, a + 32);
  std::puts("the end");
}
"""
)
OP = (
    SOURCE
    + """#include "kiln/op.h"
void matmul(const kiln::Tensor& a, const kiln::Tensor& b, kiln::Tensor& c) {
  multiply(a.data<const float>(), b.data<const float>(), c.data<float>());
}
KILN_OP(matmul, "matmul(Tensor a, Tensor b, Tensor(c!) c) -> ()");
"""
)
# What NVIDIA's library does on a machine without a GPU, but for the null that it checks.
STAND_IN = """extern "C" int cublasCreate_v2(void**) { return 1; }
extern "C" int cublasSgemm_v2(void* handle, int, int, int, int, int, const float*, const float*,
                              int, const float*, int, const float*, float*, int) {
  return handle ? *static_cast<int*>(handle) : 1;
}
"""


@pytest.fixture(params=["stand-in", "NVIDIA's"])
def flags(request, tmp_path) -> list[str]:
    if request.param == "stand-in":
        (tmp_path / "stand_in.cpp").write_text(STAND_IN)
        library = tmp_path / "libcublas.so"
        subprocess.run(
            ["g++", "-shared", "-fPIC", "-o", library, tmp_path / "stand_in.cpp"], check=True
        )
        folder, more = tmp_path, ["-DKILN_STAND_IN"]
    else:
        home = Path(os.environ.get("CUDA_HOME") or Path(shutil.which("nvcc")).parents[1])
        folders = [home / "lib64", home / "lib"]
        folders = [folder for folder in folders if (folder / "libcublas.so").exists()]
        if not folders or not (home / "include" / "cublas_v2.h").exists():
            pytest.skip("no cuBLAS beside nvcc")
        folder, more = folders[0], []
    return [*more, f"--ldflag=-L{folder}", "--ldflag=-lcublas", f"--ldflag=-Wl,-rpath,{folder}"]


def run(command, folder: Path, *words: str, device: str = "engine"):
    return subprocess.run(
        [str(command), *words], cwd=folder, env={**os.environ, "KILN_DEVICE": device},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_a_program_prints_the_name(command, tmp_path, flags):
    (tmp_path / "main.cu").write_text(PROGRAM)
    done = run(command, tmp_path, "run", "main.cu", *flags)
    assert "error: cublasCreate_v2 is not available" in done.stderr, done.stdout
    assert "cuBLAS runs on GPUs only" in done.stderr
    assert done.stdout == "the end\n"  # a program checks its calls itself, as on a GPU


def test_an_op_fails(command, tmp_path, flags):
    (tmp_path / "product.cu").write_text(OP)
    words = ["randn:f32:4x4", "randn:f32:4x4", "zeros:f32:4x4"]
    done = run(command, tmp_path, "call", "product.cu", "matmul", *words, *flags)
    assert done.returncode == 1, done.stdout
    assert "error: cublasCreate_v2 is not available" in done.stderr
    assert "fix: run it on a GPU" in done.stderr
