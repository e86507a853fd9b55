# SPDX-License-Identifier: Apache-2.0
"""Two ways to an absolute value, for the guide to kiln profile."""

import torch

x = torch.randn(1 << 12)


def both() -> None:
    with torch.profiler.record_function("torch.sqrt(x * x)"):
        torch.sqrt(x * x)
    with torch.profiler.record_function("torch.abs(x)"):
        torch.abs(x)
