# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

import my_add

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0,), (1,), (1000,), (33, 65)])
def test_add(shape, dtype):
    a = torch.randn(shape, dtype=dtype, device=DEVICE)
    b = torch.randn(shape, dtype=dtype, device=DEVICE)
    torch.testing.assert_close(my_add.add(a, b, 0.1), a + 0.1 * b)


def test_shapes_are_checked():
    with pytest.raises(RuntimeError, match="shapes differ"):
        my_add.add(torch.ones(3, device=DEVICE), torch.ones(4, device=DEVICE))


def test_contiguity_is_checked():
    with pytest.raises(RuntimeError, match="contiguous"):
        my_add.add(torch.ones(4, 4, device=DEVICE).t(), torch.ones(4, 4, device=DEVICE))
