# SPDX-License-Identifier: Apache-2.0
"""How does `kiln inspect` read on a terminal: paged when long, within its columns, plain into a
pipe?"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
LONG, SHORT = (
    [str(CORPUS / "versioned.so"), "--all-symbols"],
    [str(CORPUS / "tiny_sm80.cubin"), "--overview"],
)


@pytest.fixture
def terminal(command, tmp_path):
    """terminal(words...) -> exit code, lines that the terminal got, and the pager's arrival there
    (or not)."""
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho "PAGED $1"\nexec cat\n')
    pager.chmod(0o755)

    def ask(*words: str, rows: int = 10, columns: int = 80, **env: str) -> tuple[int, list[str]]:
        host, guest = pty.openpty()
        fcntl.ioctl(guest, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        process = subprocess.Popen(
            [command, "inspect", *words],
            stdin=guest, stdout=guest, stderr=guest, close_fds=True,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm",
            "PAGER": f"{pager} now", **env},
        )  # fmt: skip
        os.close(guest)
        got = b""
        while True:
            if not select.select([host], [], [], 30)[0]:
                process.kill()
                process.wait()
                pytest.fail(f"nothing came for 30 s: a pager waits for a key? Until then: {got!r}")
            try:
                more = os.read(host, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            got += more
        os.close(host)
        return process.wait(timeout=60), got.decode().replace("\r\n", "\n").splitlines()

    return ask


def plain(line: str) -> str:
    return re.sub(r"\x1b\[\d*m", "", line)


def test_a_long_text_goes_through_the_pager(terminal):
    code, lines = terminal(*LONG)
    assert code == 0
    assert lines[0] == "PAGED now"
    assert len(lines) > 10


@pytest.mark.parametrize("words, env", [
    ([*LONG, "--no-pager"], {}),
    (LONG, {"PAGER": "no-program-of-this-name"}),
    (LONG, {"TERM": "dumb"}),
])  # fmt: skip
def test_not_where_it_is_not_wanted_or_not_there(terminal, words, env):
    code, lines = terminal(*words, **env)
    assert code == 0
    assert "symbols" in lines[0]
    assert len(lines) > 10


def test_a_short_text_needs_none(terminal):
    code, lines = terminal(*SHORT, rows=60)
    assert code == 0
    assert not any("PAGED" in line for line in lines)


def test_a_pager_that_is_left_early_is_no_fault(terminal, tmp_path):
    quitter = tmp_path / "quitter"
    quitter.write_text("#!/bin/sh\nread line; echo only: $line\n")
    quitter.chmod(0o755)
    code, lines = terminal("/proc/self/exe", "--all-symbols", PAGER=str(quitter))
    assert code == 0
    assert len(lines) == 1 and lines[0].startswith("only: ")


def test_a_pipe_gets_no_pager_and_no_colour(command):
    done = subprocess.run(
        [command, "inspect", *LONG],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PAGER": "echo PAGED"},
    )
    assert done.returncode == 0
    assert "PAGED" not in done.stdout and "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) > 10


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", ["tiny_sm90_lines.cubin", "tiny_zstd.fatbin", "versioned.so"])
def test_overview_and_kernels_fit(terminal, name, columns):
    code, lines = terminal(str(CORPUS / name), "--no-pager", columns=columns)
    assert code == 0
    # The first line has the path that was given.
    long = [plain(line) for line in lines[1:] if len(plain(line)) > columns]
    assert not long
    assert "\x1b[1m" in lines[0]
