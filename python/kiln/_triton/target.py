# SPDX-License-Identifier: Apache-2.0
"""Which GPU does Triton compile for, when its kernels run on the engine?"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ..errors import SetupError

# Compute capability -> (multiprocessors, bytes of shared memory that a block may ask for): of
# A100, of the L40 and of H100, for which kernels choose their sizes.
_DEVICES = {80: (108, 166_912), 86: (84, 101_376), 89: (142, 101_376), 90: (132, 232_448)}
DEFAULT = "sm_90"


@dataclass(frozen=True)
class Target:
    arch: int

    @property
    def capability(self) -> tuple[int, int]:
        return self.arch // 10, self.arch % 10

    @property
    def properties(self) -> dict[str, int]:
        """As Triton's driver reports them."""
        multiprocessors, shared = _DEVICES[self.arch]
        return {
            "max_shared_mem": shared,
            "max_num_regs": 65_536,
            "multiprocessor_count": multiprocessors,
            "warpSize": 32,
            "sm_clock_rate": 1_410_000,
            "mem_clock_rate": 1_215_000,
            "mem_bus_width": 5_120,
        }


def target_named(name: str) -> Target:
    """The target of "sm_80", "8.0", "80" or "90a"."""
    match = re.fullmatch(r"(?:sm_?|compute_)?(\d+)\.?(\d)[af]?", name.strip())
    arch = int(match[1] + match[2]) if match else 0
    if arch in _DEVICES:
        return Target(arch)
    known = ", ".join(f"sm_{one}" for one in _DEVICES)
    why = f"kernels of Triton run on the engine as {known}"
    if arch >= 100:
        why = "kernels for Blackwell use tcgen05, which the engine does not run"
    raise SetupError(
        f"cannot run Triton kernels for '{name}'",
        why,
        "use sm_90 (Hopper: wgmma and TMA) or sm_80 (Ampere: mma)",
    )


def default_target() -> Target:
    """What KILN_TRITON_TARGET names, else DEFAULT."""
    return target_named(os.environ.get("KILN_TRITON_TARGET") or DEFAULT)
