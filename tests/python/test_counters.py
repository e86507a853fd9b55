# SPDX-License-Identifier: Apache-2.0
"""Does `kiln counters` count what kernels do: the same for every schedule and number of threads,
from the command and from Python?"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")

# Golden: what a person gets who counts by hand. 4,096 floats are 128 warps; a tile of 32 x 32 is
# stored row by row and read column by column.
SCALED = {
    "global_ld_requests": 128,
    "global_ld_sectors": 512,
    "global_st_requests": 128,
    "global_st_sectors": 512,
    "global_ld_bytes": 16384,
    "dram__bytes_read.sum": 16384,
    "dram__bytes_write.sum": 0,
    "flops_fp32": 4096,
    "branches_divergent": 0,
    "launch__grid_size": 32,
}
TURNED = {
    "global_ld_requests": 128,
    "global_ld_sectors": 512,
    "shared_st_wavefronts": 128,
    "shared_st_conflicts": 0,
    "shared_ld_requests": 128,
    "shared_ld_wavefronts": 4096,
    "shared_ld_conflicts": 3968,
    "barriers": 32,
}


def run(command: Path, *words: str, threads: int = 1, code: int = 0, cwd: Path) -> str:
    done = subprocess.run(
        [str(command), "counters", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "KILN_ENGINE_THREADS": str(threads)},
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sources: Path) -> Path:
    to = tmp_path_factory.mktemp("counters")
    shutil.copy(sources / "counted.cu", to)
    return to


def metrics(report: dict[str, Any], expected: dict[str, float]) -> dict[str, float]:
    return {name: report["launches"][0]["metrics"][name] for name in expected}


def test_golden_counts_for_any_schedule_and_threads(command: Path, folder: Path) -> None:
    for op, words, expected in (
        ("scaled", ["randn:f32:4096"], SCALED),
        ("turned", ["randn:f32:64x64"], TURNED),
    ):
        reports = []
        for threads in (1, 3):
            for schedule in ("0", "1", "7"):
                text = run(
                    command, "counted.cu", op, *words, "--json", "--schedule", schedule,
                    threads=threads, cwd=folder,
                )  # fmt: skip
                reports.append(json.loads(text))
        assert metrics(reports[0], expected) == expected
        assert all(report == reports[0] for report in reports)


def test_lines_strides_and_atomics(command: Path, folder: Path) -> None:
    report = json.loads(
        run(command, "counted.cu", "scaled", "randn:f32:8192", "2", "--json", cwd=folder)
    )
    lines = {line["at"]: line["metrics"] for line in report["launches"][0]["lines"]}
    assert lines["counted.cu:7"]["ld_sectors_per_request"] == 8
    assert lines["counted.cu:7"]["st_sectors_per_request"] == 4
    assert any("moves" in one["text"] for one in report["launches"][0]["advice"])
    report = json.loads(
        run(command, "counted.cu", "counted", "zeros:i32:1024", "--json", cwd=folder)
    )
    last = report["launches"][-1]["metrics"]
    assert last["global_red_requests"] == 32, "its result is not used"
    assert last["atomic_contention"] == 32, "all lanes count one bin"
    assert report["launches"][-1]["resources"]["registers"] > 0


def test_atomics_that_have_no_reduction(command: Path, folder: Path) -> None:
    report = json.loads(
        run(command, "counted.cu", "unlocked", "zeros:i32:32", "--json", cwd=folder)
    )
    counts = report["launches"][-1]["metrics"]
    assert counts["global_atom_requests"] == 2, "an exchange and a comparison"
    assert counts["global_red_requests"] == 1, "a maximum whose result is not used"


def test_requirements_and_baselines(command: Path, folder: Path) -> None:
    words = ["counted.cu", "scaled", "randn:f32:8192"]
    good = "ld_sectors_per_request[counted.cu:7] <= 4"
    run(command, *words, "--require", good, "--baseline", "scaled", cwd=folder)
    assert (folder / "kiln-counters" / "scaled.json").is_file()
    run(command, *words, "--baseline", "scaled", cwd=folder)
    missed = run(command, *words, "2", "--require", good, code=1, cwd=folder)
    assert "does not hold: 8" in missed
    worse = run(command, *words, "2", "--baseline", "scaled", code=0, cwd=folder)
    assert worse  # half of the requests with twice the sectors: nothing is above the saved numbers
    text = (folder / "kiln-counters" / "scaled.json").read_text()
    (folder / "old.json").write_text(
        text.replace('"global_ld_sectors": 1024', '"global_ld_sectors": 9')
    )
    assert "global_ld_sectors 9 ->" in run(
        command, *words, "--baseline", "old.json", code=1, cwd=folder
    )
    # One line alone: the launch as a whole is as before, and lines that only moved are not changes.
    saved = json.loads(text)
    line = next(one for one in saved["launches"][0]["lines"] if one["at"] == "counted.cu:7")
    line["metrics"]["global_ld_sectors"] -= 1
    (folder / "line.json").write_text(json.dumps(saved))
    named = run(command, *words, "--baseline", "line.json", code=1, cwd=folder)
    assert "counted.cu:7: global_ld_sectors 1023 -> 1024" in named, named
    for one in saved["launches"][0]["lines"]:
        one["at"] = one["at"].replace(":", ":1")
    line["metrics"]["global_ld_sectors"] += 1
    (folder / "line.json").write_text(json.dumps(saved))
    run(command, *words, "--baseline", "line.json", cwd=folder)
    (folder / "old.json").write_text(text.replace('"version": "', '"version": "0.'))
    assert "it was saved by kiln 0." in run(
        command, *words, "--baseline", "old.json", code=2, cwd=folder
    )


def test_bad_input(command: Path, folder: Path) -> None:
    words = ["counted.cu", "scaled", "randn:f32:64"]
    assert "unknown GPU 'H300'" in run(command, *words, "--gpu", "H300", code=2, cwd=folder)
    assert "unknown metric 'sector'" in run(
        command, *words, "--require", "sector == 1", code=2, cwd=folder
    )
    assert "no kernel has 'other'" in run(command, *words, "--kernel", "other", code=2, cwd=folder)
    (folder / "empty.json").write_text("{}\n")
    assert "is not a header" in run(command, "empty.json", code=2, cwd=folder)


def test_a_library_without_lines(command: Path, folder: Path) -> None:
    build = [str(command), "build", "counted.cu", "--release", "-o", "bare"]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    (library,) = (folder / "bare").glob("**/*.so")
    words = [str(command), "counters", str(library), "scaled", "randn:f32:4096"]
    done = subprocess.run([*words, "--json"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "counted.so has no line information" in done.stderr
    report = json.loads(done.stdout)
    assert all(line["at"].startswith("PTX line ") for line in report["launches"][0]["lines"])
    assert metrics(report, SCALED)["global_ld_sectors"] == 512


def without_ptx(library: bytes) -> bytes:
    """Entries of its fat binaries that are PTX get a kind that does not exist."""
    out = bytearray(library)
    at = library.find(FATBIN)
    while at >= 0:
        _, header, size = struct.unpack_from("<HHQ", out, at + 4)
        entry, end = at + header, at + header + size
        while entry + 16 <= end:
            kind, _, header, size = struct.unpack_from("<HHIQ", out, entry)
            if kind == 1:
                struct.pack_into("<H", out, entry, 0x4000)
            entry += header + size
        at = library.find(FATBIN, at + 4)
    return bytes(out)


FATBIN = struct.pack("<I", 0xBA55ED50)


def test_a_library_without_ptx(command: Path, folder: Path) -> None:
    build = [str(command), "build", "counted.cu", "-o", "whole.so"]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    (folder / "cubin.so").write_bytes(without_ptx((folder / "whole.so").read_bytes()))
    error = run(command, "cubin.so", "scaled", "randn:f32:64", code=1, cwd=folder)
    assert "why: its fat binary contains no PTX" in error
    assert "fix:" in error


FAULTS = """
#include <cstdio>
__global__ void good(int* a) { a[threadIdx.x] = 1; }
__global__ void bad(int* a) { a[threadIdx.x + (1 << 28)] = 1; }
int main() {
  int* a;
  cudaMalloc(&a, 128);
  good<<<1, 32>>>(a);
  bad<<<1, 32>>>(a);
  return cudaDeviceSynchronize() ? 5 : 0;
}
"""


def test_a_kernel_that_faults(command: Path, tmp_path: Path) -> None:
    (tmp_path / "faults.cu").write_text(FAULTS)
    words = [str(command), "counters", "faults.cu", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "why: it ended with exit code 5" in done.stderr
    assert "kiln sanitize finds faults" in done.stderr
    good, bad = json.loads(done.stdout)["launches"]
    assert good["metrics"]["global_st_sectors"] == 4 and good["code"] == 0
    assert bad["code"] != 0


def test_bound_beside_a_time(command: Path, folder: Path) -> None:
    words = [str(command), "bench", "counted.cu", "scaled", "randn:f32:4096", "--quick"]
    words += ["--device", "engine", "--bound", "--gpu", "A100"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "lower bound on A100: 8 ns, limited by DRAM (16.4 KB at 2039 GB/s)" in done.stdout


def test_predicted_order_of_variants(command: Path, tmp_path: Path) -> None:
    (tmp_path / "stride.cu").write_text(
        "#include <kiln/op.h>\n"
        "__global__ void copy(const float* a, float* b, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) b[i] = a[(i * STRIDE) % n];\n"
        "}\n"
        "kiln::Tensor copied(const kiln::Tensor& a) {\n"
        "  kiln::Tensor out = kiln::empty_like(a);\n"
        "  const int n = static_cast<int>(a.numel());\n"
        "  const float* from = a.data<const float>();\n"
        "  copy<<<n / 256, 256, 0, kiln::stream(a)>>>(from, out.data<float>(), n);\n"
        "  return out;\n"
        "}\n"
        'KILN_OP(copied, "a").fake("like(a)");\n'
    )
    words = [str(command), "tune", "stride.cu", "copied", "randn:f32:2^20", "--json"]
    words += ["--vary", "STRIDE=33,5,17", "--predict"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    variants = json.loads(done.stdout)["variants"]
    assert [one["defines"] for one in variants] == [["STRIDE=5"], ["STRIDE=17"], ["STRIDE=33"]]
    assert all(one["us"] >= one["bound_us"] > 0 for one in variants)


def test_saved_runs_pages_and_pictures(command: Path, folder: Path) -> None:
    words = ["counted.cu", "turned", "randn:f32:64x64"]
    run(command, *words, "-o", "run.jsonl", "--html", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert len(page) < 500_000 and "http" not in page.replace("http://www.w3.org/2000/svg", "")
    picture = run(command, "run.jsonl", "--line", "counted.cu:17", cwd=folder)
    assert "bank  0  32 words" in picture
    saved = json.loads(run(command, "run.jsonl", "--json", cwd=folder))
    assert metrics(saved, TURNED) == TURNED


def test_a_program(command: Path, tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text(
        "__global__ void fill(float* a, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) a[i] = i;\n"
        "}\n"
        "int main(int count, char**) {\n"
        "  float* a;\n"
        "  cudaMalloc(&a, 4096);\n"
        "  for (int k = 0; k < count; ++k) fill<<<8, 128>>>(a, 1024);\n"
        "  return cudaDeviceSynchronize();\n"
        "}\n"
    )
    report = json.loads(run(command, "main.cu", "--json", "--", "again", cwd=tmp_path))
    assert [one["metrics"]["global_st_sectors"] for one in report["launches"]] == [128, 128]
    lines = {line["at"]: line["metrics"] for line in report["lines"]}
    assert lines["main.cu:3"]["global_st_requests"] == 64, "of both launches"


def test_from_python(command: Path, folder: Path) -> None:
    torch = pytest.importorskip("torch")
    import kiln

    ops = kiln.load("counted_lines", [folder / "counted.cu"])
    seen = kiln.counters(ops.scaled, torch.randn(4096))
    assert seen.lines["counted.cu:7"].sectors_per_request == 4
    assert seen.launches[0].kernel.startswith("scale(")
    assert seen.launches[0]["dram__bytes_read.sum"] == 16384
    assert seen.lines["counted.cu:7"].bank_conflicts == 0
    with pytest.raises(AttributeError):
        _ = seen.launches[0].sectors
    with pytest.raises(KeyError, match="lines that did"):
        seen.lines["counted.cu:999"]
    again = kiln.counters(ops.turned, torch.randn(64, 64))
    assert again.launches[0].shared_ld_conflicts == 3968
    assert "counted.cu:17" in str(again)
    assert len(kiln.counters(ops.scaled, torch.randn(64)).launches) == 1, "counting has ended"
