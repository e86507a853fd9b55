# SPDX-License-Identifier: Apache-2.0
"""What are the ways to build the add kernel, each from nothing? Every way is a function that
returns its seconds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from sampling import seconds_of

SOURCES = Path(__file__).resolve().parent / "add"
ARCH = "9.0"
# The same code in the binary whoever builds it: SASS of one architecture and its PTX. And the same
# language.
GENCODE = ["-gencode", "arch=compute_90,code=[sm_90,compute_90]", "-O3", "-std=c++20"]


@contextmanager
def empty_folder(scratch: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Builds:
    def __init__(self, kiln: Path, include: Path, scratch: Path):
        self.kiln = kiln
        self.include = include
        self.scratch = scratch
        scratch.mkdir(parents=True, exist_ok=True)

    def environment(self, cache: Path) -> dict[str, str]:
        """No cache of another run, no architecture from outside."""
        clean = {
            k: v
            for k, v in os.environ.items()
            if k not in ("TORCH_CUDA_ARCH_LIST", "MAX_JOBS", "KILN_CACHE_DIR")
        }
        return clean | {"XDG_CACHE_HOME": str(cache)}

    def kiln_build(self, source: Path, cache: Path) -> tuple[str, str]:
        """The library and the namespace of its ops, built into a cache folder that may be warm."""
        done = subprocess.run(
            [self.kiln, "build", source, "--arch", ARCH, "--json"],
            env=self.environment(cache),
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(f"kiln build {source}: {done.stdout}{done.stderr}")
        told = json.loads(done.stdout)
        return told["library"], told["name"]

    def cold_kiln(self) -> float:
        with empty_folder(self.scratch) as folder:
            return seconds_of(
                [str(self.kiln), "build", str(SOURCES / "add_kiln.cu"), "--arch", ARCH],
                self.environment(folder),
            )

    def cold_nvcc(self) -> float:
        with empty_folder(self.scratch) as folder:
            return seconds_of(
                [
                    "nvcc",
                    "-shared",
                    "-Xcompiler",
                    "-fPIC",
                    *GENCODE,
                    str(SOURCES / "add_bare.cu"),
                    "-o",
                    str(folder / "add.so"),
                ]
            )

    def compile_only(self, source: Path) -> float:
        """nvcc alone, to an object: what the headers of a source cost."""
        with empty_folder(self.scratch) as folder:
            return seconds_of(
                ["nvcc", "-c", "-Xcompiler", "-fPIC", *GENCODE, f"-I{self.include}", f"-I{SOURCES}",
                str(source), "-o",
                 str(folder / "object.o")]
            )  # fmt: skip

    def in_python(self, way: str, site: Path | None = None) -> float:
        """One of other_builds.py's ways in a process of its own; its import is not counted."""
        with empty_folder(self.scratch) as folder:
            environment = os.environ | {
                "TORCH_CUDA_ARCH_LIST": ARCH,
                "TVM_FFI_CUDA_ARCH_LIST": ARCH,
            }
            if site:
                environment["PYTHONPATH"] = str(site)
            done = subprocess.run(
                [sys.executable, str(SOURCES.parent / "other_builds.py"), way, str(folder)],
                env=environment,
                capture_output=True,
                text=True,
            )
            if done.returncode != 0:
                raise RuntimeError((done.stdout + done.stderr)[-2000:])
            return float(done.stdout.splitlines()[-1])


def twenty_ops(folder: Path) -> tuple[Path, Path]:
    """The same twenty kernels in one file: as ops of kiln, and as C functions."""
    kernels = "".join(
        f"__global__ void kernel_{n}(const float* a, const float* b, float* out, long long count) "
        f"{{\n"
        f"  long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;\n"
        f"  if (i < count) out[i] = a[i] * {n}.0f + b[i];\n}}\n"
        for n in range(20)
    )
    ops = "".join(
        f"kiln::Tensor op_{n}(const kiln::Tensor& a, const kiln::Tensor& b) {{\n"
        f"  kiln::Tensor out = kiln::empty_like(a);\n"
        f"  kernel_{n}<<<kiln::blocks_for(out.numel(), 256), 256, 0, "
        f"kiln::stream(a)>>>(a.data<const float>(),\n"
        f"      b.data<const float>(), out.data<float>(), out.numel());\n  return out;\n}}\n"
        f'KILN_OP(op_{n}, "a, b").fake("like(a)");\n'
        for n in range(20)
    )
    functions = "".join(
        f'extern "C" int op_{n}(const float* a, const float* b, float* out, long long count, '
        f"cudaStream_t stream) {{\n"
        f"  kernel_{n}<<<(count + 255) / 256, 256, 0, stream>>>(a, b, out, count);\n  return "
        f"cudaGetLastError();\n}}\n"
        for n in range(20)
    )
    with_ops, bare = folder / "twenty_ops.cu", folder / "twenty_bare.cu"
    with_ops.write_text("#include <kiln/op.h>\n" + kernels + ops)
    bare.write_text(kernels + functions)
    return with_ops, bare
