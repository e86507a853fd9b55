# SPDX-License-Identifier: Apache-2.0
"""Does the wheel of a fresh project run on this GPU, where no kiln is? No network: pip installs it
into a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kiln
import pytest
import torch
from kiln.command import find_command

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

USE = """
import importlib.util, torch, my_ext
assert importlib.util.find_spec("kiln") is None
x = torch.randn(1 << 20, device="cuda")
y = torch.randn_like(x)
torch.testing.assert_close(my_ext.my_ext(x, y, 2.5), x + 2.5 * y)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    other = my_ext.my_ext(x, y, 0.5)
stream.synchronize()
torch.testing.assert_close(other, x + 0.5 * y)
compiled = torch.compile(lambda a: my_ext.my_ext(a, a) * 2, fullgraph=True, backend="eager")
torch.testing.assert_close(compiled(x), x * 4)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured = my_ext.my_ext(x, y, 1.0)
graph.replay()
torch.cuda.synchronize()
torch.testing.assert_close(captured, x + y)
print(torch.__version__, torch.cuda.get_device_name())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    for words in (["new", "my_ext"], ["wheel", "my_ext", "--offline", "--try", sys.executable]):
        done = subprocess.run([find_command(), *words], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        print(done.stderr)
    wheels = list((folder / "my_ext/dist").glob("*.whl"))
    assert len(wheels) == 1 and wheels[0].stat().st_size < 100_000
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        folder / "site",
        wheels[0],
    ]
    subprocess.run(pip, check=True)
    return folder / "site"


def test_cuda_tensors(installed, tmp_path):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("KILN_")}
    clean["PYTHONPATH"] = str(installed)
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)


def test_a_c_program_calls_it_on_the_gpu(tmp_path):
    """tests/ship/cmake with the default device: the GPU, through the CUDA runtime of torch or of
    the toolkit."""
    sources = Path(__file__).parents[1] / "ship/cmake"
    configure = [
        "cmake",
        "-G",
        "Ninja",
        "-S",
        sources,
        "-B",
        tmp_path,
        f"-DCMAKE_PREFIX_PATH={kiln.cmake_prefix_path}",
    ]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True, capture_output=True)
    done = subprocess.run([tmp_path / "app"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0.5 3.5 6.5 9.5 12.5 of 5\n")
