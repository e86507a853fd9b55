# SPDX-License-Identifier: Apache-2.0
"""Does a source with a class build with torch's own headers by itself, and live beside one of the
compat headers?

The one build of the tests with torch's real headers, some 40 CPU seconds: everything that needs it
is here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kiln
import pytest

REAL = """#include <torch/extension.h>

struct Scale {
  double factor;
  at::Tensor apply(const at::Tensor& x) const {
    TORCH_CHECK_INDEX(x.dim() > 0, "a scalar is not scaled");
    return x * factor;
  }
};
at::Tensor first_row(const at::Tensor& x) { return x[0]; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  static_assert(sizeof(torch::nn::LinearOptions) > 0, "");
  py::class_<Scale>(m, "Scale").def(py::init<double>()).def("apply", &Scale::apply);
  m.def("first_row", &first_row);
}
"""
LOAD = """
import sys, kiln, torch
def real(): return kiln.load("real_ext", [{real!r}], extra_cflags=["-O0"])
def quick(): return kiln.load("quick_ext", [{quick!r}])
"""
USE = """
x = torch.arange(6.0).view(2, 3)
row = real_ext.first_row(x)                    # a view that torch's headers made ...
assert torch.equal(quick_ext.first_row(x), row) and row.data_ptr() == x.data_ptr()
doubled = quick_ext.doubled(row)               # ... through the compat headers ...
scaled = real_ext.Scale(1.5).apply(doubled)    # ... and back
assert torch.equal(scaled, row * 3)
quick_ext.add_one_(scaled)
assert torch.equal(scaled, row * 3 + 1)
scalar = torch.zeros(())
for call in (lambda: real_ext.Scale(1.0).apply(scalar), lambda: quick_ext.first_row(scalar)):
    try:
        call()
    except IndexError as error:
        print("IndexError", str(error).splitlines()[0])
try:
    quick_ext.doubled(real_ext.Scale(1.0))
except TypeError as error:
    print("TypeError", str(error).splitlines()[0])
"""
QUICK = """#include <torch/extension.h>
at::Tensor first_row(const at::Tensor& x) { return x[0]; }
at::Tensor doubled(const at::Tensor& x) { return x * 2; }
void add_one_(at::Tensor& x) { x.add_(1); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("first_row", &first_row);
  m.def("doubled", &doubled);
  m.def("add_one_", &add_one_);
}
"""


@pytest.fixture(scope="module")
def load(command, tmp_path_factory):
    """The text of a script that loads both, built before: the fallback said why it took so long."""
    folder = tmp_path_factory.mktemp("both")
    for name, text in (("real.cpp", REAL), ("quick.cpp", QUICK)):
        (folder / name).write_text(text)
    script = LOAD.format(real=str(folder / "real.cpp"), quick=str(folder / "quick.cpp"))
    done = run(script + "real(); quick()")
    assert "real.cpp:13" in done.stderr and "kiln's compat headers lack torch::nn" in done.stderr, (
        done.stderr
    )
    assert "quick.cpp" not in done.stderr
    return script


def run(script: str) -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if k != "KILN_COMPAT"} | {
        "PYTHONPATH": str(Path(kiln.__file__).parents[1])
    }
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.long
@pytest.mark.parametrize(
    "order", ["real_ext = real(); quick_ext = quick()", "quick_ext = quick(); real_ext = real()"]
)
def test_both_kinds_in_one_process(load, order):
    done = run(load + order + "\n" + USE)
    assert done.stdout.splitlines() == [
        "IndexError a scalar is not scaled",
        "IndexError select() cannot be applied to a 0-dim tensor.",
        "TypeError doubled(): incompatible function arguments. The following argument types are "
        "supported:",
    ]
    assert "as before" in done.stderr, done.stderr
