# SPDX-License-Identifier: Apache-2.0
"""package.module.function of the guide to kiln profile."""

import torch


def function(x: torch.Tensor) -> torch.Tensor:
    return torch.sqrt(x * x)
