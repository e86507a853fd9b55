# SPDX-License-Identifier: Apache-2.0
"""Do kiln sanitize and kiln.test report what the engine's checkers find, from every way in?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import kiln
from kiln.errors import Mismatch

pytestmark = [
    pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="the checkers watch the engine"),
]

# Right by value on the engine: the threads that return early take nothing with them.
SOURCE = """#include <kiln/op.h>
__global__ void doubling_kernel(const float* x, float* y, int64_t n) {
  __shared__ float tile[128];
  const int64_t i = kiln::global_thread();
  if (i >= n) return;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = 2 * tile[threadIdx.x];
}
kiln::Tensor doubling(const kiln::Tensor& x) {
  kiln::Tensor y = kiln::empty(x.sizes(), x.dtype(), x.device());
  if (x.numel() == 0) return y;
  KILN_CHECK(x.is_contiguous(), "x must be contiguous");
  doubling_kernel<<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(
      x.data<const float>(), y.data<float>(), x.numel());
  return y;
}
KILN_OP(doubling, "x").fake("like(x)");
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sanitize") / "doubling.cu"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def op(source: Path) -> Any:
    return kiln.load(source).doubling


def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def test_kiln_test_reports_a_barrier_that_threads_skip(op: Any) -> None:
    with pytest.raises(Mismatch) as failed:
        kiln.test(op, torch.randn(100), reference=twice)
    assert failed.value.report.outcome("as given") == "passed"
    assert failed.value.report.outcome("sanitize") == "FAILED"
    assert "divergent-barrier" in str(failed.value)
    assert "doubling.cu:7" in str(failed.value)


def test_whole_blocks_are_clean(op: Any) -> None:
    row = kiln.test(op, torch.randn(256), reference=twice, sanitize=False).outcome("sanitize")
    assert row == "skipped"


def findings(command: Path, cwd: Path, *words: str, code: int = 1) -> list[dict[str, Any]]:
    done = subprocess.run(
        [command, "sanitize", *words, "--json"], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["findings"]


def test_a_script_and_its_children(command: Path, source: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, torch, kiln\n"
        f"op = kiln.load({str(source)!r}).doubling\n"
        "op(torch.ones(100))\n"
        "child = os.fork()\n"
        "for _ in range(1 if child else 30):\n"
        "    op(torch.ones(100))\n"
        "sys.stdout.flush()\n"
        "os._exit(0) if child == 0 else os.waitpid(child, 0)\n"
    )
    env = {"KILN_PYTHON": sys.executable, **os.environ}
    done = subprocess.run(
        [command, "sanitize", "--json", str(script)], capture_output=True, text=True, env=env
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)["findings"]
    assert [one["rule"] for one in found] == ["divergent-barrier"]
    # Thirty times by the child, which ends without a word, and twice by the parent.
    assert found[0]["count"] == 32


def test_an_op_its_page_and_sarif(command: Path, source: Path, tmp_path: Path) -> None:
    page, sarif = tmp_path / "page.html", tmp_path / "found.sarif"
    found = findings(
        command, tmp_path, str(source), "doubling", "randn:f32:100", "--html", str(page), "--sarif",
        str(sarif),
    )  # fmt: skip
    assert [one["rule"] for one in found] == ["divergent-barrier"]
    assert found[0]["places"][0]["stack"][0]["text"] == "__syncthreads();"
    assert "divergent-barrier" in page.read_text()
    result = json.loads(sarif.read_text())["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert findings(command, tmp_path, str(source), "doubling", "randn:f32:128", code=0) == []


def test_filters_and_exit_codes(command: Path, source: Path, tmp_path: Path) -> None:
    words = (str(source), "doubling", "randn:f32:100")
    assert findings(command, tmp_path, *words, "--only", "memory", code=0) == []
    assert len(findings(command, tmp_path, *words, "--kernel", "doubling_k")) == 1
    assert len(findings(command, tmp_path, *words, "--fail-on", "memory", code=0)) == 1
    accepted = tmp_path / "accepted.txt"
    accepted.write_text("sync doubling doubling.cu:7 an example\n")
    kept = findings(command, tmp_path, *words, "--suppress", str(accepted), code=0)
    assert kept[0]["suppressed"] == "an example"


def test_a_program_that_fails_by_itself_fails(command: Path, tmp_path: Path) -> None:
    """Writes of one value are a note, which does not explain an exit code. 3 would say that the
    machine lacks something: the command ends with 1."""
    (tmp_path / "three.cu").write_text(
        "__global__ void same(int* y, int v) { y[0] = v; }\n"
        "int main() {\n"
        "  int* y;\n"
        "  cudaMalloc(&y, 4);\n"
        "  same<<<2, 64>>>(y, 7);\n"
        "  cudaDeviceSynchronize();\n"
        "  return 3;\n"
        "}\n"
    )
    found = findings(command, tmp_path, "three.cu", code=1)
    assert [one["severity"] for one in found] == ["note"]


def test_files_are_checked_before_anything_runs(
    command: Path, source: Path, tmp_path: Path
) -> None:
    for option, file in (("--html", "gone/page.html"), ("--suppress", "gone.txt")):
        words = [str(command), "sanitize", str(source), "doubling", "randn:f32:128", option, file]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "result:" not in done.stdout, done.stderr
    assert not (tmp_path / "gone").exists()


def test_a_copy_of_a_source_is_named_by_its_own_path(command: Path) -> None:
    """The second build takes all from the cache. The folders are shorter than that of kiln."""
    program = (
        "__global__ void one(int* y) { y[threadIdx.x + 1] = 1; }\n"
        "int main() {\n"
        "  int* y;\n"
        "  cudaMalloc(&y, 256);\n"
        f"  one<<<1, 64>>>(y);  // {time.time()}\n"
        "  return cudaDeviceSynchronize() != cudaSuccess;\n"
        "}\n"
    )
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="k", dir="/tmp") as folder:
            (Path(folder) / "copied.cu").write_text(program)
            found = findings(command, Path(folder), "copied.cu", code=1)
            places = [place["stack"][0]["file"] for place in found[0]["places"]]
            assert places == ["copied.cu"], folder
