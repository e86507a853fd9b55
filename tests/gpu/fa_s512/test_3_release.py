# SPDX-License-Identifier: Apache-2.0
"""Does the build that users get do the same, again and again, from a graph and on another
stream?"""

from __future__ import annotations

import pytest
import torch
from test_2_forward import LENGTHS, inputs, many_rows, run_lengths, verify


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("s", LENGTHS)
def test_a_lengths(release_build, margins, s, d, causal):
    run_lengths(release_build.forward, margins, "release", s, d, causal, torch.bfloat16)


@pytest.mark.parametrize("path", ["forward", "forward_portable"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
def test_b_equal_bits_each_run(release_build, margins, d, causal, path):
    op = getattr(release_build, path)
    q, k, v = many_rows(d)
    verify(op, margins, f"release {path} many rows D={d} causal={causal}", q, k, v, causal)
    first, first_lse = op(q, k, v, causal)
    differing = torch.zeros((), device="cuda", dtype=torch.int64)
    for _ in range(1000):
        out, lse = op(q, k, v, causal)
        differing += (out.view(torch.int16) != first.view(torch.int16)).any() | (
            lse != first_lse
        ).any()
    assert differing.item() == 0


def test_c_graph_and_stream(release_build):
    q, k, v = inputs(4, 8, 512, 128, torch.bfloat16)
    right, _ = release_build.forward(q, k, v)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        release_build.forward(q, k, v)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        out, _ = release_build.forward(q, k, v)
    for _ in range(3):
        out.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, right)
