# SPDX-License-Identifier: Apache-2.0
"""Does --watch build and run again on save, with every command that has a result to look at?"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")

OP = """#include <kiln/op.h>
__global__ void fill(float* out, int n) { for (int i = 0; i < n; ++i) out[i] = 1.25f; }
kiln::Tensor filled(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  fill<<<1, 1, 0, kiln::stream(a)>>>(out.data<float>(), static_cast<int>(out.numel()));
  return out;
}
KILN_OP(filled, "a").fake("like(a)");
"""
PROGRAM = '#include <cstdio>\nint main() { std::puts("1.25"); }\n'


def watched(command: Path, cwd: Path, file: Path, first: str, then: str, *words: str) -> None:
    """Starts it, saves the file with another number as soon as it waits, and wants to see that
    number; then Ctrl-C."""
    process = subprocess.Popen(
        [command, *words, "--watch"], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip
    lines: list[str] = []

    def until(word: str) -> None:
        for line in process.stdout:
            lines.append(line)
            if word in line:
                return
        pytest.fail(f"no '{word}' in {lines}")

    def end() -> None:
        os.killpg(process.pid, signal.SIGKILL)

    limit = threading.Timer(240, end)
    limit.start()
    try:
        until(first)
        until("watching")
        file.write_text(file.read_text().replace("1.25", "2.75"))
        until(f"{file.name} changed")
        until(then)
        until("watching")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=120) == 130
    finally:
        limit.cancel()
        process.kill()
        process.stdout.close()
        process.wait()


def test_call(command: Path, tmp_path: Path) -> None:
    source = tmp_path / "op.cu"
    source.write_text(OP)
    watched(
        command, tmp_path, source, "min 1.25", "min 2.75", "call", "op.cu", "filled", "zeros:f32:4"
    )


def test_run(command: Path, tmp_path: Path) -> None:
    source = tmp_path / "program.cu"
    source.write_text(PROGRAM)
    watched(command, tmp_path, source, "1.25", "2.75", "run", "program.cu")


def test_test(command: Path, tmp_path: Path) -> None:
    (tmp_path / "kiln.toml").write_text('name = "ops"\nsources = ["op.cu"]\n')
    (tmp_path / "op.cu").write_text(OP)
    (tmp_path / "main.cu").write_text(PROGRAM)
    watched(command, tmp_path, tmp_path / "main.cu", "1.25", "2.75", "test")


def test_bench(command: Path, tmp_path: Path) -> None:
    source = tmp_path / "op.cu"
    source.write_text(OP)
    watched(
        command, tmp_path, source, "correct:", "correct:", "bench", "op.cu", "filled", "zeros:f32:4"
    )
