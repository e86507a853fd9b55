# SPDX-License-Identifier: Apache-2.0
"""Do the commands know Triton kernels? KILN_TRITON=1 without an import, counters and inspect at the
lines of the Python file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kiln
from kiln.command import checked_command

pytest.importorskip("triton", reason="triton is not installed (it comes with torch)")

STAGE = Path(kiln.__file__).parents[1]
SCRIPT = """import torch, triton, triton.language as tl


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, 2 * x, mask=at < n)


x = torch.arange(1000, dtype=torch.float32)
out = torch.empty_like(x)
double[(4,)](x, out, 1000, BLOCK=256)
assert torch.equal(out, 2 * x)
print("done")
"""


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "double.py"
    file.write_text(SCRIPT)
    return file


def run(words, folder, **variables):
    settings = {
        "TRITON_CACHE_DIR": str(Path(__file__).resolve().parents[2] / "build" / "triton-cache"),
        "TRITON_DEFAULT_FP_FUSION": "1",  # Triton 3.9 warns where it is not set
    }
    environment = {**os.environ, "KILN_PYTHON": sys.executable, **settings, **variables}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_script_that_does_not_import_kiln(script):
    paths = f"{STAGE / 'kiln' / '_site'}:{STAGE}"
    done = run([sys.executable, script.name], script.parent, KILN_TRITON="1", PYTHONPATH=paths)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_another_sitecustomize_still_runs(script):
    (script.parent / "sitecustomize.py").write_text("print('custom')\n")
    paths = f"{STAGE / 'kiln' / '_site'}:{STAGE}:{script.parent}"
    done = run([sys.executable, script.name], script.parent, KILN_TRITON="1", PYTHONPATH=paths)
    assert (done.stdout, done.stderr) == ("custom\ndone\n", "")


def test_importing_kiln_is_enough(script):
    script.write_text("import kiln\n" + SCRIPT)
    done = run([sys.executable, script.name], script.parent, KILN_TRITON="1",
               PYTHONPATH=str(STAGE))  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.long
def test_counters(script):
    done = run([checked_command(), "counters", "--json", script.name], script.parent,
               KILN_TRITON="1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    launch = json.loads(done.stdout)["launches"][0]
    assert (launch["kernel"], launch["grid"][0]) == ("double", 4)
    lines = {line["at"] for line in launch["lines"]}
    assert {"double.py:7", "double.py:8"} <= lines


@pytest.mark.parametrize("target", ["80", pytest.param("90", marks=pytest.mark.long)])
def test_inspect(script, target):
    done = run([checked_command(), "inspect", f"{script.name}:double", "--kernels", "--json",
                "--arch", target], script.parent)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"sm_{target}" in done.stdout
    assert '"double"' in done.stdout


@pytest.mark.long
def test_inspect_of_a_kernel_that_is_not_launched(script):
    done = run([checked_command(), "inspect", f"{script.name}:triple"], script.parent)
    assert done.returncode == 1
    assert "launched no Triton kernel of that name; it launched: double" in done.stderr
    done = run([checked_command(), "inspect", "missing.py:triple"], script.parent)
    assert done.returncode == 2
    assert "there is no file" in done.stderr
