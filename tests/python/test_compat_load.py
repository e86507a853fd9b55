# SPDX-License-Identifier: Apache-2.0
"""What does a user see when a library of the compat headers is loaded into a process that does not
fit? An error that names what is lacking and who has it; never the end of the process."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import kiln
import pytest
import torch
from kiln.demangle import demangled
from kiln.extension import load_error

pytestmark = pytest.mark.one_in(2)

OPS = """#include <torch/library.h>
int64_t twice(int64_t x) { return 2 * x; }
TORCH_LIBRARY(NAME, m) {
  m.def("twice", &twice);
}
"""


@pytest.fixture(scope="module")
def ops(command, tmp_path_factory) -> Path:
    """A library of one op, not loaded by this process."""
    from kiln.command import build

    path = tmp_path_factory.mktemp("ops") / "lone_ops.cpp"
    path.write_text(OPS.replace("NAME", "lone_ops"))
    return Path(build([str(path), "--compat=require"])["library"])


def test_a_torch_without_a_function_is_named(ops, python, tmp_path):
    """A libtorch_cpu.so that has nothing stands in for one that is too old."""
    old = tmp_path / "libtorch_cpu.so"
    subprocess.run(
        [
            "g++",
            "-shared",
            "-nostdlib",
            "-x",
            "c",
            "/dev/null",
            "-o",
            str(old),
            "-Wl,-soname,libtorch_cpu.so",
        ],
        check=True,
    )
    script = f"""
import ctypes
ctypes.CDLL({str(old)!r})
failure = ctypes.CDLL({str(ops)!r}).kiln_compat_load_failure
failure.restype = ctypes.c_char_p
print(failure().decode())
"""
    told = python(script)
    assert "error: cannot register ops (" in told and "lone_ops.cpp:3)" in told
    assert (
        "libtorch_cpu.so has no aoti_torch_" in told
        and "torch 2.7 or newer" in told
        and "pip install 'torch>=2.7'" in told
    )


def test_without_torch(ops, python):
    told = python(
        f"import ctypes; f = ctypes.CDLL({str(ops)!r}).kiln_compat_load_failure\nf.restype = "
        f"ctypes.c_char_p; print(f())"
    )
    assert "torch is not in this process" in told and "import torch first" in told


def test_an_op_that_is_there_already(ops, tmp_path):
    from kiln.extension import load_extension

    assert load_extension(ops, "lone_ops", False).twice(21) == 42
    second = tmp_path / "second.so"
    shutil.copyfile(ops, second)
    with pytest.raises(kiln.LoadError, match="torch refused the schema twice") as raised:
        load_extension(second, "lone_ops", False)
    assert "start a new one" in raised.value.fix and torch.ops.lone_ops.twice(4) == 8


def test_an_undefined_symbol_is_told_as_the_source_has_it():
    def told(symbol: str, headers: str) -> kiln.LoadError:
        return load_error(Path("x.so"), f"x.so: undefined symbol: {symbol}", headers)

    assert demangled("_Z1fN2at2kc6TensorE") == "f(at::kc::Tensor)" and demangled("puts") == "puts"
    mixed = told("_Z1fN2at2kc6TensorE", "compat")
    assert (
        "it needs f(at::Tensor)," in mixed.why and "compiled with torch's own headers" in mixed.why
    )
    assert "--compat=never" in mixed.fix
    other = told("_ZN3c106detail14torchCheckFailEPKcS2_jS2_", "torch")
    assert "it needs c10::detail::torchCheckFail(" in other.why and torch.__version__ in other.why
    assert "build it again" in other.fix
    assert "it needs puts" in told("puts", "compat").why


def test_loading_again_after_an_edit(command, tmp_path):
    path = tmp_path / "edited.cpp"
    text = """#include <torch/extension.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", [](int64_t x) { return x + 1; }); }
"""
    path.write_text(text)
    before = kiln.load("edited_ext", [path])
    path.write_text(text.replace("x + 1", "x + 2"))
    after = kiln.load("edited_ext", [path])
    assert before.f(1) == 2 and after.f(1) == 3
    path.write_text(TAKES_OPS)
    loaded = kiln.load("edited_ops", [path], is_python_module=False)
    assert "libedited_ops" in loaded and torch.ops.edited_ops.next(1) == 2


TAKES_OPS = """#include <torch/extension.h>
int64_t next_one(int64_t x) { return x + 1; }
TORCH_LIBRARY(edited_ops, m) { m.def("next", &next_one); }
"""


def test_torch_says_where_an_op_was_registered(command, tmp_path):
    """torch keeps the pointer to the file's name, and reads it when it has no kernel to call."""
    path = tmp_path / "cpu_alone_with_a_name_of_some_length.cpp"
    path.write_text(
        "#include <torch/library.h>\n"
        "at::Tensor same(const at::Tensor& x) { return x.clone(); }\n"
        'TORCH_LIBRARY(cpu_alone, m) { m.def("same(Tensor x) -> Tensor"); }\n'
        'TORCH_LIBRARY_IMPL(cpu_alone, CPU, m) { m.impl("same", &same); }\n'
    )
    kiln.load("cpu_alone", [path], is_python_module=False)
    assert torch.ops.cpu_alone.same(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(NotImplementedError) as caught:
        torch.ops.cpu_alone.same(torch.ones(2).to_sparse())
    assert f"CPU: registered at {path.name}:4" in str(caught.value)


def test_arguments_of_launches_that_throw_do_not_hinder_the_next(command, kiln_device):
    source = """#include <torch/extension.h>
__global__ void fill(float* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] = 3;
}
torch::Tensor filled(torch::Tensor x) {
  fill<<<1, 32>>>(x.data_ptr<float>(), static_cast<int>(x.numel()));
  return x;
}
"""
    ext = kiln.load_inline("launches_that_throw", "torch::Tensor filled(torch::Tensor x);", source,
                           functions=["filled"])  # fmt: skip
    wrong = torch.zeros(4, dtype=torch.int32, device=kiln_device)
    for _ in range(40):
        with pytest.raises(RuntimeError, match="expected scalar type Float but found Int"):
            ext.filled(wrong)
    assert ext.filled(torch.zeros(4, device=kiln_device)).tolist() == [3, 3, 3, 3]


def test_load_inline_takes_functions_in_every_form(command):
    source = """#include <torch/extension.h>
int64_t one(int64_t x) { return x + 1; }
int64_t two(int64_t x) { TORCH_CHECK_INDEX(x, "zero"); return x + 2; }
"""
    named = kiln.load_inline(
        "inline_named",
        source,
        functions={"one": 'adds "one"', "two": "adds two"},
        with_pytorch_error_handling=False,
    )
    assert named.one(1) == 2 and 'adds "one"' in named.one.__doc__
    with pytest.raises(IndexError, match="zero"):
        named.two(0)
    listed = kiln.load_inline(
        "inline_listed",
        [source],
        functions=["two"],
        no_implicit_headers=False,
        keep_intermediates=False,
    )
    assert (
        listed.two(1) == 3
        and listed.two.__doc__.endswith("\n\ntwo\n")
        and not hasattr(listed, "one")
    )
    with pytest.raises(IndexError, match="zero"):
        listed.two(0)


def test_libraries_of_torch_need_not_be_named(command, tmp_path):
    """An extension that torch links finds what torch itself is linked with."""
    if "libcublas.so" not in Path("/proc/self/maps").read_text():
        pytest.skip("this torch is not linked with cuBLAS")
    path = tmp_path / "blas.cpp"
    path.write_text("""#include <torch/extension.h>
extern "C" size_t cublasGetCudartVersion();
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("version", [] { return (int64_t)cublasGetCudartVersion(); });
}
""")
    assert kiln.load("blas_ext", [path]).version() >= 12000
    path.write_text(path.read_text().replace("GetCudartVersion", "HasNoSuchFunction"))
    with pytest.raises(kiln.LoadError, match="it needs cublasHasNoSuchFunction"):
        kiln.load("blas_ext", [path])


def test_a_built_extension_is_loaded_as_a_module(command, tmp_path):
    source = tmp_path / "built.cpp"
    source.write_text(
        "#include <torch/extension.h>\n"
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n"
        '  m.def("last", [](const torch::Tensor& x) { return x.size(-1); });\n'
        "}\n"
    )
    library = tmp_path / "libbuilt.so"
    subprocess.run([command, "build", source, "-o", library], check=True, capture_output=True)
    module = kiln.load(library)
    assert module.__name__ == "built" and module.last(torch.zeros(2, 3)) == 3
