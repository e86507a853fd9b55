# SPDX-License-Identifier: Apache-2.0
"""Does kiln.ptx run the same PTX on a GPU, on the caller's stream, with the engine's results?"""

from __future__ import annotations

import sys
from pathlib import Path

import kiln
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from test_ptx import SCALE  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def test_gives_what_the_engine_gives():
    module = kiln.ptx(SCALE)
    x = torch.randn(100_000)
    on_engine, on_gpu = torch.zeros_like(x), torch.zeros_like(x, device="cuda")
    module.scale[782, 128](x, on_engine, 1.7, x.numel())
    module.scale[782, 128](x.cuda(), on_gpu, 1.7, x.numel())
    assert torch.equal(on_gpu.cpu(), on_engine)


def test_runs_on_the_current_stream():
    module = kiln.ptx(SCALE)
    x, y = torch.zeros(1 << 24, device="cuda"), torch.zeros(1 << 24, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(50):
            x += 1
        module.scale[1 << 17, 128](x, y, 2.0, x.numel())
    stream.synchronize()
    assert (y == 100).all()


def test_uses_more_than_48_kb_of_shared_memory():
    x, y = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda")
    kiln.ptx(SCALE).scale[1, 32, 100_000](x, y, 2.0, 4)
    assert y.tolist() == [2.0] * 4


def test_refuses_what_the_driver_refuses():
    x = torch.ones(4, device="cuda")
    with pytest.raises(kiln.KilnError, match=r"(?s)cannot compile this PTX.*mull"):
        kiln.ptx(SCALE.replace("mul.f32", "mull.f32")).scale[1, 1](x, x, 1.0, 1)
    with pytest.raises(kiln.KilnError, match="different devices"):
        kiln.ptx(SCALE).scale[1, 1](x, torch.ones(4), 1.0, 4)
    with pytest.raises(kiln.KilnError, match="cannot launch _Z5scalePfS_fi on GPU 0"):
        kiln.ptx(SCALE).scale[1, 2048](x, x, 1.0, 4)
