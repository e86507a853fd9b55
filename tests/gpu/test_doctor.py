# SPDX-License-Identifier: Apache-2.0
"""Does `kiln doctor` see the GPU and the driver, and tell code that cannot run on this GPU?"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import kiln
import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def ask(*words: str, cwd: Path) -> tuple[int, dict[str, dict]]:
    command = [Path(kiln.__file__).parent / "bin/kiln", "doctor", "--no-compile", "--json", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, {row["name"]: row for row in json.loads(done.stdout)["checks"]}


def test_the_gpu_and_its_driver_are_seen(tmp_path):
    major, minor = torch.cuda.get_device_capability()
    _, found = ask(cwd=tmp_path)
    assert found["driver"]["verdict"] == "ok" and f"{major}.{minor}" in found["driver"]["reason"], (
        found["driver"]
    )
    assert found["arch-pinned"]["verdict"] == "ok", found["arch-pinned"]


def test_no_false_alarm(tmp_path):
    _, found = ask(cwd=tmp_path)
    # What kiln itself was built with on this machine a moment ago is fine.
    for name in (
        "driver",
        "arch-pinned",
        "arch-supported",
        "cuda-home",
        "host-compiler",
        "cache-folder",
    ):
        assert found[name]["verdict"] != "fault", found[name]


def test_code_without_sass_for_this_gpu_is_told(tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    if torch.cuda.get_device_capability() == (8, 0):
        pytest.skip("PTX of 8.0 is of this GPU")
    (tmp_path / "k.cu").write_text("__global__ void k(int* p) { *p = 1; }\n")
    only_ptx = ["-fatbin", "-gencode=arch=compute_80,code=compute_80"]
    subprocess.run(["nvcc", *only_ptx, "k.cu", "-o", "k.fatbin"], cwd=tmp_path, check=True)
    _, found = ask("k.fatbin", cwd=tmp_path)
    assert (
        found["kernel-image"]["verdict"] == "warning" and "PTX" in found["kernel-image"]["reason"]
    ), found["kernel-image"]


def test_a_library_of_kiln_runs_here(tmp_path):
    """What a release holds serves this GPU, natively or by its PTX, and its driver floor is
    kept."""
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    kiln_command = Path(kiln.__file__).parent / "bin/kiln"
    for words in (["new", "my_ext"], ["build", "--release", "my_ext"]):
        subprocess.run([kiln_command, *words], cwd=tmp_path, check=True, capture_output=True)
    code, found = ask("my_ext/build/release/lib/libmy_ext.so", cwd=tmp_path)
    assert code == 0, [row for row in found.values() if row["verdict"] == "fault"]


def test_code_for_another_gpu_is_told(tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    major, minor = torch.cuda.get_device_capability()
    (tmp_path / "k.cu").write_text("__global__ void k(int* p) { *p = 1; }\n")
    for arch, code in ((f"sm_{major}{minor}", 0), ("sm_120" if major != 12 else "sm_90", 1)):
        subprocess.run(
            ["nvcc", "-cubin", f"-arch={arch}", "k.cu", "-o", f"{arch}.cubin"],
            cwd=tmp_path,
            check=True,
        )
        seen, found = ask(f"{arch}.cubin", cwd=tmp_path)
        assert seen == code and (found["kernel-image"]["verdict"] == "fault") == bool(code), found[
            "kernel-image"
        ]
