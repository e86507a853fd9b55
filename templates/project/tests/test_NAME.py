# SPDX-License-Identifier: Apache-2.0
"""Does NAME agree with torch?   kiln test, or pytest"""

from pathlib import Path

import kiln
import pytest
import torch

NAME = kiln.load(Path(__file__).parents[1])


@NAME.NAME.reference
def reference(x, y, alpha=1.0):
    return x + alpha * y


# 0.1 and 1/3 tell float from double, if the tolerance is below float's precision.
@pytest.mark.parametrize("alpha", [0.1, 1 / 3])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize("size", [0, 1, 255, 1000])
def test_agrees_with_torch(size, dtype, tolerance, alpha):
    x = torch.randn(size, dtype=dtype, device=kiln.device())
    y = torch.randn_like(x)
    torch.testing.assert_close(
        NAME.NAME(x, y, alpha), reference(x, y, alpha), rtol=tolerance, atol=tolerance
    )


def test_over_strides_and_sizes():
    x = torch.randn(64, 33, device=kiln.device())
    kiln.test(NAME.NAME, x, torch.randn_like(x), 0.1, dtypes=["f32", "f64"])


def test_shapes_must_agree():
    with pytest.raises(RuntimeError, match="shapes differ"):
        NAME.NAME(torch.zeros(2, device=kiln.device()), torch.zeros(3, device=kiln.device()))
