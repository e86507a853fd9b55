# SPDX-License-Identifier: Apache-2.0
"""Do wheels that another machine made run on this GPU? Those in the folder KILN_TEST_WHEELS: a
fresh project's, and kiln-cuda.

No network: pip installs each into a folder. CONTRIBUTING.md says how they are made.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

FOLDER = Path(os.environ.get("KILN_TEST_WHEELS", "/nonexistent"))
USE = """
import importlib.util, torch, my_ext
assert importlib.util.find_spec("kiln") is None
x = torch.randn(1 << 20, device="cuda")
y = torch.randn_like(x)
torch.testing.assert_close(my_ext.my_ext(x, y, 2.5), x + 2.5 * y)
compiled = torch.compile(lambda a: my_ext.my_ext(a, a) * 2, fullgraph=True, backend="eager")
torch.testing.assert_close(compiled(x), x * 4)
print(torch.__version__, torch.cuda.get_device_name())
"""


def installed(name: str, to: Path) -> Path:
    wheels = sorted(FOLDER.glob(f"{name}-*_{platform.machine()}.whl"))
    if not wheels:
        pytest.skip(f"no {name} wheel for {platform.machine()} in KILN_TEST_WHEELS")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        to,
        wheels[-1],
    ]
    subprocess.run(pip, check=True)
    print(wheels[-1].name)
    return to


def clean(**more: str) -> dict[str, str]:
    return {
        key: value for key, value in os.environ.items() if not key.startswith(("KILN_", "PYTHON"))
    } | more


def test_a_projects_wheel_on_cuda_tensors(tmp_path):
    site = installed("my_ext", tmp_path / "site")
    env = clean(PYTHONPATH=str(site))
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout, sys.version)


@pytest.mark.parametrize("device", ["cuda", "engine"])
def test_kiln_cuda_builds_and_calls_an_op(tmp_path, device):
    """Its command, headers, archive and engine, as a user has them: nothing of this tree is
    used."""
    kiln = installed("kiln_cuda", tmp_path / "site") / "kiln/bin/kiln"
    env = clean(HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"), KILN_DEVICE=device)
    done = subprocess.run(
        [kiln, "new", "--minimal", "scale"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    words = [kiln, "call", "scale.cu", "scale", "ones:f32:4", "ones:f32:4", "2.0"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "[3 3 3 3]" in done.stdout, done.stdout + done.stderr


def test_the_doctor_of_the_wheel_has_no_false_alarm_here(tmp_path):
    kiln = installed("kiln_cuda", tmp_path / "site") / "kiln/bin/kiln"
    words = [kiln, "doctor", "--no-compile", "--json"]
    env = clean(HOME=str(tmp_path), KILN_PYTHON=sys.executable)
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
    found = {row["name"]: row for row in json.loads(done.stdout)["checks"]}
    assert len(found) >= 30 and found["driver"]["verdict"] == "ok", found["driver"]
    assert found["cuda-home"]["verdict"] != "fault", found["cuda-home"]
