# SPDX-License-Identifier: Apache-2.0
"""Does --limit end what would never end, does Ctrl-C, and does somebody at a terminal see what
takes so long?"""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import STAGE

pytestmark = [pytest.mark.one_in(2), pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")]

ENDLESS = ["wait_for_", "zeros:f32:1"]
PROGRAM = """#include <cstdlib>
#include <unistd.h>
int main(int count, char** words) {
  if (count > 1) return std::atoi(words[1]);
  for (;;) pause();
}
"""


@pytest.fixture
def kiln(command, tmp_path):
    """Runs the command with a TMPDIR of its own, which must be empty afterwards."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()

    def run(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(command), *map(str, words)],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(scratch), "KILN_DEVICE": "engine"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == code, done.stderr
        assert list(scratch.iterdir()) == []
        return done

    return run


def on_terminal(arguments: list[str], cwd: Path, env: dict[str, str] | None = None) -> str:
    """What a person sees on stderr."""
    here, there = pty.openpty()
    process = subprocess.Popen(
        arguments, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=there,
        env={**os.environ, "TERM": "xterm", "KILN_DEVICE": "engine", **(env or {})},
    )  # fmt: skip
    os.close(there)
    seen = b""
    while True:
        try:
            part = os.read(here, 4096)
        except OSError:  # all of its holders have closed it
            break
        if not part:
            break
        seen += part
    process.communicate()
    os.close(here)
    return seen.decode(errors="replace")


def test_call(kiln, sources):
    kiln("call", sources / "endless.cu")  # builds it
    done = kiln("call", sources / "endless.cu", *ENDLESS, "--limit", 1, code=1)
    assert "error: wait_for_ was stopped" in done.stderr
    assert "it did not finish in 1 s (--limit)" in done.stderr
    assert "KILN_ENGINE_STEP_LIMIT" in done.stderr
    done = kiln("call", sources / "endless.cu", *ENDLESS, "--limit=0.5", "--json", code=1)
    assert "0.5 s" in json.loads(done.stdout)["error"]["why"]
    kiln("call", sources / "endless.cu", "wait_for_", "ones:f32:1", "--limit", 200)


WAITS_AT_LOAD = """#include "kiln/op.h"
#include <unistd.h>
static const int started = [] { for (;;) pause(); return 1; }();
void op(kiln::Tensor& a) {}
KILN_OP(op, "op(Tensor(a!) a) -> ()");
"""


def test_loading_is_limited_too(kiln, tmp_path):
    (tmp_path / "waits.cu").write_text(WAITS_AT_LOAD)
    kiln("build", "waits.cu")
    for words in [["op", "zeros:f32:1"], []]:
        done = kiln("call", "waits.cu", *words, "--limit", 1, code=1)
        assert "error: loading " in done.stderr and "libwaits" in done.stderr
        assert ".so was stopped" in done.stderr
        assert "it did not finish in 1 s (--limit)" in done.stderr
        assert "static variable that waits" in done.stderr


def test_the_processes_of_bench_cold(kiln, sources):
    words = [sources / "endless.cu", *ENDLESS, "--cold", "--cold-runs", 1, "--limit", 1]
    done = kiln("bench", *words, code=1)
    assert "error: wait_for_ cannot be started cold" in done.stderr
    assert "it did not finish in 1 s (--limit)" in done.stderr


def test_run(kiln, tmp_path):
    (tmp_path / "main.cu").write_text(PROGRAM)
    assert kiln("run", "main.cu", "--limit", 200, "--", 7, code=7).stderr == ""
    done = kiln("run", "main.cu", "--limit", 1, code=1)
    assert "error: main.cu was stopped" in done.stderr and "in 1 s (--limit)" in done.stderr


def test_test(kiln, tmp_path, sources):
    project = tmp_path / "slow"
    project.mkdir()
    (project / "kiln.toml").write_text('name = "slow"\nsources = ["endless.cu"]\n')
    shutil.copy(sources / "endless.cu", project)
    (project / "main.cu").write_text(PROGRAM)
    done = kiln("test", "slow", "--limit", 1, code=1)
    assert "failed   main.cu: it did not finish in 1 s (--limit)" in done.stderr


@pytest.mark.long
def test_progress_of_bench_on_a_terminal_alone(kiln, command, sources, tmp_path):
    words = ["bench", str(sources / "endless.cu"), *ENDLESS, "--limit", "3"]
    done = kiln(*words, code=1)
    assert "did not finish in 3 s" in done.stderr and "timing" not in done.stderr
    seen = on_terminal([str(command), *words], tmp_path)
    assert "timing wait_for_, 1 s" in seen and "did not finish in 3 s" in seen
    assert "timing" not in on_terminal([str(command), *words, "-q"], tmp_path)
    assert "timing" not in on_terminal([str(command), *words], tmp_path, {"TERM": "dumb"})


def test_progress_of_load(source, tmp_path):
    path = source("endless.cu")
    words = [sys.executable, "-c", f"import kiln; kiln.load({str(path)!r}); print('loaded')"]
    paths = os.pathsep.join([str(STAGE), os.environ.get("PYTHONPATH", "")])
    own = {"PYTHONPATH": paths, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    seen = on_terminal(words, tmp_path, own)
    assert "endless.cu" in seen and "\r\x1b[K" in seen, seen
    assert seen.endswith("\r\x1b[K"), seen
    own["XDG_CACHE_HOME"] = str(tmp_path / "another")
    quiet = subprocess.run(
        words, env={**os.environ, **own}, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert quiet.stderr == "" and quiet.stdout == "loaded\n"


@pytest.mark.parametrize("words", [["call"], ["bench"]])
def test_ctrl_c_ends_with_130_and_leaves_nothing(kiln, command, sources, tmp_path, words):
    kiln("call", sources / "endless.cu")
    scratch = tmp_path / "tmp"
    # A shell tells how it sees the end of the command, be it by a signal or by an exit.
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'trap "" INT; (trap - INT; exec "$@"); echo "code $?"', "sh",
         str(command), *words, str(sources / "endless.cu"), *ENDLESS],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(scratch), "KILN_DEVICE": "engine"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert out == "code 130\n", err
    assert list(scratch.iterdir()) == []
