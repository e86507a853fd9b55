# SPDX-License-Identifier: Apache-2.0
import torch

from . import _C  # noqa: F401


def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.ops.my_fast_add.add(a, b)


@torch.library.register_fake("my_fast_add::add")
def _(a, b):
    return torch.empty_like(a)
