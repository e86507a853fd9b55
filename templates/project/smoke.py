# SPDX-License-Identifier: Apache-2.0
"""Does the installed package work? `kiln wheel --try torch==2.7.1` runs this in an environment with
only torch and the package."""

import NAME
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.arange(5, dtype=torch.float32, device=device)
result = NAME.NAME(x, x + 10, 2.0)
assert torch.equal(result, x + 2.0 * (x + 10)), result
