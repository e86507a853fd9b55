# SPDX-License-Identifier: Apache-2.0
"""Which package do these tests test? The staged one: KILN_STAGE_DIR, else build/release/stage."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGE = Path(os.environ.get("KILN_STAGE_DIR") or ROOT / "build" / "release" / "stage").resolve()
SOURCES = Path(__file__).parent / "sources"

# These tests are about the engine, and mean the same on a machine with a GPU: tests/gpu and
# tests/kernels use that. KILN_TESTS_ON=gpu shows it here too.
if os.environ.get("KILN_TESTS_ON") != "gpu":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

if not (STAGE / "kiln" / "__init__.py").is_file():
    raise pytest.UsageError(
        f"no staged package in {STAGE}: run `make build`, or set KILN_STAGE_DIR"
    )
sys.path.insert(0, str(STAGE))
os.environ.pop("KILN_BIN", None)
# Their tests run in copies: test_projects.py.
collect_ignore = ["projects"]
pytest_plugins = ["kiln.pytest_plugin"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: run by `make test-python-long` only")
    config.addinivalue_line("markers", "one_in(n): of the file's tests one in n is not long")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked long, unless -m or a test's own name asks for it."""
    seen: Counter[Path] = Counter()
    for item in items:
        # By place in the file, not by cost or by what has failed: nobody chooses.
        rate = item.get_closest_marker("one_in")
        if rate and not item.get_closest_marker("long"):
            if seen[item.path] % rate.args[0]:
                item.add_marker(pytest.mark.long)
            seen[item.path] += 1
    if config.getoption("markexpr") or any("::" in argument for argument in config.args):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Builds of the tests meet no cache of the user's and leave none."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module", autouse=True)
def no_error_of_others():
    """As on a GPU, the next call that asks for errors gets that of a failed launch. It must not be
    one of another file's tests, which may run in this process."""
    if "libkiln_engine" in Path("/proc/self/maps").read_text():
        from kiln._launch.engine import need_engine

        ctypes.CFUNCTYPE(ctypes.c_int)(need_engine().runtime_function(b"cudaGetLastError"))()


@pytest.fixture(scope="session")
def command():
    """The staged command; what needs it is skipped by name where the stage has Python alone."""
    path = STAGE / "kiln" / "bin" / "kiln"
    if not path.is_file():
        pytest.skip(f"the stage has no command ({path})")
    return path


@pytest.fixture(scope="session")
def sources() -> Path:
    return SOURCES


@pytest.fixture(scope="session")
def kinds(command):
    """One library with an op for each kind of argument and result."""
    import kiln

    return kiln.load(SOURCES / "kinds.cu")


@pytest.fixture
def source(tmp_path):
    """Copies a source of these tests to a folder of the test's own: source("add.cu",
    TEXT_TO_REPLACE=...)."""

    def copy(name: str, to: str | None = None, **replacements: str) -> Path:
        path = tmp_path / (to or name)
        if replacements:
            text = (SOURCES / name).read_text()
            for old, new in replacements.items():
                assert old in text
                text = text.replace(old, new)
            path.write_text(text)
        else:
            shutil.copyfile(SOURCES / name, path)
        return path

    return copy


@pytest.fixture
def python(tmp_path):
    """Runs a script in a process of its own, which has the staged package; returns what it
    printed."""

    def run(script: str, *, env: dict[str, str] | None = None, code: int = 0) -> str:
        merged = {**os.environ, "PYTHONPATH": str(STAGE), **(env or {})}
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=merged,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
