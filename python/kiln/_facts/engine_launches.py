# SPDX-License-Identifier: Apache-2.0
"""Which kernels did the engine run? It tells whoever listens (kiln/engine_abi.h)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._launch.engine import LISTENER, find_engine


@contextlib.contextmanager
def engine_launches() -> Iterator[list[dict[str, Any]]]:
    """The launches inside, as they end; none where no engine is loaded."""
    launches: list[dict[str, Any]] = []
    engine = find_engine()
    if engine is None:
        yield launches
        return

    def heard(record: Any, _user: Any) -> None:
        one = record.contents
        launches.append(
            {
                "name": one.kernel.decode(errors="replace"),
                "grid": [one.grid.x, one.grid.y, one.grid.z],
                "block": [one.block.x, one.block.y, one.block.z],
                "shared_bytes": one.shared_bytes,
                "begin_ns": one.begin_ns,
                "us": one.ns / 1e3,
            }
        )

    listener = LISTENER(heard)
    engine.listen(listener, None)
    try:
        yield launches
    finally:
        engine.listen(LISTENER(0), None)
