# SPDX-License-Identifier: Apache-2.0
"""Do ops run under jax.jit with the bits that NumPy gets? In a Python of its own, for jax takes
635 MB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kiln

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "python" / "sources" / "arrays.cu"
SCRIPT = """
import jax, jax.numpy as jnp, numpy, kiln
ops = kiln.load(SOURCE)
a = numpy.linspace(-2, 2, 999, dtype=numpy.float32)
b = a[::-1].copy()
x, y = jnp.array(a), jnp.array(b)
eager = ops.mixed(x, y, alpha=0.5)
assert isinstance(eager, jax.Array), type(eager)
assert numpy.array_equal(eager, ops.mixed(a, b, alpha=0.5))
@jax.jit
def both(x, y):
    first, second = ops.swapped(x, y)
    return first, second, ops.scaled(x, 2.0, y), ops.mixed(x, y)
expected = (*ops.swapped(a, b), ops.scaled(a, 2.0, b), ops.mixed(a, b))
for found, wanted in zip(both(x, y), expected):
    assert numpy.array_equal(found, wanted)
for call, words in (
    (lambda: ops.without_rule(x), "no fake rule"),
    (lambda: ops.into(x, y), "never change"),
    (lambda: ops.mixed(x), "missing the argument 'b'"),
    (lambda: ops.mixed(x.astype("int32"), y), "tensor of i32"),
):
    try:
        jax.block_until_ready(call())
    except Exception as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
print("good")
"""


def jax_python() -> Path:
    """A Python with jax, NumPy and TVM-FFI, and without torch; made at the first run."""
    folder = Path(os.environ.get("KILN_JAX_VENV", ROOT / "build" / "jax-tools"))
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        packages = ["jax", "jax-tvm-ffi", "apache-tvm-ffi", "numpy"]
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
    return python


@pytest.mark.long
def test_ops_run_under_jit():
    environment = {**os.environ, "PYTHONPATH": str(Path(kiln.__file__).parents[1])}
    done = subprocess.run(
        [str(jax_python()), "-c", SCRIPT.replace("SOURCE", repr(str(SOURCE)))],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("good\n")
