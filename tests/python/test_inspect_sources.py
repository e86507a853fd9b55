# SPDX-License-Identifier: Apache-2.0
"""Does `kiln inspect` show a file only because a binary names it? A page is made to be sent to
others."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(2)

SECRET = "the password is hunter2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A project, a secret outside of it, and binaries whose line tables name what they should
    not."""
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    top = tmp_path_factory.mktemp("sources")
    project, secret = top / "project", top / "elsewhere" / "secret.h"
    project.mkdir()
    secret.parent.mkdir()
    secret.write_text(f"{SECRET}\n" * 20)
    (project / "kiln.toml").write_text('name = "p"\nsources = ["k.cu"]\n')
    (project / "k.cu").write_text(
        "__global__ void k(int* p) { p[threadIdx.x] = 41 + 1; }  // our own line\n"
    )
    (project / "link.h").symlink_to(secret)
    (project / ".env").write_text(f"{SECRET}\n" * 20)
    os.mkfifo(project / "pipe.h")
    (project / "zero.h").symlink_to("/dev/zero")
    (project / "huge.h").touch()
    os.truncate(project / "huge.h", 200 << 30)
    names = {
        "secret": secret, "shadow": "/etc/shadow", "link": project / "link.h",
        "env": project / ".env", "pipe": project / "pipe.h", "zero": "/dev/zero",
        "zero_link": project / "zero.h", "huge": project / "huge.h",
        "environ": "/proc/self/environ", "up": project / "../elsewhere/secret.h",
    }  # fmt: skip
    for name, path in names.items():
        text = f'__global__ void k(int* p) {{\n#line 3 "{path}"\n  p[threadIdx.x] = 42;\n}}\n'
        (top / f"{name}.cu").write_text(text)
        line = [
            "nvcc",
            "-cubin",
            "-lineinfo",
            "-arch=sm_80",
            f"{name}.cu",
            "-o",
            str(project / f"{name}.cubin"),
        ]
        subprocess.run(line, cwd=top, check=True)
    return project


def inspect(command: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [str(command), "inspect", *words]
    done = subprocess.run(
        line, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    "name",
    ["secret", "shadow", "link", "env", "pipe", "zero", "zero_link", "huge", "environ", "up"],
)
def test_a_page_has_nothing_that_the_binary_chose(command, folder, tmp_path, name):
    page = tmp_path / "page.html"
    done = inspect(command, folder, f"{name}.cubin", "--html", str(page))
    text = page.read_text()
    assert SECRET not in text
    assert page.stat().st_size < 1_000_000
    for told in (text, done.stderr):
        assert "left out" in told and "--sources DIR" in told
    shown = inspect(command, folder, f"{name}.cubin", "--source").stdout
    assert SECRET not in shown and "left out" in shown


def test_what_the_user_names_is_in_the_page(command, folder, tmp_path):
    page = tmp_path / "page.html"
    done = inspect(
        command, folder, "secret.cubin", "--html", str(page), "--sources", "../elsewhere"
    )
    assert SECRET in page.read_text()
    assert "secret.h" not in done.stderr
    assert (
        SECRET
        in inspect(command, folder, "secret.cubin", "--source", "--sources", "../elsewhere").stdout
    )


def test_the_projects_own_sources_are_shown(command, folder, tmp_path):
    for target in (".", "k.cu"):
        page = tmp_path / "page.html"
        inspect(command, folder, target, "--html", str(page), "--arch", "8.0")
        assert "our own line" in page.read_text(), target
        assert (
            "our own line" in inspect(command, folder, target, "--source", "--arch", "8.0").stdout
        ), target


def test_names_do_not_steer_the_terminal(command, tmp_path):
    name = "a\x1b]0;owned\x07.ptx"
    (tmp_path / name).write_text(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"
    )
    for words in ([name], [name, "--json"], ["no\x1b[2Jsuch.so"]):
        line = [str(command), "inspect", *words]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\\x1b" in done.stdout + done.stderr or "\\u001b" in done.stdout
