# SPDX-License-Identifier: Apache-2.0
"""Which torch is here, and is it one that op libraries can register with?

torch is imported at first need, never by `import kiln`: a script that only asks for the version
must not wait for it.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from typing import Any

from .errors import SetupError

OLDEST = (2, 7)
# Before this one, libtorch's C shim hands over neither lists nor strings.
OLDEST_WITH_LISTS = (2, 10)


def has_torch() -> bool:
    """Is torch installed? Without it, ops take arrays of other libraries."""
    return sys.modules.get("torch") is not None or importlib.util.find_spec("torch") is not None


def torch_module() -> Any:
    """torch, imported now if it was not; at least OLDEST."""
    try:
        import torch
    except ImportError as error:
        raise SetupError(
            "cannot import torch",
            str(error),
            "pip install torch; without torch: kiln call FILE.cu OP ARGS",
        ) from None
    check_version(torch.__version__)
    return torch


def check_version(version: str) -> None:
    if version_of(version) >= OLDEST:
        return
    oldest = ".".join(map(str, OLDEST))
    raise SetupError(
        f"torch {version} is too old",
        f"op libraries register through functions that libtorch has since {oldest}",
        f"pip install 'torch>={oldest}'",
    )


def version_of(version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", version)
    return (0, 0) if match is None else (int(match.group(1)), int(match.group(2)))
