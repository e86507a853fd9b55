# SPDX-License-Identifier: Apache-2.0
"""Does the installed package work? `kiln wheel --try torch==2.7.1` runs this in an environment with
only torch and the package."""

import NAME
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
# 0.1 tells float from double, and so does a tolerance below float's precision.
for dtype, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-14)):
    x = torch.arange(5, dtype=dtype, device=device) / 3
    torch.testing.assert_close(
        NAME.NAME(x, x + 10, 0.1), x + 0.1 * (x + 10), rtol=tolerance, atol=tolerance
    )
