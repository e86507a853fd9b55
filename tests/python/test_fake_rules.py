# SPDX-License-Identifier: Apache-2.0
"""Does a fake rule give the tensor that torch's own arithmetic of shapes and dtypes gives, and
refuse what it must?"""

from __future__ import annotations

import itertools

import pytest
import torch
from kiln import RuleError
from kiln._fakes.rules import compile_rule, default_fake
from kiln._fakes.syntax import parse
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

PARAMETERS = (
    "Tensor a, Tensor b, Tensor[] xs, SymInt n=3, SymInt[] sizes=[], ScalarType? "
    "dtype=None, Tensor? c=None"
)


def schema(returns: str = "Tensor", parameters: str = PARAMETERS):
    return torch._C.parse_schema(f"rules::op({parameters}) -> {returns}")


def evaluate(rule: str, *args, returns: str = "Tensor", **kwargs):
    return compile_rule(rule, schema(returns))(*args, **kwargs)


def tensors():
    return (
        torch.empty(4, 6),
        torch.empty(6, dtype=torch.int32),
        [torch.empty(2), torch.empty(5, 7, dtype=torch.half)],
    )


@pytest.mark.parametrize(
    ("rule", "shape", "dtype"),
    [
        ("like(a)", (4, 6), torch.float32),
        ("like(b)", (6,), torch.int32),
        ("like(a, dtype=bf16)", (4, 6), torch.bfloat16),
        ("like(xs[1])", (5, 7), torch.float16),
        ("f32[]", (), torch.float32),
        ("f32[a.shape[0], 4]", (4, 4), torch.float32),
        ("i64[a.shape[-1]]", (6,), torch.int64),
        ("b.dtype[n]", (3,), torch.int32),
        ("xs[1].dtype[n]", (3,), torch.float16),
        ("bool[a.numel]", (24,), torch.bool),
        ("u8[a.ndim + b.ndim * 2]", (4,), torch.uint8),
        ("f64[*a.shape]", (4, 6), torch.float64),
        ("f64[*a.shape[:-1], n]", (4, 3), torch.float64),
        ("f64[7, *a.shape[1:], *b.shape]", (7, 6, 6), torch.float64),
        ("f16[*sizes, 1]", (8, 9, 1), torch.float16),
        ("f16[sizes[1], len(sizes), len(xs)]", (9, 2, 2), torch.float16),
        ("c64[min(n, 2), max(n, 4, 5)]", (2, 5), torch.complex64),
        ("f32[ceil_div(a.numel, 5), a.numel // 5, a.numel % 5]", (5, 4, 4), torch.float32),
        ("f32[(a.shape[0] + 1) * 2 - 3]", (7,), torch.float32),
        ("f32[-n + 5, 2 * -1 * -3]", (2, 6), torch.float32),
        ("broadcast(a, b)", (4, 6), torch.float32),
        ("broadcast(b, a, dtype=bool)", (4, 6), torch.bool),
        ("broadcast(a, c)", (4, 6), torch.float32),
        ("promote(a, b)[2]", (2,), torch.float32),
        ("promote(b, i64)[2]", (2,), torch.int64),
        ("float_of(b)[2]", (2,), torch.float32),
        ("float_of(f16)[2]", (2,), torch.float16),
        ("float_of(promote(b, bool))[2]", (2,), torch.float32),
        ("dtype[n]", (3,), torch.float64),
        ("like(a, dtype=dtype)", (4, 6), torch.float64),
        ("  f32 [ 1 , 2 ]  @ b . device", (1, 2), torch.float32),
        ("f8e4m3[1]", (1,), torch.float8_e4m3fn),
    ],
)
def test_rule_gives_shape_and_dtype(rule, shape, dtype):
    a, b, xs = tensors()
    made = evaluate(rule, a, b, xs, sizes=[8, 9], dtype=torch.float64)
    assert tuple(made.shape) == shape
    assert made.dtype == dtype


def test_several_results():
    a, b, xs = tensors()
    first, second = evaluate("like(a), i64[b.shape[0], 2]", a, b, xs, returns="(Tensor, Tensor)")
    assert (first.shape, second.shape, second.dtype) == ((4, 6), (6, 2), torch.int64)


def test_a_list_of_results():
    a, b, xs = tensors()
    made = evaluate("like(xs, dtype=f64)", a, b, xs, returns="Tensor[]")
    assert [tuple(one.shape) for one in made] == [(2,), (5, 7)]
    assert {one.dtype for one in made} == {torch.float64}


def test_no_result():
    a, b, xs = tensors()
    assert evaluate("none", a, b, xs, returns="()") is None


def test_a_dtype_that_was_left_out_is_the_tensors():
    a, b, xs = tensors()
    assert evaluate("like(a, dtype=dtype)", a, b, xs).dtype == torch.float32
    with pytest.raises(RuleError, match="'dtype' was left out"):
        evaluate("dtype[2]", a, b, xs)


def test_like_keeps_the_layout_as_empty_like_does():
    a = torch.empty(4, 6).t()
    assert evaluate("like(a)", a, a, []).stride() == torch.empty_like(a).stride() == (1, 6)


def test_device_is_that_of_the_first_tensor_or_the_one_named():
    a, b = torch.empty(2, device="meta"), torch.empty(2)
    assert evaluate("f32[2]", a, b, []).device.type == "meta"
    assert evaluate("f32[2] @ b.device", a, b, []).device.type == "cpu"
    assert evaluate("like(a) @ b.device", a, b, []).device.type == "cpu"
    made = compile_rule("f32[n] @ d", schema("Tensor", "SymInt n, Device d"))
    assert made(2, torch.device("meta")).device.type == "meta"


def layouts(shape):
    yield torch.empty(shape)
    if len(shape) > 1:
        backwards = list(range(len(shape)))[::-1]
        yield torch.empty([shape[i] for i in backwards]).permute(backwards)
        yield torch.empty(*shape[:-1], 2 * shape[-1])[..., ::2]
        swapped = [1, 0, *range(2, len(shape))]
        yield torch.empty([shape[i] for i in swapped]).permute(swapped)
    if len(shape) == 4:
        yield torch.empty(shape).contiguous(memory_format=torch.channels_last)


def test_broadcast_has_the_layout_of_tensor_iterator():
    shapes = [(), (3,), (1,), (4, 3), (4, 1), (1, 3), (2, 4, 3), (2, 1, 3), (1, 1, 1)]
    shapes += [(5, 2, 4, 3), (5, 2, 1, 3), (5, 1, 4, 1), (0, 3), (2, 0, 3)]
    rule = compile_rule("broadcast(a, b)", schema())
    compared = 0
    for left, right in itertools.product(shapes, shapes):
        try:
            torch.broadcast_shapes(left, right)
        except RuntimeError:
            continue
        for a, b in itertools.product(layouts(left), layouts(right)):
            wanted, made = torch.add(a, b), rule(a, b, [])
            seen = (made.shape, made.stride(), made.dtype)
            assert seen == (wanted.shape, wanted.stride(), wanted.dtype), (
                a.shape,
                a.stride(),
                b.shape,
                b.stride(),
            )
            compared += 1
    assert compared == 2148


DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
]
DTYPES += [torch.float64, torch.complex64]


def test_broadcast_promotes_as_torch_does():
    rule = compile_rule("broadcast(a, b)", schema())
    for (left, right), (n, m) in itertools.product(
        itertools.product(DTYPES, DTYPES), [((2,), (2,)), ((2,), ())]
    ):
        a, b = torch.empty(n, dtype=left), torch.empty(m, dtype=right)
        assert rule(a, b, []).dtype == torch.result_type(a, b), (left, right, n, m)


def test_broadcast_of_shapes_that_do_not_fit_is_an_error():
    with pytest.raises(RuntimeError, match=r"[Ss]hape mismatch|broadcast"):
        evaluate("broadcast(a, b)", torch.empty(2), torch.empty(3), [])


def test_sizes_stay_symbolic():
    environment = ShapeEnv()
    real = torch.empty(12, 7)
    with FakeTensorMode(shape_env=environment) as mode:
        a = mode.from_tensor(real, static_shapes=False)
        made = evaluate(
            "f32[a.shape[0] * 2, ceil_div(a.shape[1], 4), min(a.shape[0], 64), a.numel]", a, a, []
        )
    assert all(isinstance(size, torch.SymInt) for size in made.shape)
    assert not any("Eq" in str(guard.expr) for guard in environment.guards)


@pytest.mark.parametrize(
    ("rule", "at", "why"),
    [
        ("", 0, "the rule is empty"),
        ("like(a", 6, "'\\)' was expected"),
        ("like(a, b)", 8, "like\\(\\) takes one tensor"),
        ("f32[a.shape[0, 4]", 13, "']' was expected here, got ','"),
        ("f32[a.shape]", 11, "'\\[' was expected"),
        ("f32[2] $", 7, "the character '\\$' has no meaning"),
        ("f32[2] like(a)", 7, "',' or the end was expected"),
        ("f32[min(2)]", 4, "min\\(\\) takes at least 2"),
        ("f32[a.size]", 6, "not 'size'"),
        ("f32[*a.dtype]", 7, "only '.shape' can be spread"),
        ("like(a) @ b.shape", 12, "only '.device'"),
        ("f32[2,,3]", 6, "a size was expected"),
        ("f32[1 +]", 7, "a size was expected"),
        ("4[2]", 0, "a result was expected"),
        ("f32[2],", 7, "a result was expected"),
        ("float_of()[1]", 0, "float_of\\(\\) needs one operand"),
    ],
)
def test_syntax_faults_point_at_their_place(rule, at, why):
    with pytest.raises(RuleError, match=why) as caught:
        parse(rule)
    assert caught.value.why.splitlines()[1:] == [rule, " " * at + "^"]


@pytest.mark.parametrize(
    ("rule", "at", "why"),
    [
        ("f32[q]", 4, "no parameter 'q'"),
        ("f33[2]", 0, "no parameter 'f33'"),
        ("like(n)", 5, "'n' is of kind int"),
        ("f32[a]", 4, "'a' is of kind tensor"),
        ("broadcast(a, xs)", 13, "'xs' is of kind tensors"),
        ("f32[a[0]]", 4, "'a' is not a list"),
        ("f32[len(a)]", 8, "'a' is of kind tensor"),
        ("f32[*n]", 5, "'n' is of kind int"),
        ("n[2]", 0, "'n' is of kind int"),
        ("f32[2] @ n", 9, "'n' is of kind int"),
        ("float_of(n)[2]", 9, "'n' is of kind int"),
    ],
)
def test_a_rule_is_checked_against_the_schema(rule, at, why):
    with pytest.raises(RuleError, match=why) as caught:
        compile_rule(rule, schema())
    assert caught.value.why.splitlines()[-1] == " " * at + "^"


def test_the_number_of_results_is_checked():
    with pytest.raises(RuleError, match="2 results and the op has 1"):
        compile_rule("like(a), like(b)", schema())
    with pytest.raises(RuleError, match="0 results and the op has 1"):
        compile_rule("none", schema())


def test_a_rule_without_a_tensor_needs_a_device():
    with pytest.raises(RuleError, match="no tensor that could give the device"):
        compile_rule("f32[n]", schema("Tensor", "SymInt n"))


def test_faults_of_a_call_name_the_rule():
    a, b, xs = tensors()
    with pytest.raises(RuleError, match=r"'b' has 1 dimensions and the rule asks for b.shape\[1\]"):
        evaluate("f32[b.shape[1]]", a, b, xs)
    with pytest.raises(RuleError, match="'c' was left out"):
        evaluate("like(c)", a, b, xs)
    with pytest.raises(RuleError, match="division by zero"):
        evaluate("f32[4 // (n - 3)]", a, b, xs)


def test_without_a_rule_only_what_is_written_is_known():
    a = torch.empty(2)
    assert default_fake(schema("()", "Tensor(a!) x"))(a) is None
    assert default_fake(schema("Tensor(a!)", "Tensor(a!) x"))(a) is a
    assert default_fake(schema("Tensor", "Tensor(a!) x")) is None
    assert default_fake(schema("Tensor", "Tensor x")) is None


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.bool, torch.int64, torch.float16, torch.complex64]
)
@pytest.mark.parametrize(("kind", "value"), [("SymInt", 3), ("float", 2.5), ("bool", True)])
def test_numbers_promote_as_in_torch(dtype, kind, value):
    schema = torch._C.parse_schema(f"f(Tensor x, {kind} value) -> Tensor")
    fake = compile_rule("like(x, dtype=promote(x, value))", schema)
    for x in (torch.ones(3, dtype=dtype), torch.ones((), dtype=dtype)):
        assert fake(x, value).dtype == (x + value).dtype
