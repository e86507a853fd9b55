# SPDX-License-Identifier: Apache-2.0
"""How does a command of kiln run below a cell? As a child whose output and progress line appear as
they come; an interrupt of the cell ends it."""

from __future__ import annotations

import codecs
import contextlib
import functools
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from ..command import checked_command
from ..errors import KilnError, split_error

_PATIENCE_S = 5  # for a child that was interrupted

Listener = Callable[[str], None]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


def run(words: Sequence[str], out: Listener, err: Listener, progress: Listener) -> Done:
    """`kiln WORDS`. The listeners get text as it comes; that of `progress` gets the line to show
    now, empty for none. All in this thread: a notebook's output belongs to the thread that runs
    the cell."""
    read, write = os.pipe()
    environment = {
        **_without_color(),
        "KILN_PYTHON": sys.executable,
        "KILN_PROGRESS_FD": str(write),
    }
    try:
        process = subprocess.Popen(
            [str(checked_command()), *words], env=environment, pass_fds=[write],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        os.close(read)
        raise KilnError("cannot run the kiln command", str(error)) from None
    finally:
        os.close(write)
    assert process.stdout is not None and process.stderr is not None
    kept: dict[str, list[str]] = {"out": [], "err": []}

    def keep(kind: str, listener: Listener) -> Listener:
        return lambda text: (kept[kind].append(text), listener(text))[1]

    with process, open(read, "rb", buffering=0) as line:
        try:
            _listen(
                {
                    process.stdout.fileno(): keep("out", out),
                    process.stderr.fileno(): keep("err", err),
                    line.fileno(): lambda text: progress(_last_line(text)),
                }
            )
            process.wait()
        except BaseException:
            _end(process)
            raise
        finally:
            progress("")
    return Done(process.returncode, "".join(kept["out"]), "".join(kept["err"]))


def _listen(listeners: dict[int, Listener]) -> None:
    with selectors.DefaultSelector() as selector:
        for fd, listener in listeners.items():
            # A character may be cut in two by the end of a chunk.
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            selector.register(fd, selectors.EVENT_READ, (decoder, listener))
        while selector.get_map():
            for key, _ in selector.select():
                decoder, listener = key.data
                chunk = os.read(key.fd, 1 << 16)
                text = decoder.decode(chunk, final=not chunk)
                if text:
                    listener(text)
                if not chunk:
                    selector.unregister(key.fd)


def _last_line(text: str) -> str:
    """The command erases its line (\\r, ESC [K) before it draws the next."""
    return text.split("\r")[-1].replace("\x1b[K", "").strip()


def _end(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()


def unknown_command(word: str) -> KilnError:
    """In the command's own words, which name the nearest one."""
    done = subprocess.run(
        [str(checked_command()), word], capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, env=_without_color(),
    )  # fmt: skip
    what, why, fix = split_error(done.stderr.strip())
    return KilnError(what, why, f"%{fix}" if fix.startswith("kiln ") else fix)


@functools.lru_cache(maxsize=64)
def help_of(command: str) -> str:
    """The text of `kiln COMMAND --help`: it says what the command takes. Empty: no such command."""
    done = subprocess.run(
        [str(checked_command()), command, "--help"], capture_output=True, text=True, check=False,
        env=_without_color(),
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else ""


def _without_color() -> dict[str, str]:
    """A kernel of Jupyter asks all of its children for colours."""
    return {**os.environ, "NO_COLOR": "1"}
