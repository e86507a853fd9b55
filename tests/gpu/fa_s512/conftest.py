# SPDX-License-Identifier: Apache-2.0
"""Which build of fa_s512 do these tests run? One whose waits end, then, if nothing failed, the one
that users get."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
STAGE = Path(os.environ.get("KILN_STAGE_DIR") or ROOT / "build" / "release" / "stage").resolve()
if (STAGE / "kiln" / "__init__.py").is_file():
    sys.path.insert(0, str(STAGE))
PROJECT = ROOT / "kernels" / "fa_s512"


def why_skipped() -> str:
    if not torch.cuda.is_available():
        return "no GPU"
    major, minor = torch.cuda.get_device_capability()
    return (
        ""
        if (major, minor) == (9, 0)
        else f"fa_s512 needs a GPU of compute capability 9.0, here {major}.{minor}"
    )


def pytest_collection_modifyitems(items):
    reason = why_skipped()
    for item in items:
        if reason and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter):
    """What the error rule left: how near to its limit each case came."""
    worst = sorted(MARGINS, reverse=True)[:5]
    for used, case in worst:
        terminalreporter.write_line(f"fa_s512: {used:5.2f} of the allowed error at {case}")


MARGINS: list[tuple[float, str]] = []


@pytest.fixture(scope="session")
def margins():
    return MARGINS


@pytest.fixture(scope="session")
def debug_build(tmp_path_factory):
    import kiln

    return kiln.load(
        PROJECT,
        defines={"FA_DEBUG_TIMEOUT": 1},
        build_directory=str(tmp_path_factory.mktemp("fa_s512_debug")),
    )


@pytest.fixture(scope="session")
def release_build(request, tmp_path_factory):
    """A kernel that hangs in this build hangs the GPU, so it runs only after all of the above
    passed."""
    if request.session.testsfailed:
        pytest.skip("not run: the build with bounded waits has failures")
    import kiln

    return kiln.load(PROJECT, build_directory=str(tmp_path_factory.mktemp("fa_s512_release")))
