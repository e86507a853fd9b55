# SPDX-License-Identifier: Apache-2.0
"""Which arrays would lose something on their way to a kernel? Those of numpy.ma: neither their
DLPack capsule nor their pointer tells of the mask.
"""

from __future__ import annotations

from typing import Any

WHY = "it would read what the mask hides"
FIX = "pass x.filled(value), or x.data to ignore the mask"


def is_masked(value: Any) -> bool:
    return any(base.__name__ == "MaskedArray" for base in type(value).__mro__)
