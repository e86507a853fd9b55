# SPDX-License-Identifier: Apache-2.0
"""Do the fixtures give what they promise to a project's tests?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import kiln


def test_device_is_one_that_ops_run_on(kiln_device):
    assert kiln_device == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_failure_of_kiln_test_shows_the_test_and_the_message():
    """pytest leaves out frames that ask for it."""
    with pytest.raises(kiln.Mismatch) as caught:
        kiln.test(torch.sin, torch.ones(2), reference=torch.cos, opcheck=False)
    frame = caught.traceback[-1].frame
    assert frame.code.name == "test" and frame.f_locals["__tracebackhide__"]


def test_sources_are_loaded_once(command, sources, kiln_load):
    first = kiln_load(sources / "kinds.cu")
    assert kiln_load(sources / "kinds.cu") is first


def test_seed_is_the_tests_own(kiln_seed):
    first = torch.rand(1)
    torch.manual_seed(kiln_seed)
    assert torch.equal(torch.rand(1), first)


@pytest.mark.kiln_gpu
def test_gpu_tests_are_skipped_by_name():
    assert torch.cuda.is_available()


def test_the_options_come_with_the_plugin(tmp_path):
    """PYTHONPATH alone does not make them known to pytest."""
    (tmp_path / "test_it.py").write_text(
        "from kiln import testing\n\n\n"
        "def test_it():\n    assert testing.SANITIZE_CHECKS == 'memory,sync'\n"
    )
    words = ["-m", "pytest", "-q", "-p", "kiln.pytest_plugin", "--kiln-sanitize=memory,sync"]
    env = {**os.environ, "PYTHONPATH": str(Path(kiln.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
