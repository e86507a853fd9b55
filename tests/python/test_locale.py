# SPDX-License-Identifier: Apache-2.0
"""Does kiln work in a process whose locale writes 1,5 for 1.5, and in one where the capital of i is
not I?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(3)

LOCALES = {
    "de_DE.UTF-8": ("de_DE", "UTF-8"),
    "tr_TR.UTF-8": ("tr_TR", "UTF-8"),
    "de_DE": ("de_DE", "ISO-8859-1"),
}


@pytest.fixture(scope="session")
def locale_folder(tmp_path_factory) -> Path:
    """Compiled here: a machine may have none installed. `make test` brings the sources (Debian:
    locales)."""
    folder = tmp_path_factory.mktemp("locales")
    for name, (language, encoding) in LOCALES.items():
        words = ["localedef", "-i", language, "-f", encoding, str(folder / name)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (folder / name / "LC_NUMERIC").is_file(), f"{words}: {done.stdout}{done.stderr}"
    return folder


@pytest.fixture(params=["de_DE.UTF-8", "tr_TR.UTF-8"])
def abroad(request, locale_folder) -> dict[str, str]:
    """The environment of a user there."""
    return {"LOCPATH": str(locale_folder), "LC_ALL": request.param, "KILN_DEVICE": "engine"}


def in_that_locale(script: str) -> str:
    return (
        "import locale\n"
        "locale.setlocale(locale.LC_ALL, '')\n"
        "assert locale.localeconv()['decimal_point'] == ',', 'nothing is tested'\n" + script
    )


SCALE = """
import kiln, torch
m = kiln.load("scale.cu")
x = torch.arange(4, dtype=torch.float32)
assert torch.equal(m.scale(x), 0.75 * x + 0.125), m.scale(x)
assert torch.equal(m.scale(x, 2.5, [1.5]), 3.75 * x + 0.125)
assert "alpha=1.5" in m.scale.__doc__ or "1.5" in str(torch.ops.scale.scale.default._schema)
try:
    m.scale(x, 100.5)
except RuntimeError as error:
    assert "alpha is 100.5, the first weight 0.5" in str(error), error
else:
    raise SystemExit("no error")
print("all is well")
"""


def test_load_and_call(python, source, abroad):
    source("locale_op.cu", "scale.cu")
    assert python(in_that_locale(SCALE), env=abroad) == "all is well\n"


def test_load_and_call_in_a_thread_with_its_own_locale(python, source, abroad):
    source("locale_op.cu", "scale.cu")
    script = """
import ctypes, threading
libc = ctypes.CDLL(None)
libc.newlocale.restype = libc.uselocale.restype = ctypes.c_void_p
libc.newlocale.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p]
libc.uselocale.argtypes = [ctypes.c_void_p]
ALL = 0x1fbf  # LC_ALL_MASK of glibc
failed = []
def work():
    own = libc.newlocale(ALL, b"", None)
    assert own
    libc.uselocale(own)
    try:
        exec(SCALE)
    except BaseException as error:
        failed.append(error)
    libc.uselocale(libc.newlocale(ALL, b"C", None))
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert not failed, failed
"""
    assert "all is well" in python(f"SCALE = {SCALE!r}\n{script}", env=abroad)


def test_a_fresh_project_builds_loads_and_passes_its_own_check(command, python, tmp_path, abroad):
    env = {**os.environ, **abroad}
    subprocess.run(
        [command, "new", "fresh"], cwd=tmp_path, env=env, check=True, capture_output=True
    )
    script = "import kiln; m = kiln.load('fresh'); print(m.__name__)"
    assert python(in_that_locale(script), env=abroad) == "fresh\n"


@pytest.mark.parametrize("where", ["process", "thread"])
def test_a_program(command, sources, tmp_path, abroad, where):
    shutil.copyfile(sources / "locale_program.cu", tmp_path / "program.cu")
    done = subprocess.run(
        [command, "run", "program.cu", "--", where],
        cwd=tmp_path,
        env={**os.environ, **abroad},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "on the device: 1234.50 0.25 1.500000e+00\n" in done.stdout
    assert "on the host: 0,75\n" in done.stdout  # the program's own words stay the user's


def test_commands_print_the_same(command, sources, tmp_path, abroad):
    shutil.copyfile(sources / "locale_op.cu", tmp_path / "scale.cu")
    call = ["call", "scale.cu", "scale", "x=randn:f32:4", "alpha=0.5", "--print", "4"]

    def run(env: dict[str, str]) -> list[str]:
        done = subprocess.run(
            [command, *call], cwd=tmp_path, env={**os.environ, "KILN_DEVICE": "engine", **env},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return [re.sub(r": [0-9.]+ (us|ms|s)$", "", line) for line in done.stdout.splitlines()]

    run({})  # builds
    assert run(abroad) == run({"LC_ALL": "C"})


def test_names_that_are_not_ascii_in_a_locale_of_bytes(command, locale_folder, tmp_path, sources):
    """A path goes from Python to kiln and back whatever the locale's encoding is."""
    folder = tmp_path / "gr\u00fc\u00dfe"
    folder.mkdir()
    shutil.copyfile(sources / "locale_op.cu", folder / "scale.cu")
    env = {
        **os.environ,
        "LOCPATH": str(locale_folder),
        "LC_ALL": "de_DE",
        "PYTHONUTF8": "0",
        "KILN_DEVICE": "engine",
    }
    env["PYTHONPATH"] = str(Path(command).parents[2])
    script = (
        "import kiln, os\nfolder = os.fsdecode(b'gr\\xc3\\xbc\\xc3\\x9fe')\n"
        "kiln.load(os.path.join(folder, 'scale.cu'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
