# SPDX-License-Identifier: Apache-2.0
"""Where do ops run on this machine? On the GPU if there is one, else on the engine, whose tensors
are CPU tensors."""

from __future__ import annotations

import os

from ._torch import torch_module
from .errors import SetupError


def device() -> str:
    """ "cuda" where torch sees a GPU, else "cpu". KILN_DEVICE=engine and KILN_DEVICE=cuda decide
    instead."""
    wanted = os.environ.get("KILN_DEVICE", "")
    if wanted not in ("", "engine", "cuda"):
        raise SetupError(f"KILN_DEVICE is '{wanted}'", "it can be 'engine' or 'cuda'")
    if wanted == "engine":
        return "cpu"
    if torch_module().cuda.is_available():
        return "cuda"
    if wanted == "cuda":
        raise SetupError(
            "KILN_DEVICE is 'cuda'", "torch sees no GPU", "unset it: ops then run on the engine"
        )
    return "cpu"
