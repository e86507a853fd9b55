# SPDX-License-Identifier: Apache-2.0
"""Does kiln sanitize end with a message, and never crash, whatever it is given? Kernels that fault
or never end, more findings than it keeps, code without line information, wrong words."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Optional

import pytest
import torch

pytestmark = [
    pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="the checkers watch the engine"),
]

# MORE of them than findings are kept, each in a line of its own.
MORE = 1100
SOURCE = (
    """#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
__global__ void traps(int* y) { y[0] = 1; __trap(); }
__global__ void asserts(int* y) { y[0] = 1; if (y[0] == 1) asm volatile("brkpt;"); }
__global__ void loops(int* y, int step) { for (int i = 0; i < 4; i += step) y[i] = i; }
__global__ void stuck(volatile int* y, int step) { for (int i = 9; i < 99; i += step) y[i] = i; }
__global__ void chases(int** at) { while (at) at = (int**)*at; }
__global__ void million(int* y) { y[1000 + blockIdx.x * blockDim.x + threadIdx.x] = 1; }
__global__ void many_lines(volatile int* y) {
"""
    + "".join(f"  y[{1000 + i}] = 1;\n" for i in range(MORE))
    + """}
int main(int count, char** words) {
  int* y;
  cudaMalloc(&y, 16);
  const char* name = count > 1 ? words[1] : "";
  if (!std::strcmp(name, "traps")) traps<<<1, 1>>>(y);
  if (!std::strcmp(name, "asserts")) asserts<<<1, 1>>>(y);
  if (!std::strcmp(name, "loops")) loops<<<1, 1>>>(y, 0);
  if (!std::strcmp(name, "stuck")) stuck<<<1, 1>>>(y, 0);
  if (!std::strcmp(name, "chases")) chases<<<1, 1>>>((int**)y + 100);
  if (!std::strcmp(name, "million")) million<<<1000, 1000>>>(y);
  if (!std::strcmp(name, "many_lines")) many_lines<<<1, 1>>>(y);
  if (!std::strcmp(name, "aborts")) {
    million<<<1, 32>>>(y);
    cudaDeviceSynchronize();
    std::abort();
  }
  if (!std::strcmp(name, "forks")) {
    loops<<<1, 1>>>(y, 1);
    cudaDeviceSynchronize();
    if (fork() == 0) {
      million<<<1, 32>>>(y);
      cudaDeviceSynchronize();
      return 0;
    }
    wait(nullptr);
  }
  if (!std::strcmp(name, "clean")) { loops<<<1, 1>>>(y, 1); }
  cudaDeviceSynchronize();
  return 0;
}
"""
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad") / "bad.cu"
    path.write_text(SOURCE)
    return path


def sanitize(
    command: Path, source: Path, *words: str, env: Optional[dict[str, str]] = None
) -> subprocess.CompletedProcess[str]:
    line = [command, "sanitize", source.name, *words]
    return subprocess.run(
        line,
        cwd=source.parent,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=120,
    )


@pytest.mark.parametrize("kernel", ["traps", "asserts"])
def test_a_kernel_that_stops_is_a_finding(command: Path, source: Path, kernel: str) -> None:
    done = sanitize(command, source, "--", kernel)
    assert done.returncode == 1, done.stderr
    assert "error[kernel-fault]" in done.stdout
    assert "--> bad.cu:" in done.stdout


def test_an_endless_loop_is_killed_with_a_message(command: Path, source: Path) -> None:
    done = sanitize(command, source, "--limit", "3", "--", "loops")
    assert done.returncode == 1
    assert "it did not finish in 3 s (--limit)" in done.stderr


def test_findings_of_a_launch_that_is_killed_are_kept(command: Path, source: Path) -> None:
    done = sanitize(command, source, "--limit", "3", "--", "stuck")
    assert done.returncode == 1
    assert "error[out-of-bounds]" in done.stdout and "--> bad.cu:9" in done.stdout
    assert "it did not finish in 3 s (--limit)" in done.stderr


def test_a_loop_over_what_a_bad_access_read_is_stopped(command: Path, source: Path) -> None:
    done = sanitize(command, source, "--", "chases")
    assert done.returncode == 1
    assert "error[out-of-bounds]" in done.stdout
    assert "Stopped after a bad access" in done.stdout
    assert "error[kernel-fault]" in done.stdout


def test_a_step_limit_names_the_line_of_an_endless_loop(command: Path, source: Path) -> None:
    done = sanitize(command, source, "--", "loops", env={"KILN_ENGINE_STEP_LIMIT": "100000"})
    assert done.returncode == 1
    assert "error[kernel-fault]" in done.stdout and "--> bad.cu:8" in done.stdout


def test_a_million_of_one_kind_are_one_finding(command: Path, source: Path) -> None:
    done = sanitize(command, source, "--json", "--only", "memory", "--", "million")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)["findings"]
    assert [(one["rule"], one["count"]) for one in found] == [("out-of-bounds", 1000000)]


def test_the_summary_counts_what_is_not_kept(command: Path, source: Path) -> None:
    done = sanitize(command, source, "--", "many_lines")
    assert done.returncode == 1, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert f"1000 errors and {MORE - 1000} more occurrences beyond the limit" in last


def test_findings_of_a_process_that_aborts_are_kept(command: Path, source: Path) -> None:
    done = sanitize(command, source, "--", "aborts")
    assert done.returncode == 1
    assert "error[out-of-bounds]" in done.stdout
    assert "signal 6" in done.stderr


def test_a_child_of_a_fork_has_launches_of_its_own(command: Path, source: Path) -> None:
    done = sanitize(command, source, "--json", "--kernel", "million", "--", "forks")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["launches"] == 2
    assert [(one["rule"], one["count"]) for one in found["findings"]] == [("out-of-bounds", 32)]
    assert sorted(name.split("(")[0] for name in found["kernels"]) == ["loops", "million"]


def test_an_unknown_check_stops_the_launches(command: Path, source: Path) -> None:
    """A program that looks at no error must not end as if its kernels had been checked."""
    env = {**os.environ, "KILN_SANITIZE": "memory,raec"}
    line = [command, "run", source.name, "--", "clean"]
    done = subprocess.run(line, cwd=source.parent, capture_output=True, text=True, env=env)
    assert done.returncode == 2
    assert "there is no check 'raec'" in done.stderr
    good = subprocess.run(
        line,
        cwd=source.parent,
        capture_output=True,
        text=True,
        env={**env, "KILN_SANITIZE": "sync"},
    )
    assert good.returncode == 0, good.stderr


def test_a_binary_without_line_information(command: Path, tmp_path: Path, source: Path) -> None:
    """The line of PTX and its instruction stand in for the line of the source."""
    home = command.parents[1]
    program = tmp_path / "bad"
    subprocess.run(
        [
            "nvcc", "-arch=compute_80", "-code=compute_80", "-cudart", "none", f"-I{home}/include",
            str(source), f"{home}/lib/libkiln_runtime.a", "-o", str(program),
        ],
        check=True,
    )  # fmt: skip
    env = {
        **os.environ,
        "KILN_ENGINE": str(home / "lib/libkiln_engine.so"),
        "KILN_DEVICE": "engine",
        "KILN_SANITIZE": "memory",
    }
    done = subprocess.run(
        [program, "million"], cwd=tmp_path, capture_output=True, text=True, env=env
    )
    assert "error[out-of-bounds]" in done.stderr
    assert "PTX line" in done.stderr and "compile with -lineinfo" in done.stderr
    built = [command, "sanitize", program, "--only", "memory", "--", "million"]
    done = subprocess.run(built, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "error[out-of-bounds]" in done.stdout


# Neither files nor lines, nor a name for a parameter or a variable of shared memory.
NAMELESS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_0)
{
  .reg .b32 %r<4>; .reg .b64 %d<6>;
  .shared .align 4 .b8 _0[256];
  ld.param.u64 %d1, [k_0];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d2, %r1, 4;
  mov.u64 %d3, _0;
  add.s64 %d4, %d3, %d2;
  st.shared.u32 [%d4], %r1;
  xor.b32 %r2, %r1, 33;
  mul.wide.u32 %d5, %r2, 4;
  add.s64 %d5, %d3, %d5;
  ld.shared.u32 %r3, [%d5];
  add.s64 %d2, %d1, %d2;
  st.global.u32 [%d2], %r3;
  ret;
}
"""


def test_ptx_without_names(command: Path, tmp_path: Path) -> None:
    """The line of PTX, its instruction and addresses stand in for what has no name."""
    (tmp_path / "k.ptx").write_text(NAMELESS)
    env = {**os.environ, "KILN_SANITIZE": "memory,race"}
    line = [command, "call", "k.ptx", "k", "--grid", "1", "--block", "64", "zeros:i32:32"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=env, timeout=120)
    said = done.stdout + done.stderr
    assert done.returncode >= 0, said
    assert "error[out-of-bounds]" in said and "error[shared-race]" in said
    assert "PTX line 19" in said and "PTX line 13" in said and "PTX line 17" in said
