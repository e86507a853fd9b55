# SPDX-License-Identifier: Apache-2.0
"""Where is the `kiln` command, is it of this package's version, and what did a build of it say?"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Optional

from . import _progress
from ._version import __version__
from .errors import BuildError, SetupError

PACKAGE = Path(__file__).parent


def find_command() -> Path:
    """KILN_BIN, then the command inside this package, then PATH."""
    named = os.environ.get("KILN_BIN")
    if named:
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise SetupError(
                f"cannot run {named}",
                "KILN_BIN names it, but it is not a program",
                "unset KILN_BIN or correct it",
            )
        return Path(named)
    own = PACKAGE / "bin" / "kiln"
    if os.access(own, os.X_OK):
        return own
    # The console script of the package must not find itself.
    found = shutil.which("kiln")
    if found:
        return Path(found)
    raise SetupError(
        "cannot find the kiln command",
        f"KILN_BIN is not set, {own} does not exist, and PATH has no kiln",
        "install the package kiln-cuda, or set KILN_BIN",
    )


def checked_command() -> Path:
    """The command, known to have the version of this package: flags and file formats belong
    together."""
    command = find_command()
    stamp = command.stat()
    seen = _version_of(str(command), stamp.st_mtime_ns, stamp.st_size)
    if seen != __version__:
        raise SetupError(
            "the kiln command and the Python package are of different versions",
            f"{command} is {seen}, the package in {PACKAGE} is {__version__}",
            "install both from one place; KILN_BIN chooses a command",
        )
    return command


@functools.lru_cache(maxsize=8)
def _version_of(command: str, _mtime_ns: int, _size: int) -> str:
    try:
        done = subprocess.run(
            [command, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"cannot run {command}", str(error)) from None
    match = re.search(r"\d+\.\d+\.\d+\S*", done.stdout)
    if done.returncode != 0 or match is None:
        told = (done.stderr or done.stdout).strip()
        raise SetupError(
            f"cannot run {command} --version", told or f"its exit code is {done.returncode}"
        )
    return match.group()


def build(arguments: Sequence[str], *, verbose: bool = False) -> dict[str, Any]:
    """Runs `kiln build ARGUMENTS --json` and returns what it printed. Raises BuildError.

    verbose: the compiler's words go to stderr as they come, and the command line with them.
    """
    line = [str(checked_command()), "build", *arguments, "--json"]
    if verbose:
        line.append("--verbose")
        print("+ " + " ".join(line), file=sys.stderr, flush=True)
    told: list[str] = []
    with _progress.terminal_for_child() as terminal:
        try:
            process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=None if verbose else subprocess.PIPE, text=True, errors="replace",
                env={**os.environ, "KILN_PYTHON": sys.executable, **terminal},
                pass_fds=[int(fd) for fd in terminal.values()],
            )  # fmt: skip
        except OSError as error:
            raise BuildError(f"cannot run {line[0]}", str(error), fault=3) from None
        with process:
            listener = threading.Thread(target=_listen, args=(process.stderr, told))
            listener.start()
            assert process.stdout is not None
            printed = process.stdout.read()
            listener.join()
    return answer_of(line, process.returncode, printed, "".join(told), "library")


def _listen(stderr: Optional[IO[str]], told: list[str]) -> None:
    """Keeps what the command says; that it continues with torch's own headers is passed on at once:
    it takes a minute."""
    for text in stderr or ():
        told.append(text)
        if "torch's own headers" in text and not text.startswith(" "):
            print(text.rstrip(), file=sys.stderr, flush=True)


def run_json(arguments: Sequence[str], key: str) -> dict[str, Any]:
    """Runs a command line with --json, its messages on stderr as they come; the answer, which must
    have `key`."""
    line = [*arguments, "--json"]
    try:
        done = subprocess.run(
            line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False
        )
    except OSError as error:
        raise BuildError(f"cannot run {line[0]}", str(error), fault=3) from None
    return answer_of(line, done.returncode, done.stdout, "", key)


def answer_of(line: Sequence[str], code: int, stdout: str, stderr: str, key: str) -> dict[str, Any]:
    try:
        answer = json.loads(stdout)
    except ValueError:
        answer = None
    if isinstance(answer, dict) and code == 0 and key in answer:
        return answer
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict):
        raise BuildError(
            error.get("what", "build"),
            error.get("why", ""),
            error.get("fix", ""),
            log=_log(stderr, error),
            fault=code,
        )
    why = f"{' '.join(line)}\nended with exit code {code} and printed no JSON"
    raise BuildError("kiln build failed", why, log=(stdout + stderr), fault=code or 4)


def _log(stderr: str, error: dict[str, Any]) -> str:
    """stderr without the error that the exception carries already."""
    log = error.get("log") or stderr
    head = log.find(f"error: {error.get('what', '')}\n")
    return log if head < 0 else log[:head]
