# SPDX-License-Identifier: Apache-2.0
"""Does what nvcc 13 compiled run on a real libcudart 12? Programs, and an op library without torch
and beside it.

KILN_TEST_CUDART12 names the libcudart.so.12. tools/gpu-check takes it out of the wheel
nvidia-cuda-runtime-cu12.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import kiln
import numpy
import pytest
import torch

HERE = Path(__file__).resolve().parent
TWELVE = os.environ.get("KILN_TEST_CUDART12", "")
TOOL = Path(kiln.__file__).parent / "bin" / "kiln"
# Those that call what was converted or renamed. cub and thrust would add a minute of compiling and
# no such call.
PROGRAMS = ("converted", "memory", "graphs", "streams", "textures", "cooperative", "device_code")

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.skipif(not TWELVE, reason="KILN_TEST_CUDART12 names no libcudart.so.12"),
]


def on_twelve(*command: str | Path) -> str:
    environment = os.environ | {"KILN_CUDART": TWELVE, "KILN_DEVICE": "cuda"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def library() -> str:
    command = [TOOL, "build", HERE / "cuda_ops.cu", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[
        "library"
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program, tmp_path):
    major, minor = torch.cuda.get_device_capability()
    source = HERE.parent / "programs" / f"{program}.cu"
    told = on_twelve(TOOL, "run", source, "--arch", f"sm_{major}{minor}", "--build-dir", tmp_path)
    assert "all is well" in told
    if program == "converted":
        assert "libcudart 12" in told, told


def test_op_library_without_torch(library, tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(1000, dtype=numpy.float32))
    numpy.save(tmp_path / "expected.npy", numpy.arange(1000, dtype=numpy.float32) * 2 + 0.25)
    version = on_twelve(TOOL, "call", library, "runtime_version", "ones:f32:1", "--json")
    assert any(12000 <= number < 13000 for number in numbers_in(json.loads(version))), version
    on_twelve(
        TOOL,
        "call",
        library,
        "with_variables",
        tmp_path / "x.npy",
        "2.0",
        "--expect",
        tmp_path / "expected.npy",
    )
    on_twelve(TOOL, "call", library, "reversed", "ones:f32:25000")
    on_twelve(TOOL, "call", library, "cooperative_sum", "ones:i32:64")
    p = torch.cuda.get_device_properties(0)
    found = on_twelve(TOOL, "call", library, "properties", "ones:f32:1", "--json")
    for expected in (p.multi_processor_count, p.total_memory, p.L2_cache_size):
        assert str(expected) in found, found


def numbers_in(value) -> list:
    if isinstance(value, dict):
        return [number for one in value.values() for number in numbers_in(one)]
    if isinstance(value, list):
        return [number for one in value for number in numbers_in(one)]
    return [value] if isinstance(value, (int, float)) else []


SCRIPT = """
import ctypes, os
ctypes.CDLL(os.environ["KILN_CUDART"])  # before torch brings its 13
import torch, kiln

ops = kiln.load({library!r})
x = torch.randn(100_003, device="cuda")
version = ops.runtime_version(x)
assert 12000 <= version < 13000, version
assert torch.equal(ops.plus_one(x), x + 1)
assert torch.equal(ops.with_variables(x, 2.0), x * 2 + 0.25)
assert torch.equal(ops.reversed(x[:25_000]), x[:25_000].flip(0))
numbers = torch.arange(64, dtype=torch.int32, device="cuda")
assert ops.cooperative_sum(numbers).item() == sum(range(64))
p = torch.cuda.get_device_properties(0)
compute = p.major * 10 + p.minor
assert tuple(ops.properties(x)[:3]) == (p.multi_processor_count, compute, p.total_memory)

side = torch.cuda.Stream()  # made by torch's 13, used by the library's 12
with torch.cuda.stream(side):
    torch.cuda._sleep(50_000_000)
    late = x * 2
    after = ops.plus_one(late)
side.synchronize()
assert torch.equal(after, x * 2 + 1)

graph = torch.cuda.CUDAGraph()
still = torch.zeros(4096, device="cuda")
with torch.cuda.graph(graph):
    y = ops.plus_one(ops.plus_one(still))
still.fill_(3.0)
graph.replay()
assert torch.equal(y, torch.full_like(still, 5.0))
try:
    ops.too_many_threads(still)
    raise SystemExit("a launch with 2048 threads was not refused")
except RuntimeError as error:
    assert "cannot launch" in str(error), error
assert torch.equal(ops.plus_one(still), still + 1)
print("libcudart", version, "beside torch", torch.__version__)
"""


def test_op_library_in_a_process_with_torch(library):
    environment = os.environ | {
        "KILN_CUDART": TWELVE,
        "PYTHONPATH": str(Path(kiln.__file__).parent.parent),
    }
    words = [sys.executable, "-c", SCRIPT.format(library=library)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert "libcudart 12" in done.stdout
