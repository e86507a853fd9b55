# SPDX-License-Identifier: Apache-2.0
"""Does the same library do on a GPU what it does on the engine, and what only a GPU can show?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import kiln

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture(scope="module")
def ops():
    return kiln.load(str(HERE / "cuda_ops.cu"))


@pytest.fixture(scope="module")
def library(ops) -> str:
    """The path of the library that the fixture above loaded."""
    import json

    command = [str(kiln_command()), "build", str(HERE / "cuda_ops.cu"), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[
        "library"
    ]


def kiln_command() -> Path:
    return Path(kiln.__file__).parent / "bin" / "kiln"


def run_python(text: str, **env: str) -> subprocess.CompletedProcess:
    path = str(Path(kiln.__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        timeout=180,
    )


def test_values_are_equal(ops):
    x = torch.randn(100_003, device="cuda")
    assert torch.equal(ops.plus_one(x), x + 1)


def test_current_stream_is_used(ops):
    stream = torch.cuda.Stream()
    x = torch.randn(1 << 24, device="cuda")
    with torch.cuda.stream(stream):
        ops.plus_one(x * 2)  # what is loaded on first use may synchronise
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(500_000_000)  # the op must wait behind this, on this stream
        y = x * 2
        z = ops.plus_one(y)
    assert not stream.query(), "the work was done before the stream got to it"
    stream.synchronize()
    assert torch.equal(z, x * 2 + 1)


def test_graph_capture(ops):
    x = torch.zeros(4096, device="cuda")
    ops.plus_one(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = ops.plus_one(ops.plus_one(x))
    for value in (3.0, 7.0):
        x.fill_(value)
        graph.replay()
        assert torch.equal(y, torch.full_like(x, value + 2))


def test_compile_in_one_graph(ops):
    compiled = torch.compile(lambda x: ops.plus_one(x) * 2, fullgraph=True, dynamic=True)
    for n in (16, 33, 1000):
        x = torch.randn(n, device="cuda")
        torch.testing.assert_close(compiled(x), (x + 1) * 2)


def test_variables_and_symbol_copies(ops):
    x = torch.randn(1000, device="cuda")
    assert torch.equal(ops.with_variables(x, 2.0), x * 2 + 0.25)


def test_shared_memory_above_48_kb(ops):
    x = torch.randn(25_000, device="cuda")
    assert torch.equal(ops.reversed(x), x.flip(0))


def test_cluster_launch(ops):
    like = torch.empty(0, device="cuda")
    if torch.cuda.get_device_capability()[0] < 9:
        pytest.skip("no clusters on this GPU")
    assert ops.cluster_ranks(like, 8, 2).tolist() == [0, 1] * 4


def test_cooperative_launch(ops):
    x = torch.arange(64, dtype=torch.int32, device="cuda")
    assert ops.cooperative_sum(x).item() == sum(range(64))


def test_properties_are_read_in_the_right_layout(ops):
    p = torch.cuda.get_device_properties(0)
    sms, arch, memory, l2 = ops.properties(torch.empty(0, device="cuda"))
    assert (sms, arch, memory, l2) == (
        p.multi_processor_count,
        p.major * 10 + p.minor,
        p.total_memory,
        p.L2_cache_size,
    )


def test_launch_error_is_raised_and_cleared(ops):
    x = torch.zeros(4, device="cuda")
    with pytest.raises(
        RuntimeError, match=r"(?s)cannot launch .*write_to.*2048.*at most 1024 threads"
    ):
        ops.too_many_threads(x)
    assert torch.equal(ops.plus_one(x), x + 1)  # nothing sticks
    torch.cuda.synchronize()


def test_too_much_shared_memory_is_refused(ops):
    with pytest.raises(RuntimeError, match="1048576 bytes of shared memory"):
        ops.too_much_shared(torch.zeros(4, device="cuda"))


def test_cpu_tensor_is_refused_beside_a_gpu(ops):
    with pytest.raises(RuntimeError, match="CPU tensor on a machine with a GPU"):
        ops.plus_one(torch.zeros(4))


def test_two_devices_are_refused():
    add = kiln.load(str(HERE.parent.parent / "kernels"))
    with pytest.raises(RuntimeError, match="two devices"):
        add.my_add(torch.zeros(4, device="cuda"), torch.zeros(4))


def test_engine_on_request_beside_a_gpu(library):
    text = f"""
import torch, kiln
ops = kiln.load({library!r})
x = torch.randn(1000)
assert torch.equal(ops.plus_one(x), x + 1)
assert torch.equal(ops.plus_one(x.cuda()).cpu(), x + 1)
"""
    done = run_python(text, KILN_DEVICE="engine")
    assert done.returncode == 0, done.stderr


def test_fault_appears_at_its_op_with_kiln_sync(library):
    text = f"""
import torch, kiln
ops = kiln.load({library!r})
try:
    ops.wild_write(torch.zeros(4, device="cuda"))
except RuntimeError as e:
    assert "wild_write failed on the GPU" in str(e), e
    print("raised")
"""
    done = run_python(text, KILN_SYNC="1")
    assert "raised" in done.stdout, done.stderr


def test_ptx_alone_is_enough(library, tmp_path):
    """Without torch, whose own kernels have no PTX."""
    import numpy

    numpy.save(tmp_path / "want.npy", numpy.full(1000, 2, dtype=numpy.float32))
    call(
        library,
        "plus_one",
        "ones:f32:1000",
        "--expect",
        str(tmp_path / "want.npy"),
        CUDA_FORCE_PTX_JIT="1",
    )


def test_loading_leaves_the_driver_alone(library):
    """A child of fork() can use CUDA after its parent has loaded a library."""
    text = f"""
import os, torch, kiln
ops = kiln.load({library!r})
child = os.fork()
if child == 0:
    x = torch.ones(8, device="cuda")
    os._exit(0 if torch.equal(ops.plus_one(x), x + 1) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    done = run_python(text)
    assert done.returncode == 0, done.stderr


def call(library: str, *arguments: str, **env: str) -> str:
    command = [str(kiln_command()), "call", library, *arguments]
    done = subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_without_torch(library):
    assert "2" in call(library, "plus_one", "ones:f32:1024")
