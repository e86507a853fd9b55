# SPDX-License-Identifier: Apache-2.0
"""Is kiln's own wheel all that a learner needs? It is packed and installed into an environment
without kiln; the lessons that its command writes are run there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import kiln as package
import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGE = Path(package.cmake_prefix_path).parent
TOOLS = ROOT / "build" / "notebook-tools"
EXECUTE = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources={}).execute()
nbformat.write(notebook, sys.argv[1])
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> tuple[Path, str]:
    """The wheel, and what was said of it: `make wheel`."""
    folder = tmp_path_factory.mktemp("dist")
    (folder / f"kiln_cuda-0.0.1-py3-none-manylinux_2_17_{os.uname().machine}.whl").touch()
    done = subprocess.run(
        [sys.executable, ROOT / "tools/wheel", folder, "--stage", STAGE],
        capture_output=True, text=True, timeout=600, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel, done.stderr


def test_kiln_itself_is_a_wheel_that_pip_installs(packed):
    """`make wheel && pip install dist/kiln_cuda-*.whl`, as the README has it."""
    wheel, said = packed
    assert wheel.name.startswith("kiln_cuda-") and "-cp39-abi3-" in wheel.name
    assert "result: f32 4\n  min 3  max 3  mean 3" in said


@pytest.fixture(scope="module")
def environment(packed, tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A fresh environment with the wheel, and the variables of a shell in it. torch and Jupyter
    come from where the tests have them: nothing is downloaded."""
    if not (TOOLS / "nbclient").is_dir():
        pytest.skip(f"{TOOLS} has no nbclient; `tools/bootstrap test` installs it")
    folder = tmp_path_factory.mktemp("fresh") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q"]
    subprocess.run([*pip, "--no-index", "--no-deps", packed[0]], check=True)
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    beside = [str(Path(pytest.importorskip("torch").__file__).parents[1]), str(TOOLS)]
    (packages / "beside.pth").write_text("\n".join(beside) + "\n")
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("KILN_", "PYTHON", "JUPYTER"))
    }
    kept = [part for part in os.environ["PATH"].split(":") if str(STAGE) not in part]
    variables["PATH"] = ":".join([str(folder / "bin"), *kept])
    variables["JUPYTER_DATA_DIR"] = str(folder / "jupyter")
    return folder, variables


@pytest.mark.long
def test_lessons_written_by_the_wheel_run(environment, tmp_path):
    folder, variables = environment

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert run("python", "-c", "import kiln; print(kiln.__file__)").startswith(str(folder))
    said = run("kiln", "learn", "notebooks")
    assert "10 notebooks written to kiln-exercises" in said and "jupyter lab" in said
    written = sorted(path.name for path in (tmp_path / "kiln-exercises").glob("*.ipynb"))
    assert len(written) == 10 and written[1] == "02-first-call.ipynb"
    run("python", "-c", EXECUTE, "kiln-exercises/02-first-call.ipynb")
    notebook = json.loads((tmp_path / "kiln-exercises" / "02-first-call.ipynb").read_text())
    shown = json.dumps([cell.get("outputs") for cell in notebook["cells"]])
    assert "half: built in" in shown and "median of the others: True" in shown
    assert "No step had to run." in shown, "the page of the last cell"


def test_exercises_of_the_wheel_check_themselves(environment, tmp_path):
    _, variables = environment
    kiln = {"cwd": tmp_path, "env": variables, "capture_output": True, "text": True}
    assert subprocess.run(["kiln", "learn", "start"], **kiln).returncode == 0
    done = subprocess.run(["kiln", "learn", "check", "grid"], **kiln)
    assert done.returncode == 1 and "kiln learn hint grid" in done.stdout
    assert "first launch" in subprocess.run(["kiln", "docs", "learn"], **kiln).stdout


def test_what_was_built_to_be_tested_is_not_packed(tmp_path: Path) -> None:
    for folder in ("tools", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "build/release").mkdir(parents=True)
    (tmp_path / "build/release/CMakeCache.txt").write_text("KILN_SHIPS:BOOL=OFF\n")
    done = subprocess.run(
        [sys.executable, tmp_path / "tools/wheel", tmp_path / "out"], capture_output=True, text=True
    )
    assert done.returncode == 3 and not (tmp_path / "out").exists()
    assert "error: build/release is not for shipping" in done.stderr
    assert "fix: make wheel" in done.stderr
