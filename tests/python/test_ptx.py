# SPDX-License-Identifier: Apache-2.0
"""Does kiln.ptx call kernels of which only the PTX is there, and refuse what does not fit?"""

from __future__ import annotations

import ctypes
import re
import struct
from pathlib import Path

import numpy
import pytest
import torch

import kiln
from kiln._launch.ptx_text import short_name

SCALE = """
// from a compiler
.version 7.0
.target sm_80
.address_size 64
.visible .entry _Z5scalePfS_fi(
  .param .u64 p0, /* the input */
  .param .u64 .ptr .global .align 4 p1,
  .param .f32 p2,
  .param .u32 p3
)
{
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [p0];
  ld.param.u64 %rd2, [p1];
  ld.param.f32 %f1, [p2];
  ld.param.u32 %r1, [p3];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f2, [%rd4];
  mul.f32 %f3, %f2, %f1;
  add.s64 %rd5, %rd2, %rd3;
  st.global.f32 [%rd5], %f3;
done:
  ret;
}
"""


def kernel_of(parameters: str, body: str) -> str:
    """PTX with one kernel `k`, whose first parameter is a pointer in %rd1."""
    return f""".version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 out{parameters})
{{ .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .f64 %d<4>;
  ld.param.u64 %rd1, [out];\n{body}\n  ret;\n}}\n"""


@pytest.fixture
def scale():
    return kiln.ptx(SCALE).scale


def test_runs_on_arrays_of_torch_and_numpy(scale):
    x = numpy.arange(300, dtype=numpy.float32)
    y = numpy.zeros_like(x)
    scale[3, 128](x, y, 2.0, 300)
    assert (y == 2 * x).all()
    tensor, out = torch.arange(300.0), torch.zeros(300)
    scale[(3, 1), (128, 1, 1), 0](tensor, out, numpy.float32(3), numpy.int32(300))
    assert torch.equal(out, 3 * tensor)
    scale[numpy.int64(3), 128](x, out, 4, True)  # one element; arrays of both kinds
    assert out[1] == 3 and out[0] == 0


def test_reads_files_bytes_and_what_compilers_return(tmp_path):
    class Compiled:
        asm = {"ptx": SCALE}  # noqa: RUF012

    class Code:
        code = SCALE.encode() + b"\0"

    path = tmp_path / "scale.ptx"
    path.write_text(SCALE)
    for source in (path, str(path), SCALE.encode(), Compiled(), Code(), (SCALE, None)):
        x, y = torch.ones(4), torch.zeros(4)
        kiln.ptx(source).scale[1, 32](x, y, 5.0, 4)
        assert y.tolist() == [5.0] * 4


def test_finds_kernels_by_their_name():
    module = kiln.ptx(SCALE)
    assert module.kernels == ("_Z5scalePfS_fi",)
    assert module["_Z5scalePfS_fi"] is module.scale is module["scale"]
    assert "scale" in dir(module) and "scale(.u64, .u64 .ptr, .f32, .u32)" in repr(module.scale)
    with pytest.raises(AttributeError, match="its kernels are: scale"):
        _ = module.scales
    twice = kiln.ptx(SCALE + SCALE[SCALE.index(".visible") :].replace("PfS_fi", "PdS_fi"))
    with pytest.raises(kiln.KilnError, match="several kernels have this name"):
        _ = twice["scale"]
    assert short_name("_ZN3abc6detail3addIfEEvPT_") == "add" and short_name("k_0") == "k_0"


@pytest.mark.parametrize(
    ("declared", "load", "value", "expected"),
    [
        (".u64", "ld.param.u64 %rd2, [v]; st.u64 [%rd1], %rd2;", -1, "<q"),
        (".s64", "ld.param.u64 %rd2, [v]; st.u64 [%rd1], %rd2;", 1 << 40, "<q"),
        (".u8", "ld.param.u8 %h1, [v]; st.u8 [%rd1], %h1;", True, "<b"),
        (".s16", "ld.param.u16 %h1, [v]; st.u16 [%rd1], %h1;", -3, "<h"),
        (".f64", "ld.param.f64 %d1, [v]; st.f64 [%rd1], %d1;", 0.1, "<d"),
        (".f32", "ld.param.f32 %f1, [v]; st.f32 [%rd1], %f1;", 1e300, "<f"),
        (".b16", "ld.param.b16 %h1, [v]; st.b16 [%rd1], %h1;", numpy.float16(1.5), "<e"),
        (".b32", "ld.param.b32 %r1, [v]; st.b32 [%rd1], %r1;", numpy.float32(0.5), "<f"),
        (".u32", "ld.param.u32 %r1, [v]; st.b32 [%rd1], %r1;", numpy.int64(7), "<i"),
    ],
)
def test_values_have_the_declared_type(declared, load, value, expected):
    out = numpy.zeros(8, numpy.uint8)
    kiln.ptx(kernel_of(f", .param {declared} v", load)).k[1, 1](out, value)
    want = float("inf") if isinstance(value, float) and value > 1e200 else value
    got = struct.unpack_from(expected, out.tobytes())[0]
    assert got == want


def test_structs_are_bytes():
    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_int)]

    module = kiln.ptx(
        kernel_of(
            ", .param .align 4 .b8 v[8]",
            "ld.param.u32 %r1, [v+4]; st.u32 [%rd1], %r1;",
        )
    )
    for value in (Pair(1, 2), struct.pack("<ii", 1, 2), numpy.zeros(1, "i4,i4")[0]):
        out = torch.full((1,), 9, dtype=torch.int32)
        module.k[1, 1](out, value)
        assert out.item() == (0 if isinstance(value, numpy.generic) else 2)
    with pytest.raises(kiln.KilnError, match=r"(?s)4 bytes.*\.b8\[8\] v.*fix: pass 8 bytes"):
        module.k[1, 1](out, b"1234")


def test_shared_memory_beyond_48_kb(scale):
    x, y = torch.ones(4), torch.zeros(4)
    scale[1, 32, 200_000](x, y, 2.0, 4)
    assert y.tolist() == [2.0] * 4
    with pytest.raises(kiln.KilnError, match="exceed 232448"):
        scale[1, 32, 300_000](x, y, 2.0, 4)


def test_views_reach_as_far_as_their_strides(scale):
    base = numpy.arange(20, dtype=numpy.float32)
    out = numpy.zeros(20, numpy.float32)
    scale[1, 32](base[::2], out, 1.0, 19)  # the last element of the view is base[18]
    with pytest.raises(kiln.KilnError, match=r"(?s)scale failed.*read of size 4.*argument 0"):
        scale[1, 32](base[::2], out, 1.0, 20)
    scale[1, 32](base[::-1][:1], out, 1.0, 1)
    assert out[0] == 19


def test_faults_name_the_kernel_and_the_argument(scale):
    x, y = numpy.zeros(100, numpy.float32), numpy.zeros(100, numpy.float32)
    with pytest.raises(kiln.KilnError, match=r"(?s)read.*thread \(100,0,0\).*\(argument 0\)"):
        scale[1, 128](x, y, 1.0, 128)
    y.flags.writeable = False
    with pytest.raises(kiln.KilnError, match=r"(?s)write.*may only read.*argument 1"):
        scale[1, 128](x, y, 1.0, 100)
    with pytest.raises(kiln.KilnError, match=r"(?s)cannot launch scale.*1 and 1024 threads"):
        scale[1, 2048](x, y, 1.0, 100)
    with pytest.raises(kiln.KilnError, match=r"mull\.f32"):
        kiln.ptx(SCALE.replace("mul.f32", "mull.f32")).scale[1, 1](x, x, 1.0, 1)


@pytest.mark.parametrize(
    ("arguments", "why", "fix"),
    [
        ((1,), "declares 4 arguments: .u64, .u64 .ptr, .f32, .u32", "one value per parameter"),
        ((0, 0, "x", 1), r"\.f32 p2", "pass a float"),
        ((0, 0, 1.0, 2.5), r"\.u32 p3", "pass an int"),
        ((0, 0, 1.0, 1 << 32), r"\.u32 p3", "fits into 32 bits"),
        ((0, 0, numpy.zeros(1), 1), r"\.f32 p2", "pass a number"),
        ((2.5, 0, 1.0, 1), r"\.u64 p0", "pass a tensor, an array, an int or None"),
        ((0, 12345, 1.0, 1), "no CPU tensor of this process", "the array itself"),
        ((numpy.zeros(1, ">f4"), 0, 1.0, 1), "other byte order", "newbyteorder"),
        ((numpy.array([None]), 0, 1.0, 1), "Python objects", "array of numbers"),
        ((numpy.ma.zeros(1, "f4"), 0, 1.0, 1), "mask hides", r"x\.filled"),
        ((torch.zeros(1, device="meta"), 0, 1.0, 1), "device 'meta'", "CPU tensor"),
        ((torch.zeros(2, 2).to_sparse(), 0, 1.0, 1), "layout", "to_dense"),
    ],
)
def test_refuses_arguments_that_do_not_fit(scale, arguments, why, fix):
    with pytest.raises(kiln.KilnError, match=f"(?s)cannot .*why: .*{why}.*fix: .*{fix}"):
        scale[1, 1](*arguments)


def test_an_address_belongs_to_a_tensor(scale):
    x, y = torch.ones(8), torch.zeros(8)
    scale[1, 32](x, y.data_ptr(), 2.0, 8)
    assert y.sum() == 16


def test_refuses_sizes_that_are_none(scale):
    for sizes in (1, (1, 2, 3, 4), (1.5, 1), ((1, 1, 1, 1), 1), ("a", 1), (1, 1, -1), (-1, 1)):
        with pytest.raises(kiln.KilnError, match="cannot launch scale"):
            scale[sizes]
    with pytest.raises(kiln.KilnError, match=r"module\.scale\[grid, block\]"):
        scale(1, 2, 3, 4)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("missing.ptx", "there is no such file"),
        (b"\x7fELF\x02", "machine code"),
        (b"\x50\xed\x55\xba\x01", "fat binary"),
        (b"\xff\xfe\x00", "not text"),
        ("int main() {\n}", "no .version"),
        (SCALE.replace(".entry", ".func"), "no .entry"),
        (SCALE.replace(".f32 p2", ".pred p2"), "unknown form of a parameter"),
        (3, "takes the text, a path"),
    ],
)
def test_refuses_what_is_not_ptx(source, why):
    with pytest.raises(kiln.KilnError, match=why):
        kiln.ptx(source)


def test_numba_passes_arrays_in_parts():
    """Names and parameters as numba.cuda.compile_ptx makes them: (float32[::1], float32)."""
    name = "_ZN8__main__5scaleB2v1B94cw51cXE5ArrayIfLi1E1C7mutable7alignedEf"
    parameters = "".join(f", .param .b64 p{i}" for i in range(7)) + ", .param .f32 p7"
    text = kernel_of(
        parameters,
        "ld.param.b64 %rd2, [p4]; ld.param.b64 %rd3, [p2]; st.b64 [%rd2], %rd3;"
        " ld.param.b64 %rd3, [p5]; st.b64 [%rd2+8], %rd3;"
        " ld.param.b64 %rd3, [p6]; st.b64 [%rd2+16], %rd3;",
    )
    text = text.replace("entry k(.param .u64 out, ", f"entry {name}(").replace(
        "ld.param.u64 %rd1, [out];", ""
    )
    for array in (numpy.zeros(6, numpy.float32), torch.zeros(6)):
        kiln.ptx(text)[name][1, 1](array, 2.0)
        assert numpy.asarray(array).view(numpy.int64).tolist() == [6, 6, 4]


def nvrtc_path() -> str:
    folder = Path(torch.__file__).parents[1] / "nvidia"
    found = sorted(folder.glob("*/lib/libnvrtc.so.*[0-9]"))
    if not found:
        pytest.skip("torch's wheel here has no libnvrtc")
    return str(found[0])


def test_runs_what_nvrtc_compiles():
    library = ctypes.CDLL(nvrtc_path())
    source = b"""template <class T> __device__ T twice(T x) { return x + x; }
extern "C" __global__ void fill(double* out, long long n, bool negative) {
  __shared__ double tile[64];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  for (long long i = threadIdx.x; i < n; i += blockDim.x)
    out[i] = (negative ? -1 : 1) * twice(tile[63 - threadIdx.x]);
}"""
    program = ctypes.c_void_p()
    assert not library.nvrtcCreateProgram(ctypes.byref(program), source, b"k.cu", 0, None, None)
    options = (ctypes.c_char_p * 2)(b"--gpu-architecture=compute_80", b"-lineinfo")
    assert not library.nvrtcCompileProgram(program, 2, options)
    size = ctypes.c_size_t()
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    module = kiln.ptx(text.raw)
    out = numpy.zeros(100)
    module.fill[1, 64](out, 100, True)
    assert (out == [-2.0 * (63 - i % 64) for i in range(100)]).all()
    with pytest.raises(kiln.KilnError, match=r"(?s)write of size 8.*k\.cu:7"):
        module.fill[1, 64](out, 101, False)


def test_the_example_of_the_guide_runs(python, tmp_path):
    page = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "ptx.md").read_text()
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert example
    (tmp_path / "scale.ptx").write_text(SCALE)
    script = example[1] + "import sys\nprint((y == 2 * x).all(), 'torch' in sys.modules)"
    assert python(script).split() == ["True", "False"]
