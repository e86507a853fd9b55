# SPDX-License-Identifier: Apache-2.0
"""How do Triton kernels run without a GPU? `import kiln.triton` gives CPU tensors to the engine:
`kernel[grid](...)` compiles for a GPU as always, and the engine runs the PTX.

CUDA tensors go to the GPU as before. Triton is imported here, so that `import kiln` stays cheap.
"""

from __future__ import annotations

from typing import Optional

from .errors import SetupError

try:
    import triton
except ImportError as error:
    raise SetupError(
        "cannot run Triton kernels", f"import triton: {error}", "pip install triton"
    ) from None

from ._triton.driver import EngineDriver
from ._triton.patches import Patches
from ._triton.target import default_target, target_named

__all__ = ["disable", "enable", "target"]

OLDEST = (3, 4)

_driver: Optional[EngineDriver] = None
_patches: Optional[Patches] = None


def enable(target: Optional[str] = None) -> None:
    """CPU tensors run on the engine from now on; importing this module has done it already.

    target: the GPU that Triton compiles for, "sm_90" or "sm_80"; else KILN_TRITON_TARGET, else
    sm_90.
    """
    global _driver, _patches
    _check_version()
    chosen = target_named(target) if target else default_target()
    if _driver is None:
        _driver = EngineDriver()
    _driver.target = chosen
    if _patches is None:
        _patches = Patches(_driver)
        _patches.apply(_has_gpu())


def disable() -> None:
    """Triton as it was."""
    global _patches
    if _patches is not None:
        _patches.remove()
        _patches = None


def target() -> str:
    """The GPU that Triton compiles for: "sm_90"."""
    return f"sm_{(_driver.target if _driver else default_target()).arch}"


def _has_gpu() -> bool:
    import os

    if os.environ.get("KILN_DEVICE") == "engine":
        return False
    import torch

    return bool(torch.cuda.is_available())


def _check_version() -> None:
    version = tuple(int(part) for part in triton.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST:
        raise SetupError(
            f"Triton {triton.__version__} is too old",
            "its driver has another interface",
            "pip install 'triton>=3.4'",
        )


enable()
