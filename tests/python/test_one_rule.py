# SPDX-License-Identifier: Apache-2.0
"""Is a result right, and does an argument mean, in Python what it is and means in C++? The unit
tests of src/host and src/measure read the same two files of cases."""

import json
import math
from pathlib import Path

import pytest
import torch
from kiln import KilnError, _measure
from kiln._argument_text import arguments_of, plain
from kiln._checks.compare import Tolerance, compare
from kiln._fakes.syntax import DTYPES

CASES = Path(__file__).parents[1] / "unit" / "host"
TOLERANCES = json.loads((CASES / "tolerance_cases.json").read_text())
ARGUMENTS = json.loads((CASES / "argument_cases.json").read_text())

SOURCE = """
#include <kiln/op.h>
kiln::Tensor named(const kiln::Tensor& x, kiln::Str name, int64_t n = 2) {
  KILN_CHECK(name == "5" && n == 16, "n is ", n);
  return kiln::empty_like(x);
}
KILN_OP(named, "x, name, n");
"""


def tensor(values, dtype):
    numbers = [float(one) if isinstance(one, str) else one for one in values]
    # torch rounds a list to f32 on its way to a narrower dtype.
    wide = torch.float64 if dtype.is_floating_point else dtype
    return torch.tensor(numbers, dtype=wide).to(dtype)


def number(value):
    if isinstance(value, list):
        return [number(one) for one in value]
    return float(value) if value in ("inf", "-inf", "nan") else value


@pytest.mark.parametrize("case", TOLERANCES, ids=lambda case: case["why"])
def test_results_are_right_as_the_shared_cases_say(case):
    dtype = getattr(torch, DTYPES[case["dtype"]])
    tolerance = Tolerance(case.get("rtol"), case.get("atol"))
    seen, wanted = tensor(case["seen"], dtype), tensor(case["wanted"], dtype)
    try:
        compare([seen], [wanted], tolerance)
        right = True
    except AssertionError:
        right = False
    assert right == case["right"]


@pytest.mark.parametrize("case", ARGUMENTS, ids=lambda case: case["text"])
def test_arguments_mean_what_the_shared_cases_say(case):
    if "error" in case:
        with pytest.raises(KilnError, match=case["error"]):
            arguments_of([case["text"]], 0, "cpu")
        return
    found = _measure.arguments([case["text"]])[0]
    assert (found["name"], found["kind"]) == (case.get("name", ""), case["kind"])
    args, kwargs = arguments_of([case["text"]], 0, "cpu")
    (value,) = kwargs.values() if found["name"] else args
    if case["kind"] == "tensor":
        assert torch.equal(value, _measure.tensor(case["value"], 0, 0, "cpu"))
    elif case["kind"] == "tensors":
        assert [list(one.shape) for one in value] == [[4], [2]]
    else:
        wanted = number(case["value"]) if case["kind"] in ("float", "floats") else case["value"]
        assert type(value) is type(wanted)
        assert value == wanted or (math.isnan(value) and math.isnan(wanted))


def test_a_word_of_a_tuned_file_is_not_taken_for_a_tensor():
    assert plain("2^4") == 16
    assert plain("ones:f32:4") == "ones:f32:4"
    assert plain("a=b") == "a=b"


def test_arguments_are_bound_to_the_parameters_of_an_op(kiln_load, tmp_path, kiln_device):
    from kiln.modules import library_of

    source = tmp_path / "bound.cu"
    source.write_text(SOURCE)
    module = kiln_load(source)
    texts = ["ones:f32:4", "5", "n=0x10"]
    args, kwargs = arguments_of(texts, 0, kiln_device, library_of(module), "named")
    # A text, because the parameter is one.
    assert args[1] == "5" and kwargs == {"n": 16}
    module.named(*args, **kwargs)
    with pytest.raises(KilnError, match="'x' expects Tensor"):
        arguments_of(["1", "2"], 0, kiln_device, library_of(module), "named")


def test_a_dtype_that_kiln_does_not_know_is_compared_exactly():
    assert _measure.tolerance("torch.float99", (1.0, 1.0), None, None) == (0.0, 0.0)
    assert _measure.tolerance("torch.float99", (1.0, 1.0), 0.5, None) == (0.5, 0.0)
