# SPDX-License-Identifier: Apache-2.0
"""Does a setup.py written for torch.utils.cpp_extension build with kiln, changed in its import line
alone, and does kiln.patch_torch() switch a whole program?"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import kiln
import pytest

pytestmark = pytest.mark.one_in(2)

SETUP = """
from setuptools import setup
from kiln import BuildExtension, CUDAExtension

setup(
    name="cust_add_ext",
    version="0.1",
    ext_modules=[
        CUDAExtension(
            name="cust_add_ext",
            sources=["cust_add.cpp", "cust_add_kernel.cu"],
            include_dirs=["headers"],
            define_macros=[("FACTOR", "3")],
            extra_compile_args={"cxx": ["-O2"], "nvcc": ["-O2", "-lineinfo"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""
HEADER = "torch::Tensor cust_add_cuda(torch::Tensor a, torch::Tensor b);\n"
CPP = """
#include <torch/extension.h>
#include "cust_add.h"

torch::Tensor cust_add(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "shapes differ");
  return cust_add_cuda(a, b);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("cust_add", &cust_add, "a + FACTOR * b", py::arg("a"), py::arg("b"));
}
"""
CUDA = """
#include <torch/extension.h>
#include "cust_add.h"

__global__ void kernel(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + FACTOR * b[i];
}
torch::Tensor cust_add_cuda(torch::Tensor a, torch::Tensor b) {
  auto out = torch::empty_like(a);
  int n = a.numel();
  kernel<<<(n + 127) / 128, 128>>>(a.data_ptr<float>(), b.data_ptr<float>(),
                                   out.data_ptr<float>(), n);
  return out;
}
"""
CALL = """
import kiln, torch, cust_add_ext
a, b = torch.arange(300.0, device=kiln.device()), torch.ones(300, device=kiln.device())
assert torch.equal(cust_add_ext.cust_add(a, b=b), a + 3 * b)
print(cust_add_ext.__file__)
"""


@pytest.fixture
def project(tmp_path, command):
    (tmp_path / "headers").mkdir()
    for name, text in (
        ("setup.py", SETUP),
        ("headers/cust_add.h", HEADER),
        ("cust_add.cpp", CPP),
        ("cust_add_kernel.cu", CUDA),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def python(folder: Path, *words: str, path: str = "", errors: bool = False) -> str:
    own = str(Path(kiln.__file__).parents[1])
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [path, own]))}
    env["PATH"] = (
        str(Path(kiln.__file__).parent / "bin") + os.pathsep + env["PATH"]
    )  # for the engine
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr if errors else done.stdout


def test_in_place_and_after_an_edit(project):
    python(project, "setup.py", "build_ext", "--inplace")
    assert Path(python(project, "-c", CALL).strip()).parent == project
    (project / "cust_add_kernel.cu").write_text(
        CUDA.replace("FACTOR * b[i]", "FACTOR * b[i] + 0 * a[i]")
    )
    before = next(project.glob("cust_add_ext*.so")).read_bytes()
    python(project, "setup.py", "build_ext", "--inplace")
    assert next(project.glob("cust_add_ext*.so")).read_bytes() != before
    python(project, "-c", CALL)


@pytest.mark.long
def test_develop_and_install(project, tmp_path_factory):
    # Both put what they make under a prefix of the test's own; an editable install leads back to
    # the project.
    target = tmp_path_factory.mktemp("installed")
    python(project, "setup.py", "-q", "install", "--root", "/", "--install-lib", str(target))
    assert Path(python(target, "-c", CALL, path=str(target)).strip()).parent == target
    other = tmp_path_factory.mktemp("developed")
    python(
        project,
        "setup.py",
        "-q",
        "develop",
        "--install-dir",
        str(other),
        "--no-deps",
        path=str(other),
    )
    assert next(other.glob("*.egg-link")).read_text().splitlines()[0] == str(project)


# setuptools has the command itself since 70.1.
@pytest.mark.skipif(
    importlib.util.find_spec("wheel") is None
    and importlib.util.find_spec("setuptools.command.bdist_wheel") is None,
    reason="this Python has no package 'wheel'",
)
def test_wheel(project):
    python(project, "setup.py", "-q", "bdist_wheel")
    wheel = next((project / "dist").glob("*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(".so")] and wheel.stat().st_size < 300_000


def test_without_the_suffix_of_python(project):
    text = SETUP.replace(
        "BuildExtension}", "BuildExtension.with_options(no_python_abi_suffix=True)}"
    )
    (project / "setup.py").write_text(text)
    python(project, "setup.py", "build_ext", "--inplace")
    assert (project / "cust_add_ext.so").is_file()


def test_patched_torch(project):
    script = """
import kiln, torch
import torch.utils.cpp_extension as torch_ext
before = torch_ext.load
kiln.patch_torch()
from torch.utils.cpp_extension import BuildExtension, load
assert load is not before and BuildExtension is kiln.BuildExtension
ext = load(name="patched_ext", sources=["cust_add.cpp", "cust_add_kernel.cu"],
           extra_include_paths=["headers"], extra_cflags=["-DFACTOR=2"],
           extra_cuda_cflags=["-DFACTOR=2"])
ones = torch.ones(3, device=kiln.device())
assert torch.equal(ext.cust_add(ones, ones).cpu(), torch.full((3,), 3.0))
kiln.patch_torch(undo=True)
assert torch_ext.load is before
"""
    python(project, "-c", script)


def test_no_sources_are_told(project):
    (project / "setup.py").write_text(SETUP.replace('["cust_add.cpp", "cust_add_kernel.cu"]', "[]"))
    with pytest.raises(AssertionError, match="it has no sources"):
        python(project, "setup.py", "build_ext", "--inplace")


def test_errors_come_without_a_traceback(project):
    (project / "cust_add_kernel.cu").write_text(CUDA.replace("int i =", "int i = ;"))
    with pytest.raises(AssertionError) as raised:
        python(project, "setup.py", "build_ext", "--inplace")
    told = str(raised.value)
    assert "error: cannot compile cust_add_kernel.cu\n" in told and "expected an expression" in told
    assert "Traceback" not in told and "error: error" not in told, told


def test_an_architecture_of_the_past_is_told_without_the_commands_options(project):
    text = SETUP.replace('"-lineinfo"', '"-gencode=arch=compute_70,code=sm_70"')
    (project / "setup.py").write_text(text)
    with pytest.raises(AssertionError) as raised:
        python(project, "setup.py", "build_ext", "--inplace")
    told = str(raised.value)
    assert "compute_70" in told and "nvcc's flags in setup.py" in told, told


def test_flags_that_name_an_architecture_leave_no_other(project):
    text = SETUP.replace('"-lineinfo"', '"-gencode", "arch=compute_90a,code=sm_90a"')
    (project / "setup.py").write_text(text)
    python(project, "setup.py", "build_ext", "--inplace")
    library = next(project.glob("cust_add_ext*.so"))
    line = [str(Path(kiln.__file__).parent / "bin/kiln"), "inspect", str(library), "--json"]
    told = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert "sm_90a" in told and "sm_80" not in told


def test_an_optional_extension_may_fail(project):
    text = SETUP.replace("define_macros", "optional=True,\n            define_macros")
    (project / "setup.py").write_text(text)
    (project / "cust_add.cpp").unlink()
    assert "failed" in python(project, "setup.py", "build_ext", "--inplace", errors=True)


def test_every_name_that_torch_exports_is_there():
    from torch.utils import cpp_extension as torchs

    names = [
        name
        for name in dir(torchs)
        if name in torchs.__all__ or (name.isupper() and not name.startswith("_"))
    ]
    from kiln import cpp_extension as kilns

    assert {"CUDA_HOME", "include_paths", "IS_WINDOWS", "load"} <= set(names)
    assert not [name for name in names if not hasattr(kilns, name)]
    assert not [n for n in kilns.TORCHS_NAMES if n in names and not hasattr(kiln, n)]
    assert kiln.include_paths() == torchs.include_paths()
    assert kilns.load is kiln.load and kilns.BuildExtension is kiln.BuildExtension
    assert not hasattr(kiln, "no_such_name") and not hasattr(kilns, "no_such_name")


def test_cuda_home_where_torch_is_for_cpus(monkeypatch):
    from torch.utils import cpp_extension as torchs

    monkeypatch.setattr(torchs, "CUDA_HOME", None)
    monkeypatch.setenv("CUDA_HOME", "/opt/cuda")
    assert kiln.CUDA_HOME == "/opt/cuda"


PLAIN_SETUP = """
from setuptools import Extension, setup
from kiln import BuildExtension, CppExtension

setup(
    name="two_ext",
    ext_modules=[
        CppExtension("limited_ext", ["limited.cpp"], py_limited_api=True),
        Extension("plain_ext", ["plain.c"]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""
LIMITED = """
#include <torch/extension.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.attr("api") = static_cast<int64_t>(Py_LIMITED_API);
  m.def("row", [](at::Tensor x) { return x[0]; });
}
"""
PLAIN = """
#include <Python.h>
static struct PyModuleDef plain = {PyModuleDef_HEAD_INIT, "plain_ext", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_plain_ext(void) { return PyModule_Create(&plain); }
"""


def test_limited_api_and_a_plain_extension_beside_it(tmp_path, command):
    for name, text in (("setup.py", PLAIN_SETUP), ("limited.cpp", LIMITED), ("plain.c", PLAIN)):
        (tmp_path / name).write_text(text)
    told = python(tmp_path, "setup.py", "build_ext", "--inplace")
    assert "kiln: limited_ext: built with kiln's compat headers in" in told
    assert (tmp_path / "limited_ext.abi3.so").is_file()
    script = (
        "import torch, limited_ext, plain_ext; print(hex(limited_ext.api), "
        "limited_ext.row(torch.eye(2)).tolist())"
    )
    assert python(tmp_path, "-c", script).split() == ["0x30a0000", "[1.0,", "0.0]"]


def test_what_an_extension_cannot_have_is_told():
    from kiln.setup_py import flags_of

    with pytest.raises(kiln.KilnError, match="does not link device code"):
        kiln.CUDAExtension("x", ["a.cu"], dlink=True)
    others = {"cxx": ["-DA"], "sycl": ["-DB"], "hipcc": ["-DC"], "nvcc_dlink": ["-DD"]}
    flags = flags_of(kiln.CUDAExtension("x", ["a.cu"], extra_compile_args=others))
    assert "--cflag=-DA" in flags and not any(f.endswith(("-DB", "-DC", "-DD")) for f in flags)
    both = kiln.CUDAExtension(
        "x",
        ["a.cu"],
        py_limited_api=True,
        extra_compile_args={"cxx": ["-DPy_LIMITED_API=0x03090000"]},
    )
    pythons = ("--cflag=-DNDEBUG", "--cflag=-O")
    assert [f for f in flags_of(both) if not f.startswith(pythons)] == [
        "--cflag=-DPy_LIMITED_API=0x03090000"
    ]


def test_flags_of_the_environment_and_of_python(monkeypatch):
    from kiln.setup_py import flags_of

    monkeypatch.setenv("CFLAGS", "-DFROM_ENV='a b'")
    monkeypatch.setenv("LDFLAGS", "-L/nowhere -lm")
    flags = flags_of(kiln.CUDAExtension("x", ["a.cu"]))
    assert "--cflag=-DFROM_ENV=a b" in flags and "--ldflag=-lm" in flags
    built_so = "-DNDEBUG" in (sysconfig.get_config_var("CFLAGS") or "").split()
    assert ("--cflag=-DNDEBUG" in flags) == built_so
    levels = [f for f in (sysconfig.get_config_var("CFLAGS") or "").split() if f.startswith("-O")]
    assert [f for f in flags if f.startswith("--cflag=-O")] == [f"--cflag={f}" for f in levels[-1:]]


def test_subclasses_find_what_torchs_class_has():
    from setuptools import Distribution

    class Own(kiln.BuildExtension):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, no_python_abi_suffix=True, use_ninja=False, **kwargs)

    own = Own(Distribution())
    assert own.no_python_abi_suffix and not own.use_ninja
    assert own.get_ext_filename("a.b").endswith("b.so")
    assert ".cpython" not in own.get_ext_filename("b")
    compiler, _ = own._check_abi()
    assert compiler
    suffixed = kiln.BuildExtension.with_options(no_python_abi_suffix=True)(Distribution())
    assert suffixed.no_python_abi_suffix
