# SPDX-License-Identifier: Apache-2.0
"""Does kiln.test try other numbers than those it was given, and say what was not checked?"""

from __future__ import annotations

import ctypes

import kiln
import pytest
import torch
from kiln._launch.engine import need_engine

SOURCE = """
#include <kiln/op.h>
template <class T, class F>
__global__ void shift_kernel(const T* x, F by, T* out, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) out[i] = x[i] + static_cast<T>(by);
}
template <class F>
kiln::Tensor shifted(const kiln::Tensor& x, double by) {
  kiln::Tensor out = kiln::empty(x.sizes(), x.dtype(), x.device());
  if (x.numel() == 0) return out;
  kiln::dispatch<float, double>(x.dtype(), [&](auto t) {
    using T = typename decltype(t)::type;
    shift_kernel<T, F><<<kiln::blocks_for(x.numel(), 64), 64, 0, kiln::stream(x)>>>(
        x.data<const T>(), static_cast<F>(by), out.data<T>(), x.numel());
  });
  return out;
}
kiln::Tensor shift(const kiln::Tensor& x, double by) { return shifted<double>(x, by); }
KILN_OP(shift, "x, by=1.0").fake("x.dtype[*x.shape]");
kiln::Tensor narrow(const kiln::Tensor& x, double by) { return shifted<float>(x, by); }
KILN_OP(narrow, "x, by=1.0").fake("x.dtype[*x.shape]");
kiln::Tensor ignores(const kiln::Tensor& x, bool, int64_t) { return shifted<double>(x, 2); }
KILN_OP(ignores, "x, negate=False, by=2").fake("x.dtype[*x.shape]");
kiln::Tensor even(const kiln::Tensor& x, int64_t by) {
  KILN_CHECK(by % 2 == 0, "by must be even");
  KILN_CHECK(x.numel() % 2 == 0, "x must have an even number of elements");
  return shifted<double>(x, by);
}
KILN_OP(even, "x, by=2").fake("x.dtype[*x.shape]");
"""


@pytest.fixture(scope="module")
def ops(command, tmp_path_factory):
    path = tmp_path_factory.mktemp("scalars") / "scalars.cu"
    path.write_text(SOURCE)
    return kiln.load(path)


@pytest.fixture
def x(kiln_device):
    return torch.arange(8, dtype=torch.float64, device=kiln_device)


def checked(op, *args, **kwargs):
    return kiln.test(op, *args, opcheck=False, **kwargs)


def test_floats_become_values_that_tell_float_from_double(ops, x):
    report = checked(ops.shift, x, 2.5, reference=lambda x, by: x + by)
    assert report.outcome("by = 0.1") == report.outcome("by = 0.333333") == "passed"
    for given in ((x, 2.5), (x,)):
        with pytest.raises(kiln.Mismatch, match=r"by = 0.1: the result differs"):
            checked(ops.narrow, *given, reference=lambda x, by=1.0: x + by)


def test_bools_and_ints_too(ops, x):
    right = lambda x, negate, by: -x - by if negate else x + by  # noqa: E731
    with pytest.raises(kiln.Mismatch) as caught:
        checked(ops.ignores, x, False, 2, reference=right)
    assert caught.value.report.outcome("negate = True") == "FAILED"
    assert caught.value.report.outcome("by = 3") == "FAILED"


def test_what_the_reference_refuses_is_skipped(ops, x):
    def reference(x, by):
        if by < 1:
            raise ValueError("by is at least 1")
        return x + by

    report = checked(ops.shift, x, 1.7, reference=reference)
    assert report.outcome("by = 0.1") == "skipped"


def test_the_summary_names_what_was_refused(ops, x):
    report = checked(ops.even, x, 2, reference=lambda x, by: x + by)
    first = str(report).splitlines()[0]
    assert first.startswith("scalars.even: passed; the op refused ")
    assert "size 8 -> 7" in first and "by = 3" in first
    assert "refused" not in str(checked(ops.shift, x[:1], reference=lambda x, by=1.0: x + by))


def watch(begin):
    function = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_char_p)(
        need_engine().runtime_function(b"kiln_sanitize")
    )
    return function(b"default" if begin else None)


def test_an_op_that_starts_a_watch_of_its_own_fails(ops, x):
    if x.device.type != "cpu":
        pytest.skip("the checkers watch the engine")

    def op(x):
        watch(True)
        return ops.shift(x.contiguous())

    try:
        with pytest.raises(kiln.Mismatch, match="sanitize: not checked: the op starts a watch"):
            checked(op, x, reference=lambda x: x + 1, gradients=False)
    finally:
        watch(False)


def test_an_op_that_ends_the_watch_over_it(ops, x):
    if x.device.type != "cpu":
        pytest.skip("the checkers watch the engine")

    def op(x):
        watch(False)
        return ops.shift(x.contiguous())

    with pytest.raises(kiln.Mismatch, match="sanitize: not checked: the op ends the watch"):
        checked(op, x, reference=lambda x: x + 1, gradients=False)


def test_a_watch_from_before_is_no_fault_of_the_op(ops, x):
    if x.device.type != "cpu":
        pytest.skip("the checkers watch the engine")
    watch(True)
    try:
        report = checked(ops.shift, x, reference=lambda x, by=1.0: x + by)
        assert report.outcome("sanitize") == "skipped"
    finally:
        watch(False)


def test_nothing_on_the_engine_is_not_a_pass(ops, x):
    assert checked(torch.sin, x, reference=torch.sin).outcome("sanitize") == "skipped"
