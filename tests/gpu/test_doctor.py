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
    command = [Path(kiln.__file__).parent / "bin/kiln", "doctor", "--quick", "--json", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, {row["name"]: row for row in json.loads(done.stdout)["checks"]}


def test_the_gpu_and_its_driver_are_seen(tmp_path):
    major, minor = torch.cuda.get_device_capability()
    _, found = ask(cwd=tmp_path)
    assert found["driver"]["verdict"] == "ok" and f"{major}.{minor}" in found["driver"]["reason"], found["driver"]
    assert found["arch-pinned"]["verdict"] == "ok", found["arch-pinned"]


def test_code_for_another_gpu_is_told(tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    major, minor = torch.cuda.get_device_capability()
    (tmp_path / "k.cu").write_text("__global__ void k(int* p) { *p = 1; }\n")
    for arch, code in ((f"sm_{major}{minor}", 0), ("sm_120" if major != 12 else "sm_90", 1)):
        subprocess.run(["nvcc", "-cubin", f"-arch={arch}", "k.cu", "-o", f"{arch}.cubin"], cwd=tmp_path, check=True)
        seen, found = ask(f"{arch}.cubin", cwd=tmp_path)
        assert seen == code and (found["kernel-image"]["verdict"] == "fault") == bool(code), found["kernel-image"]
