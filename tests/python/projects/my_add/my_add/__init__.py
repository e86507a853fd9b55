# SPDX-License-Identifier: Apache-2.0
import torch

from . import _C


def add(a: torch.Tensor, b: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    return _C.add(a, b, alpha)
