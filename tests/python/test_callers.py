# SPDX-License-Identifier: Apache-2.0
"""Can ops be called without torch, with NumPy's arrays, any DLPack capsule and TVM-FFI, with the
bits that torch gets?"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch

import kiln
from kiln._callers.schema import read_schema
from kiln._fakes import shapes
from kiln._fakes.syntax import DTYPES
from kiln.errors import ArgumentError, KilnError
from kiln.modules import library_of

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "sources" / "arrays.cu"


@pytest.fixture(scope="module")
def ops():
    return kiln.load(SOURCE)


@pytest.fixture
def arrays():
    random = numpy.random.default_rng(7)
    return [random.standard_normal(1000).astype(numpy.float32) for _ in range(3)]


def test_numpy_and_torch_get_equal_bits(ops, arrays):
    a, b, _ = arrays
    from_torch = ops.mixed(torch.from_numpy(a), torch.from_numpy(b), alpha=0.5)
    from_numpy = ops.mixed(a, b, alpha=0.5)
    assert type(from_numpy) is numpy.ndarray and from_numpy.flags.writeable
    assert numpy.array_equal(from_numpy, from_torch.numpy())
    # Near zero the two terms cancel: what is left is the rounding of numbers of about 1.
    assert numpy.allclose(from_numpy, a + 0.5 * numpy.exp(b), rtol=1e-5, atol=1e-6)


def test_a_result_is_written_where_the_caller_wants_it(ops, arrays):
    a, b, out = arrays
    before = library_of(ops).copied_results()
    expected = ops.mixed(a, b)
    assert ops.mixed(a, b, out=out) is out
    assert numpy.array_equal(out, expected)
    assert library_of(ops).copied_results() == before  # the kernel wrote there itself


def test_results_that_were_allocated_in_another_order_are_copied(ops, arrays):
    a, b, _ = arrays
    before = library_of(ops).copied_results()
    first, second = numpy.empty_like(a), numpy.empty_like(a)
    ops.swapped(a, b, out=(first, second))
    assert library_of(ops).copied_results() == before + 2
    assert numpy.array_equal(first, ops.mixed(a, b))
    assert numpy.array_equal(second, ops.mixed(a, b, alpha=-1.0))


def test_memory_that_an_argument_shares_is_written_last(ops, arrays):
    a, b, _ = arrays
    expected = ops.mixed(a, b)
    before = library_of(ops).copied_results()
    ops.mixed(a, b, out=a)
    assert numpy.array_equal(a, expected)
    assert library_of(ops).copied_results() == before + 1


def test_other_kinds_of_arguments(ops, arrays):
    a, b, _ = arrays
    assert ops.count([a, b], [5, 6], True, "hello") == 2 * (2000 + 11 + 5)
    assert ops.count([a], numbers=(1,)) == 1000 + 1 + 3
    assert ops.count([a]) == 1000 + 3 + 3
    assert numpy.array_equal(ops.scaled(a, 2, b), ops.scaled(a, "double", b))  # two overloads
    to = numpy.zeros_like(a)
    assert ops.into(to, a) is None
    assert numpy.array_equal(to, a)


def test_a_read_only_array_may_be_read(ops, arrays):
    a, b, _ = arrays
    expected = ops.mixed(a, b)
    a.flags.writeable = False
    assert numpy.array_equal(ops.mixed(a, b), expected)
    with pytest.raises(ArgumentError, match=r"(?s)writes to it.*read-only.*copy"):
        ops.into(a, b)
    with pytest.raises(ArgumentError, match=r"(?s)pass out.*read-only"):
        ops.mixed(b, b, out=a)


def test_a_capsule_is_used_once(ops, arrays):
    a, b, _ = arrays
    capsule = a.__dlpack__()
    assert numpy.array_equal(ops.mixed(capsule, b), ops.mixed(a, b))
    with pytest.raises(ArgumentError, match=r"(?s)was used before.*once.*x\.__dlpack__\(\)"):
        ops.mixed(capsule, b)


class ForgedTensor(ctypes.Structure):
    """A DLManagedTensor, as DLPack lays it out."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("destroy", ctypes.c_void_p),
    ]


@pytest.mark.parametrize("where", ["first", "second"])
def test_a_capsule_without_memory(ops, arrays, where):
    shape = (ctypes.c_int64 * 1)(1000)
    forged = ForgedTensor(device_type=1, ndim=1, code=2, bits=32, lanes=1, shape=shape)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    capsule = make(ctypes.addressof(forged), b"dltensor", None)
    given = (capsule, arrays[1]) if where == "first" else (arrays[0], capsule)
    with pytest.raises(
        ArgumentError, match=r"(?s)null pointer.*fix: pass an array that owns memory"
    ):
        ops.mixed(*given)
    # No elements need no memory: the op itself is asked.
    shape[0] = 0
    empty = numpy.empty(0, numpy.float32)
    capsule = make(ctypes.addressof(forged), b"dltensor", None)
    with pytest.raises(KilnError, match=r"the grid \(0,1,1\) is empty"):
        ops.mixed(*((capsule, empty) if where == "first" else (empty, capsule)))


BAD = {
    "byte order": (lambda a: a.astype(">f4"), r"(?s)other byte order.*newbyteorder"),
    "objects": (lambda a: numpy.array([None]), r"(?s)Python objects.*numbers"),
    "negative stride": (lambda a: a[::-1], r"(?s)negative stride.*ascontiguousarray"),
    "not contiguous": (lambda a: a[::2], r"(?s)not contiguous.*ascontiguousarray"),
    "dtype": (lambda a: a.astype(numpy.float64), r"(?s)tensor of f64.*convert"),
    "number": (lambda a: 3.5, r"(?s)float has no __dlpack__"),
    "record": (lambda a: numpy.zeros(3, [("x", "f4")]), r"(?s)fix: pass an array of numbers"),
    "dates": (lambda a: numpy.zeros(3, "M8[s]"), r"(?s)fix: pass an array of numbers"),
    "mask": (lambda a: numpy.ma.masked_array(a, mask=a > 0), r"(?s)mask hides.*x\.filled"),
    "gradient": (lambda a: torch.ones(3, requires_grad=True), r"(?s)fix: pass x\.detach\(\)"),
    "sparse": (lambda a: torch.eye(3).to_sparse(), r"(?s)fix: pass x\.to_dense\(\)"),
    "meta": (lambda a: torch.ones(3, device="meta"), r"(?s)fix: .*has memory"),
}


def test_a_mask_is_refused_wherever_it_stands(ops, arrays):
    a, b, _ = arrays
    hidden = numpy.ma.masked_array(b, mask=b > 0)
    expected = ops.mixed(a, b)
    for call in (
        lambda: ops.mixed(a, hidden),
        lambda: ops.mixed(a, b=hidden),
        lambda: ops.mixed(a, hidden.view(type("Mine", (numpy.ma.MaskedArray,), {}))),
        lambda: ops.mixed(a, b, out=hidden),
        lambda: ops.into(a, hidden),
        lambda: ops.count([a, hidden]),
    ):
        with pytest.raises(ArgumentError, match=r"(?s)mask hides.*x\.filled.*x\.data"):
            call()
    assert numpy.array_equal(ops.mixed(a, hidden.data), expected)


@pytest.mark.parametrize("returned", [5, None, "dltensor"])
def test_a_producer_that_returns_no_capsule(ops, arrays, returned):
    class Producer:
        def __dlpack__(self, **options):
            return returned

    for call in (
        lambda: ops.mixed(Producer(), arrays[1]),
        lambda: ops.mixed(arrays[0], Producer()),
    ):
        with pytest.raises(ArgumentError, match=r"(?s)Producer returned no DLPack capsule.*fix: "):
            call()


def test_a_producer_that_returns_a_used_capsule(ops, arrays):
    capsule = arrays[0].__dlpack__()

    class Producer:
        def __dlpack__(self, **options):
            return capsule

    ops.mixed(capsule, arrays[1])
    with pytest.raises(ArgumentError, match=r"(?s)was used before.*once"):
        ops.mixed(Producer(), arrays[1])


@pytest.mark.parametrize("kind", BAD)
def test_what_an_op_cannot_take(ops, arrays, kind):
    make, message = BAD[kind]
    bad = make(arrays[0])
    with pytest.raises(kiln.KilnError, match=message):
        second = kind == "number" or isinstance(bad, torch.Tensor)  # torch takes its own first
        ops.mixed(arrays[0], bad) if second else ops.mixed(bad, b=bad)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ops, a: ops.mixed(a), r"b: |left out: b"),
        (lambda ops, a: ops.mixed(a, a, beta=1.0), "no parameter 'beta'"),
        (lambda ops, a: ops.mixed(a, a, 1.0), "more arguments than parameters"),
        (lambda ops, a: ops.mixed(a, a, alpha="x"), r"(?s)pass alpha.*str does not fit.*schema"),
        (
            lambda ops, a: ops.mixed(a, a, out=a[:5].copy()),
            r"(?s)does not fit.*f32\[1000\].*f32\[5",
        ),
        (lambda ops, a: ops.without_rule(a, out=a.copy()), r"(?s)no fake rule.*\.fake\("),
        (lambda ops, a: ops.into(a, a, out=a), "returns no array"),
        (lambda ops, a: ops.swapped(a, a, out=a[:1]), "array for each result"),
        (lambda ops, a: ops.swapped(a, a, out=(a, a)), "own|same memory"),
        (lambda ops, a: ops.mixed(a, a[:5]), "differ in size"),
    ],
)
def test_a_call_that_does_not_fit(ops, arrays, call, message):
    with pytest.raises(kiln.KilnError, match=message):
        call(ops, arrays[0])


def test_torch_is_called_as_before(ops):
    a = torch.rand(100)
    assert type(ops.mixed(a, a)) is torch.Tensor
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor'"):
        ops.mixed([1.0], a)


def test_calls_of_torch_and_numpy_may_alternate(ops, arrays):
    """The way to torch's function is taken by the type of one argument, wherever it stands."""
    a, b = (torch.from_numpy(one) for one in arrays[:2])
    expected = ops.mixed(a, b, alpha=0.5)
    for _ in range(3):
        assert torch.equal(ops.mixed(a, b, alpha=0.5), expected)
        assert torch.equal(ops.mixed(b=b, a=a, alpha=0.5), expected)
        assert type(ops.mixed(*arrays[:2], alpha=0.5)) is numpy.ndarray
        assert type(ops.mixed(b=arrays[1], a=arrays[0])) is numpy.ndarray
        with pytest.raises((TypeError, RuntimeError), match="missing|argument"):
            ops.mixed()
        with pytest.raises(RuntimeError, match="Unknown keyword|unexpected keyword"):
            ops.mixed(a, b, beta=1)


def test_without_torch(arrays):
    """As in a Python that has no torch: the import fails."""
    script = f"""
import sys
sys.modules["torch"] = None
import numpy, kiln
ops = kiln.load({str(SOURCE)!r})
a = numpy.arange(10, dtype=numpy.float32)
result = ops.mixed(a, numpy.zeros_like(a), alpha=2.0)
assert type(result) is numpy.ndarray and numpy.array_equal(result, a + 2), result
print(ops.mixed.schema, "copies", ops.reload().mixed(a, a).shape)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "arrays::mixed(Tensor a, Tensor b, *, float alpha=1.0) -> Tensor" in done.stdout


def test_tvm_ffi_calls_the_same_library(ops, arrays):
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="tools/bootstrap test installs apache-tvm-ffi")
    a, b, out = arrays
    module = tvm_ffi.load_module(str(library_of(ops).path))
    expected = ops.mixed(a, b, alpha=0.5)
    assert numpy.array_equal(numpy.from_dlpack(module.mixed(a, b, 0.5)), expected)
    module.mixed(a, b, 0.5, out)
    assert numpy.array_equal(out, expected)
    of_torch = module.mixed(torch.from_numpy(a), torch.from_numpy(b), 0.5)
    assert numpy.array_equal(torch.from_dlpack(of_torch).numpy(), expected)
    first, second = module.swapped(a, b)
    assert numpy.array_equal(numpy.from_dlpack(second), ops.swapped(a, b)[1])
    assert numpy.array_equal(numpy.from_dlpack(first), ops.swapped(a, b)[0])
    assert module.count([a, b], [5, 6], True, "a longer text") == 2 * (2000 + 11 + 13)
    between = module["scaled.between"](a, 2.0, b)
    assert numpy.array_equal(numpy.from_dlpack(between), ops.scaled(a, 2.0, b))
    for call, message in (
        (lambda: module.without_rule(a, out), "no fake rule"),
        (lambda: module.mixed(a), "called with 1 arguments"),
        (lambda: module.mixed(a, "x", 1.0), "expected a tensor, got a string"),
        (lambda: module.mixed(a, b, 0.5, out[:7]), "does not fit the memory"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()


def test_an_op_library_needs_nothing_new(ops):
    """The symbols, and no other library than before."""
    path = str(library_of(ops).path)
    needed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
    names = {line.split("[")[1].rstrip("]") for line in needed.splitlines() if "NEEDED" in line}
    allowed = {"libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "libdl.so.2"}
    assert {name for name in names if not name.startswith("ld-linux")} <= allowed
    symbols = subprocess.run(["nm", "-D", path], capture_output=True, text=True).stdout
    for name in ("mixed", "swapped", "scaled.between", "scaled.by", "count"):
        assert f" W __tvm_ffi_{name}\n" in symbols


def test_rules_give_the_same_without_torch():
    """Promotion of every pair of dtypes, with and without dimensions and against numbers."""
    usable = [name for name in DTYPES if "8e" not in name and name != "c32"]
    for a in usable:
        for b in usable:
            for ranks in ((2, 2), (0, 2), (2, 0)):
                made = [torch.empty((1,) * rank, dtype=getattr(torch, DTYPES[name]))
                        for rank, name in zip(ranks, (a, b))]  # fmt: skip
                try:
                    expected = str(torch.result_type(*made)).split(".")[1]
                except RuntimeError:
                    continue
                if expected == "bcomplex32":  # new in torch 2.15; no array library has it
                    expected = "complex64"
                operands = [shapes.Shape((1,) * rank, n) for rank, n in zip(ranks, (a, b))]
                assert DTYPES[shapes.promoted(operands)] == expected, (a, b, ranks)
        for number in (True, 3, 2.5):
            one = torch.empty(2, dtype=getattr(torch, DTYPES[a]))
            expected = str(torch.result_type(one, number)).split(".")[1]
            assert DTYPES[shapes.promoted([shapes.Shape((2,), a), number])] == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("like(a)", [((4, 6), "f16")]),
        ("broadcast(a, b)", [((3, 4, 6), "f32")]),
        ("f32[a.shape[0], b.numel // 2, max(n, 5)], like(b, dtype=bool)",
         [((4, 36, 7), "f32"), ((3, 4, 6), "bool")]),
        ("promote(a, 2)[*a.shape[1:], ceil_div(n, 4)]", None),
        ("promote(a, i32)[*a.shape[1:], ceil_div(n, 4), len(xs)]", [((6, 2, 2), "f16")]),
    ],
)  # fmt: skip
def test_sizes_of_results(rule, expected):
    values = {"a": shapes.Shape((4, 6), "f16"), "b": shapes.Shape((3, 4, 6), "f32"), "n": 7,
              "xs": [1, 2]}  # fmt: skip
    if expected is None:
        with pytest.raises(kiln.RuleError):
            shapes.shapes_of(rule, values)
    else:
        found = shapes.shapes_of(rule, values)
        assert [(one.sizes, one.dtype) for one in found] == expected


def test_schemas_are_read_as_torch_reads_them(ops):
    for record in library_of(ops).ops:
        mine = read_schema(record.schema)
        name = record.schema.split("(")[0]
        theirs = torch._C.parse_schema(f"arrays::{record.schema}")
        assert mine.name == name
        assert [one.name for one in mine.parameters] == [one.name for one in theirs.arguments]
        for one, other in zip(mine.parameters, theirs.arguments):
            assert one.keyword_only == other.kwarg_only
            if other.has_default_value():
                assert one.default == other.default_value
        assert len(mine.results) == len(theirs.returns)
