# SPDX-License-Identifier: Apache-2.0
"""Does `kiln setup` install what is missing, is it safe to repeat and to interrupt, and does it
undo itself?"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(2)

SHELLS = [shell for shell in ("bash", "zsh") if shutil.which(shell)]


def wheel(
    folder: Path, name: str, version: str, scripts: dict[str, str], files: dict[str, str]
) -> None:
    """A wheel as pip wants it, with programs that are shell scripts."""
    stem = f"{name}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as out:
        contents = {
            f"{stem}.data/scripts/{script}": text for script, text in scripts.items()
        } | files
        contents[f"{stem}.dist-info/METADATA"] = (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        contents[f"{stem}.dist-info/WHEEL"] = (
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        for path, text in contents.items():
            member = zipfile.ZipInfo(path)
            member.external_attr = 0o100755 << 16
            out.writestr(member, text)
        record = "".join(f"{path},,\n" for path in contents) + f"{stem}.dist-info/RECORD,,\n"
        out.writestr(f"{stem}.dist-info/RECORD", record)


@pytest.fixture
def wheels(tmp_path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel(folder, "ninja", "1.99", {"ninja": "#!/bin/sh\necho 1.99\n"}, {})
    wheel(folder, "nvidia_cuda_nvdisasm", "13.0.1", {}, {"nvidia/cu13/bin/nvdisasm": "#!/bin/sh\n"})
    return folder


@pytest.fixture
def setup(command, tmp_path):
    """setup(words) on a machine whose ninja is too old -> exit code, stdout, stderr."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this Python has no pip")
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    (tmp_path / "bin").mkdir()
    (tmp_path / "home").mkdir()
    ninja = tmp_path / "bin" / "ninja"
    ninja.write_text("#!/bin/sh\necho 1.5\n")
    ninja.chmod(0o755)
    base = {
        "PATH": f"{tmp_path / 'bin'}:{Path(shutil.which('nvcc')).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "KILN_PYTHON": sys.executable,
        "PIP_NO_CACHE_DIR": "1",
    }

    def run(*words: object, **variables: str) -> tuple[int, str, str]:
        line = [str(command), "setup", *map(str, words)]
        done = subprocess.run(
            line, env=base | variables, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        return done.returncode, done.stdout, done.stderr

    return run


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_from_nothing_and_back(setup, wheels, tmp_path):
    home = tmp_path / "home"
    (home / ".bashrc").write_text("alias l=ls")
    conda = tmp_path / "conda"
    conda.mkdir()
    words = ["--find-links", wheels, "--arch", "9.0", "--jobs", "3", "--rc", "--conda"]
    env = {"CONDA_PREFIX": str(conda)}

    code, out, err = setup(*words, "--dry-run", **env)
    assert code == 0 and "would: install ninja with pip" in out, err
    assert not (home / ".local").exists() and list(conda.iterdir()) == []

    code, out, err = setup(*words, **env)
    assert code == 0 and "will: install ninja" in out, err
    prefix = home / ".local" / "share" / "kiln"
    for shell in SHELLS:
        script = (
            f". {prefix}/env.sh; . {prefix}/env.sh; ninja --version; echo "
            f"$TORCH_CUDA_ARCH_LIST $MAX_JOBS $CUDA_HOME"
        )
        said = subprocess.run(
            [shell, "-c", script], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
        ).stdout
        assert said.splitlines()[0] == "1.99" and "9.0 3 /" in said, said
    kept = subprocess.run(
        ["sh", "-c", f". {prefix}/env.sh; echo $MAX_JOBS"],
        env={"PATH": "/usr/bin:/bin", "MAX_JOBS": "7"},
        capture_output=True,
    ).stdout
    assert kept == b"7\n"
    assert "env.sh" in (home / ".bashrc").read_text()
    assert (conda / "etc/conda/activate.d/kiln.sh").is_file() and (
        conda / "etc/conda/deactivate.d/kiln.sh"
    ).is_file()

    before = everything(home)
    code, out, err = setup(*words, **env)
    assert code == 0 and "nothing to do" in out, out + err
    assert everything(home) == before

    code, out, _ = setup("--remove", "--dry-run", **env)
    assert code == 0 and "would remove" in out and prefix.exists()
    code, out, err = setup("--remove", **env)
    assert code == 0 and not prefix.exists(), out + err
    assert (home / ".bashrc").read_text() == "alias l=ls\n"
    assert not list(conda.rglob("kiln.sh"))
    code, out, _ = setup("--remove", **env)
    assert code == 0 and "nothing to remove" in out


def test_an_interrupted_one_is_continued_and_undone(setup, wheels, tmp_path):
    prefix = tmp_path / "home" / ".local" / "share" / "kiln"
    empty = tmp_path / "empty"
    empty.mkdir()
    code, _, err = setup("--find-links", empty)
    assert code == 3 and "cannot install ninja" in err and "fix:" in err
    (prefix / "ninja.partial" / "bin").mkdir(parents=True)  # what a killed pip leaves
    code, _, err = setup("--find-links", wheels)
    assert (
        code == 0
        and (prefix / "ninja/bin/ninja").is_file()
        and not (prefix / "ninja.partial").exists()
    ), err
    (prefix / "ninja.partial").mkdir()
    assert setup("--remove")[0] == 0
    assert not prefix.exists()


def test_a_killed_one_leaves_nothing_that_passes_for_whole(command, setup, wheels, tmp_path):
    """The real thing: kiln setup is interrupted while pip works."""
    python = tmp_path / "bin" / "slow-python"
    ready = tmp_path / "ready"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in *"-m pip install"*) mkdir -p "$HOME/.local/share/kiln/ninja.partial/bin"; '
        f"echo > {ready}; exec sleep 600;; esac\n"
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    env = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "KILN_PYTHON": str(python),
    }
    line = [str(command), "setup", "--find-links", str(wheels)]
    running = subprocess.Popen(
        line, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 120
    while not ready.exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ready.exists(), running.communicate()[0]
    running.send_signal(signal.SIGINT)
    out = running.communicate(timeout=120)[0]
    assert running.returncode == 130, out
    prefix = tmp_path / "home/.local/share/kiln"
    assert not (prefix / "ninja").exists() and not (prefix / "env.sh").exists()
    code, out, err = setup("--find-links", wheels)
    assert (
        code == 0
        and (prefix / "ninja/bin/ninja").is_file()
        and not (prefix / "ninja.partial").exists()
    ), out + err
    assert setup("--remove")[0] == 0 and not prefix.exists()


def test_torch_into_the_active_environment_and_out_again(setup, wheels, tmp_path):
    wheel(
        wheels, "torch", "2.99.0", {}, {"torch/version.py": "__version__ = '2.99.0'\ncuda = None\n"}
    )
    wheel(
        wheels, "torch", "2.98.0", {}, {"torch/version.py": "__version__ = '2.98.0'\ncuda = None\n"}
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    packages = next((tmp_path / "env/lib").glob("python3*/site-packages"))
    (packages / "pip").symlink_to(Path(importlib.util.find_spec("pip").origin).parent)
    env = {"KILN_PYTHON": str(tmp_path / "env/bin/python")}
    words = ["--find-links", wheels, "--torch", "2.99.0"]

    code, out, err = setup(*words, "--dry-run", **env)
    assert code == 0 and f"would: install torch (2.99.0) with pip into {tmp_path / 'env'}" in out, (
        out + err
    )
    assert not (packages / "torch").exists()
    code, out, err = setup(*words, **env)
    assert code == 0 and (packages / "torch/version.py").is_file(), out + err
    code, out, err = setup(*words, **env)
    assert code == 0 and "nothing to do" in out and "found: torch 2.99.0" in out, out + err
    code, _, err = setup("--find-links", wheels, "--torch", "2.98.0", **env)
    assert code == 2 and "has torch 2.99.0 already" in err, err
    code, out, err = setup("--remove", **env)
    assert (
        code == 0 and "uninstall torch" in out and not (packages / "torch/version.py").exists()
    ), out + err


def test_a_home_on_a_disk_that_is_read_only(command, setup, wheels, tmp_path):
    home = tmp_path / "home"
    make = f"mount --bind {home} {home} && mount -o remount,bind,ro {home}"
    unshare = ["unshare", "-r", "-m", "/bin/sh", "-c"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*unshare, make], capture_output=True).returncode
    ):
        pytest.skip("no mount namespaces here")
    env = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "HOME": str(home),
        "KILN_PYTHON": sys.executable,
    }
    line = f'{make} && exec "$@"'
    words = [*unshare, line, "sh", str(command), "setup", "--find-links", str(wheels)]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert (
        done.returncode == 3
        and "Read-only file system" in done.stderr
        and "--prefix" in done.stderr
    ), done.stderr
    assert list(home.iterdir()) == []


def test_no_network(setup):
    code, _, err = setup(
        PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0", PIP_TIMEOUT="1"
    )
    assert code == 3 and "--find-links" in err, err


def test_a_home_that_cannot_be_written(setup, wheels, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = setup(
        "--find-links", wheels, HOME=str(tmp_path / "file"), XDG_CACHE_HOME=str(tmp_path / "c")
    )
    assert code == 3 and "--prefix" in err, err
    code, _, err = setup(
        "--find-links", wheels, "--prefix", tmp_path / "p", HOME=str(tmp_path / "file")
    )
    assert code == 0 and (tmp_path / "p" / "env.sh").is_file(), err


def test_usage(setup, wheels):
    code, _, err = setup("--torch", "quick", "--find-links", wheels)
    assert code == 2 and "unknown kind of torch" in err
    assert setup("--conda", "--find-links", wheels)[0] == 2
    assert setup("--arch", "fast", "--find-links", wheels)[0] == 2


def test_the_doctor_mends_with_the_same_means(command, setup, wheels, tmp_path):
    env = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "KILN_PYTHON": sys.executable,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
    }
    done = subprocess.run(
        [str(command), "doctor", "--no-compile", "--fix"],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (
        "will: install ninja" in done.stdout
        and (tmp_path / "home/.local/share/kiln/ninja/bin/ninja").is_file()
    ), done.stdout
    assert setup("--remove")[0] == 0
    assert not (tmp_path / "home/.local/share/kiln").exists()
