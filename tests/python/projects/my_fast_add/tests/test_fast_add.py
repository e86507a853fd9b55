# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

import my_fast_add

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("n", [0, 1, 3, 4, 1003])
def test_float(n):
    a, b = torch.randn(n, device=DEVICE), torch.full((n,), 0.1, device=DEVICE)
    assert torch.equal(my_fast_add.add(a, b), a + b)


def test_half():
    a = torch.randn(64, 10, device=DEVICE).half()
    assert torch.equal(my_fast_add.add(a.t(), a.t()), (a + a).t())
