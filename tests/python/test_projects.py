# SPDX-License-Identifier: Apache-2.0
"""Do projects written for torch.utils.cpp_extension run with kiln, changed in one import alone?
Each command that such a project's README gives is a test: projects/my_add, my_fast_add and
fa_s512."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import kiln
import pytest

pytestmark = pytest.mark.one_in(2)

PROJECTS = Path(__file__).parent / "projects"
AUDITWHEEL = Path(__file__).parents[2] / "build/cuda-tools"
OLD, NEW = "from torch.utils.cpp_extension import", "from kiln import"


@dataclass
class Project:
    folder: Path
    environment: dict[str, str]

    def run(self, *words: str, **environment: str) -> str:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def venv(tmp_path_factory, command) -> dict[str, str]:
    """An environment to install into, with the packages of this Python and kiln's."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = folder / f"lib/python{sysconfig.get_python_version()}/site-packages"
    stage = Path(kiln.__file__).parents[1]
    (site / "all.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{stage}\n")
    path = [folder / "bin", stage / "kiln/bin", os.environ["PATH"]]
    own = {
        "PATH": os.pathsep.join(map(str, path)),
        "VIRTUAL_ENV": str(folder),
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # No GPU: CPU tensors pass TORCH_CHECK(x.is_cuda()).
        "KILN_DEVICE": "engine",
        "MAX_JOBS": "2",
    }
    return {k: v for k, v in os.environ.items() if not k.startswith("KILN_")} | own


def copy_of(name: str, to: Path, environment: dict[str, str]) -> Project:
    """With its one import changed, which must be there once."""
    folder = to / name
    shutil.copytree(PROJECTS / name, folder, ignore=shutil.ignore_patterns("__pycache__", "build"))
    changed = 0
    for file in folder.rglob("*.py"):
        text = file.read_text()
        changed += text.count(OLD)
        file.write_text(text.replace(OLD, NEW))
    assert changed == 1
    return Project(folder, environment)


@pytest.fixture(scope="module")
def my_add(tmp_path_factory, venv) -> Project:
    project = copy_of("my_add", tmp_path_factory.mktemp("projects"), venv)
    told = project.run(
        "python", "-m", "pip", "install", "-e", ".", "--no-build-isolation", "--no-deps"
    )
    assert "Successfully installed my_add" in told.replace("my-add", "my_add")
    return project


def test_my_add_is_tested_from_its_folder_and_from_elsewhere(my_add, tmp_path):
    assert "10 passed" in my_add.run("python", "-m", "pytest", "-q", "tests")
    elsewhere = Project(tmp_path, my_add.environment)
    assert "my_add" in elsewhere.run("python", "-c", "import my_add; print(my_add._C.__file__)")


def test_my_add_is_benchmarked(my_add):
    assert my_add.run("python", "benchmark.py").count("my_add") == 2


def test_my_add_has_a_program(my_add):
    assert "1000 elements, 0 wrong" in my_add.run("kiln", "run", "csrc/main.cu", "--", "1000")


def test_my_add_as_a_wheel(my_add):
    my_add.run("python", "setup.py", "-q", "bdist_wheel")
    (wheel,) = (my_add.folder / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "my_add/__init__.py" in names and [n for n in names if n.startswith("my_add/_C.")]


def test_my_add_through_auditwheel(my_add):
    tools = os.pathsep.join([str(AUDITWHEEL), my_add.environment.get("PYTHONPATH", "")])
    if not (AUDITWHEEL / "auditwheel").is_dir() and not importlib.util.find_spec("auditwheel"):
        pytest.skip("no auditwheel here: tools/bootstrap test installs it")
    my_add.run(
        "python", "-m", "pip", "wheel", ".", "--no-build-isolation", "--no-deps", "-w", "all"
    )
    (wheel,) = (my_add.folder / "all").glob("my_add*.whl")
    path = f"{AUDITWHEEL / 'bin'}{os.pathsep}{my_add.environment['PATH']}"
    line = ["python", "-m", "auditwheel", "repair", "-w", "repaired", str(wheel)]
    my_add.run(*line, PYTHONPATH=tools, PATH=path)
    (repaired,) = (my_add.folder / "repaired").glob("*manylinux*.whl")
    assert not [n for n in zipfile.ZipFile(repaired).namelist() if "libtorch" in n or "libc10" in n]


@pytest.fixture(scope="module")
def my_fast_add(tmp_path_factory, venv) -> Project:
    project = copy_of("my_fast_add", tmp_path_factory.mktemp("projects"), venv)
    project.run("python", "setup.py", "build_ext", "--inplace")
    return project


def test_my_fast_add_in_place(my_fast_add):
    told = my_fast_add.run("python", "-m", "pytest", "-q", "tests", PYTHONPATH=".")
    assert "6 passed" in told


def test_my_fast_add_is_for_the_architectures_of_its_flags(my_fast_add):
    (library,) = (my_fast_add.folder / "my_fast_add").glob("_C*.so")
    told = my_fast_add.run("kiln", "inspect", str(library), "--json")
    assert "sm_80" in told and "sm_90" not in told and "sm_86" not in told


def test_my_fast_add_is_installed(my_fast_add, tmp_path):
    line = ["python", "-m", "pip", "install", ".", "--no-build-isolation", "--no-deps"]
    my_fast_add.run(*line)
    call = "import torch, my_fast_add as m; x = torch.full((5,), 0.1); print(m.add(x, x).tolist())"
    elsewhere = Project(tmp_path, my_fast_add.environment)
    assert elsewhere.run("python", "-c", call).count("0.2") == 5


def test_the_tunable_attention_beside_its_own_lock(tmp_path, venv):
    project = copy_of("fa_s512", tmp_path, venv)
    told = project.run("python", "fa_s512_tunable.py", "--seq", "100", "--verbose")
    assert "block_m=16 block_n=32" in told
    folder = project.folder / "build/fa_s512_16_32_32"
    assert list(folder.glob("*.so")) and not (folder / "lock").exists()


def test_the_tunable_attention_through_its_script(tmp_path, venv):
    told = copy_of("fa_s512", tmp_path, venv).run("./tune.sh")
    assert "block_m=8 block_n=32" in told and "block_m=16 block_n=64" in told
