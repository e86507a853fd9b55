# SPDX-License-Identifier: Apache-2.0
"""Do the kernels pass kiln's own test of an op, and do they stay inside the memory of their
tensors?"""

import os
import signal
import sys
import traceback

import kiln
import pytest
import torch
from guarded import add_at_the_edges

REFERENCES = {
    "my_add": lambda a, b: a + b,
    "my_fast_add": lambda a, b: a + b,
    "cust_add": lambda x, value: x + value,
    "fused_abs": lambda x: torch.sqrt(x * x),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("name", REFERENCES)
def test_of_kiln(kernels, device, name, dtype):
    """Strides, alignments, sizes, poisoned outputs, inputs left alone, repeatability, opcheck."""
    op = getattr(kernels, name)
    op.reference(REFERENCES[name])
    x = torch.randn(33, 70, device=device).to(dtype)
    second = {"fused_abs": (), "cust_add": (3,)}.get(
        name, (torch.randn(70, device=device).to(dtype),)
    )
    kiln.test(op, x, *second)


@pytest.mark.skipif(kiln.device() != "cpu", reason="for the engine, whose memory is the host's")
def test_no_access_beside_the_tensor(kernels):
    """Tensors that end where a page without access begins: an access behind them ends the process,
    so this is done in a copy of it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            torch.set_num_threads(1)  # the copy has none of the threads that torch started
            add_at_the_edges(kernels)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, f"signal {signal.Signals(-code).name}" if code < 0 else "see the text above"
