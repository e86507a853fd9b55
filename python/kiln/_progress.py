# SPDX-License-Identifier: Apache-2.0
"""How does somebody at a terminal see that kiln is busy? By one line on stderr that goes away
again; in a pipe, a notebook or a test there is none."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Callable

ERASE = "\r\x1b[K"


def wanted() -> bool:
    """A terminal that can take a line away again."""
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # no stderr, or a closed one
        return False


@contextlib.contextmanager
def line(quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """What it yields shows a text in place of the last one. No thread of its own: that would
    disturb what is timed."""
    if quiet or not wanted():
        yield lambda text: None
        return

    def show(text: str) -> None:
        print(f"{ERASE}{text[:100]}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        show("")


@contextlib.contextmanager
def terminal_for_child() -> Iterator[dict[str, str]]:
    """The variable by which a kiln command that writes to pipes finds the terminal, and the file
    descriptor it names; empty without one."""
    fd = None
    if wanted():
        with contextlib.suppress(OSError):
            fd = os.dup(sys.stderr.fileno())
    try:
        yield {} if fd is None else {"KILN_PROGRESS_FD": str(fd)}
    finally:
        if fd is not None:
            os.close(fd)
