# SPDX-License-Identifier: Apache-2.0
"""Do torch's transforms treat an op as they treat one of torch.library.custom_op? Each kind of op
goes through each transform three times: in plain torch (the truth), as a custom op, as an op of
kiln. What the custom op does rightly kiln does too. A wrong value is never given: where torch gives
one (zeros of forward mode, say), kiln raises."""

from __future__ import annotations

import re
import warnings

import kiln
import pytest
import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

pytestmark = pytest.mark.one_in(3)

func = torch.func
VERSION = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2]))
THIRD = 1 / 3


def custom(mutates=()):
    return lambda function: torch.library.custom_op(
        f"truth::{function.__name__}", function, mutates_args=mutates
    )


@custom()
def functional(x: torch.Tensor, y: torch.Tensor, factor: float = 0.1) -> torch.Tensor:
    return x * x * factor + y


@custom()
def without_fake(x: torch.Tensor, y: torch.Tensor, factor: float = 0.1) -> torch.Tensor:
    return x * x * factor + y


@custom(("x",))
def in_place(x: torch.Tensor, factor: float) -> None:
    x.copy_(x * x * factor)


@custom(("out",))
def to_argument(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x * x * THIRD)


@custom()
def of_list(xs: list[torch.Tensor]) -> torch.Tensor:
    return xs[0] * xs[0] * 0.1 + xs[1]


@custom()
def optional(x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
    return x * x * 0.1 + (0 if y is None else y)


@custom()
def two_results(x: torch.Tensor, *, factor: float = 0.1) -> tuple[torch.Tensor, torch.Tensor]:
    return x * x * factor, x * x / factor + x * x * factor


CUSTOM = {
    name: value
    for name, value in globals().items()
    if isinstance(value, torch._library.custom_ops.CustomOpDef)
}
for name in ("functional", "of_list", "optional"):
    CUSTOM[name].register_fake(
        lambda x, *rest: torch.empty_like(x[0] if isinstance(x, (list, tuple)) else x)
    )
two_results.register_fake(lambda x, factor: (torch.empty_like(x), torch.empty_like(x)))


class Plain:
    """The same ops with torch's own derivatives."""

    functional = without_fake = staticmethod(lambda x, y, factor=0.1: x * x * factor + y)
    in_place = staticmethod(lambda x, factor: x.copy_(x.clone().square() * factor))
    to_argument = staticmethod(lambda x, out: out.copy_(x * x * THIRD))
    of_list = staticmethod(lambda xs: xs[0] * xs[0] * 0.1 + xs[1])
    optional = staticmethod(lambda x, y=None: x * x * 0.1 + (0 if y is None else y))
    two_results = staticmethod(
        lambda x, factor=0.1: (x * x * factor, x * x / factor + x * x * factor)
    )


def two(results):
    return results[0] * THIRD + results[1]


def on_copy(op, x):
    y = x * 1
    op(y, 0.1)
    return y


def to_new(op, x):
    out = torch.zeros_like(x)
    op(x, out)
    return out


# kind: (how it is called with one tensor, its backward with the argument of torch's setup_context)
KINDS = {
    "functional": lambda op, x: op(x, x * 3, THIRD),
    "without_fake": lambda op, x: op(x, x * 3, THIRD),
    "in_place": on_copy,
    "to_argument": to_new,
    "of_list": lambda op, x: op([x, x * 3]),
    "optional": lambda op, x: op(x) + op(x, x * 3),
    "two_results": lambda op, x: two(op(x, factor=0.7)),
}
if VERSION < (2, 10):
    del KINDS["of_list"]  # lists cross since torch 2.10


def save(ctx, inputs, output, keyword_only_inputs=None):
    first = inputs[0]
    ctx.save_for_backward(*(first[:1] if isinstance(first, (list, tuple)) else [first]))
    ctx.rest, ctx.keywords = inputs[1:], keyword_only_inputs


def backward_functional(ctx, grad):
    return grad * 2 * ctx.saved_tensors[0] * ctx.rest[1], grad, None


def backward_list(ctx, grad):
    return [grad * 0.2 * ctx.saved_tensors[0], grad]


def backward_optional(ctx, grad):
    return grad * 0.2 * ctx.saved_tensors[0], None if ctx.rest[0] is None else grad


def backward_two(ctx, first, second):
    factor = ctx.keywords["factor"]
    return 2 * ctx.saved_tensors[0] * (first * factor + second * (1 / factor + factor))


BACKWARD = {
    "functional": backward_functional,
    "without_fake": backward_functional,
    "of_list": backward_list,
    "optional": backward_optional,
    "two_results": backward_two,
}


class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class SeenFunctions(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Sub(torch.Tensor):
    pass


class Wrapped(torch.Tensor):
    """A wrapper subclass: its values are in another tensor."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(Wrapped, lambda one: one.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, Wrapped, function(*args, **kwargs))


def leaf(x):
    return x.clone().requires_grad_()


def scalar(f, x):
    """Each element counts, and the result itself is in the derivative."""
    return lambda x: (f(x) * f(x) * torch.arange(1.0, x.numel() + 1).reshape(x.shape)).sum()


def backward(f, x):
    x = leaf(x)
    scalar(f, x)(x).backward()
    return x.grad


def retained(f, x):
    x = leaf(x)
    result = scalar(f, x)(x)
    first = torch.autograd.grad(result, x, retain_graph=True)[0]
    return first + torch.autograd.grad(result, x)[0]


def twice(f, x):
    x = leaf(x)
    (first,) = torch.autograd.grad(scalar(f, x)(x), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0]


def dual(f, x):
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, x * 2))).tangent
        return torch.zeros_like(x) if tangent is None else tangent.clone()


def exported(f, x):
    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)

    return torch.export.export(Module(), (x,)).module()(x)


def checkpointed(f, x):
    return backward(lambda x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False), x)


def within(manager):
    def transform(f, x):
        with manager():
            return f(x)

    return transform


def compiled(f):
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend="aot_eager")


def faked(f, x):
    with torch._subclasses.FakeTensorMode() as mode:
        made = f(mode.from_tensor(x))
    return torch.tensor([*made.shape, *made.stride()])


TRANSFORMS = {
    "forward": lambda f, x: f(x),
    "backward": backward,
    "retain_graph": retained,
    "double backward": twice,
    "checkpoint": checkpointed,
    "no_grad": lambda f, x: torch.no_grad()(f)(leaf(x)),
    "inference_mode": within(torch.inference_mode),
    "autocast": within(lambda: torch.autocast("cpu", torch.bfloat16)),
    "dispatch mode": within(Seen),
    "function mode": within(SeenFunctions),
    "subclass": lambda f, x: f(x.as_subclass(Sub)).as_subclass(torch.Tensor),
    "wrapper subclass": lambda f, x: f(Wrapped(x)).inner,
    "fake": faked,
    "forward mode": dual,
    "grad": lambda f, x: func.grad(scalar(f, x))(x),
    "grad of grad": lambda f, x: func.grad(lambda x: func.grad(scalar(f, x))(x).sum())(x),
    "vjp": lambda f, x: func.vjp(f, x)[1](x)[0],
    "jvp": lambda f, x: func.jvp(f, (x,), (x,))[1],
    "linearize": lambda f, x: func.linearize(f, x)[1](x),
    "jacrev": lambda f, x: func.jacrev(f)(x),
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "hessian": lambda f, x: func.hessian(scalar(f, x))(x),
    "jacrev of grad": lambda f, x: func.jacrev(func.grad(scalar(f, x)))(x),
    "vmap": lambda f, x: func.vmap(f)(x),
    "vmap of vmap": lambda f, x: func.vmap(func.vmap(f))(x),
    "vmap of grad": lambda f, x: func.vmap(func.grad(lambda x: f(x).sum()))(x),
    "grad of vmap": lambda f, x: func.grad(lambda x: func.vmap(f)(x).square().sum())(x),
    "functionalize": lambda f, x: func.functionalize(f)(x),
    "functional.jacobian": torch.autograd.functional.jacobian,
    "compile": lambda f, x: compiled(f)(x),
    "compile and backward": lambda f, x: backward(compiled(f), x),
    "compile grad": lambda f, x: compiled(func.grad(lambda x: f(x).square().sum()))(x),
    "export": exported,
}


def outcome(transform, kind, op, x):
    """Values, or the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return transform(lambda x: KINDS[kind](op, x), x).detach()
        except Exception as error:
            return error


def same(seen, right):
    return isinstance(seen, torch.Tensor) and torch.allclose(seen, right, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def ops(command, sources):
    if kiln.device() == "cuda":
        pytest.skip("transforms treat tensors of both devices alike; the table is for the CPU")
    return kiln.load(sources / "transformed.cu")


def rows(ops, kind, transform, x):
    truth = outcome(TRANSFORMS[transform], kind, getattr(Plain, kind), x)
    theirs = outcome(TRANSFORMS[transform], kind, CUSTOM[kind], x)
    ours = outcome(TRANSFORMS[transform], kind, getattr(ops, kind), x)
    return truth, theirs, ours


def check(truth, theirs, ours):
    assert isinstance(truth, torch.Tensor), truth
    if isinstance(ours, torch.Tensor):
        assert same(ours, truth), f"wrong: {ours}, right: {truth}; a custom op: {theirs}"
    else:
        assert not same(theirs, truth), f"kiln raised {ours!r}, a custom op is right"
        assert not isinstance(ours, AssertionError), repr(ours)


X = torch.tensor([[0.1, THIRD, -1.7], [2.0**-30, 3.3, 1e3]], dtype=torch.float64)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_without_a_backward(ops, kind, transform):
    check(*rows(ops, kind, transform, X))


# After the tests above: a custom op keeps its backward.
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in BACKWARD])
def test_with_a_backward(ops, kind, transform):
    if not getattr(ops, kind)._kiln_backward:
        getattr(ops, kind).setup_context(save)
        getattr(ops, kind).backward(BACKWARD[kind])
        CUSTOM[kind].register_autograd(BACKWARD[kind], setup_context=save)
    truth, theirs, ours = rows(ops, kind, transform, X)
    check(truth, theirs, ours)
    if not (
        transform in FORWARD_MODE
        or (kind == "without_fake" and transform in OF_FAKES)
        or (kind == "of_list" and "vmap" in transform)  # torch maps no op of a list
    ):
        assert same(ours, truth), ours


FORWARD_MODE = ("forward mode", "jvp", "jacfwd", "hessian", "linearize")
OF_FAKES = ("compile", "compile and backward", "compile grad", "export", "fake")
NO_DERIVATIVE = "has no (backward|forward-mode derivative)|cannot be differentiated"


@pytest.mark.parametrize("kind", ["functional", "in_place", "to_argument"])
@pytest.mark.parametrize(
    "transform", ["backward", "grad", "vjp", "jacrev", "hessian", "jvp", "dual"]
)
def test_the_error_names_the_op_and_the_fix(command, sources, kind, transform):
    ops = kiln.load("refusing", [str(sources / "transformed.cu")])
    apply = dual if transform == "dual" else TRANSFORMS[transform]
    with pytest.raises(RuntimeError, match=rf"refusing::{kind} ({NO_DERIVATIVE})(.|\n)*fix: "):
        apply(lambda x: KINDS[kind](getattr(ops, kind), x), X)


def test_no_warning_of_torchs_beside_the_error(command, sources, python):
    script = f"""
import contextlib, io, kiln, torch
op = kiln.load({str(sources / "transformed.cu")!r}).functional
x = torch.ones(3, requires_grad=True)
told = io.StringIO()
with contextlib.redirect_stderr(told):
    try:
        op(x, x).sum().backward()
    except RuntimeError as error:
        print("has no backward" in str(error))
print(repr(told.getvalue()))
"""
    assert python(script, env={"KILN_DEVICE": "engine"}) == "True\n''\n"


def test_a_rule_for_vmap_is_the_ops_own(command, sources):
    ops = kiln.load("mapped", [str(sources / "transformed.cu")])
    assert same(func.vmap(ops.functional)(X, X), X * X * 0.1 + X)

    @torch.library.register_vmap("mapped::functional")
    def _(info, dims, x, y, factor=0.1):
        return torch.full_like(x, THIRD), 0

    assert same(func.vmap(ops.functional)(X, X), torch.full_like(X, THIRD))


def test_a_reload_keeps_the_rules(command, source):
    path = source("transformed.cu", "again.cu")
    ops = kiln.load(path)
    grad = func.grad(lambda x: ops.functional(x, x * 3, THIRD).sum())
    with pytest.raises(RuntimeError, match="has no backward"):
        grad(X)
    path.write_text(
        path.read_text() + "\n// edited: int unused;\nstatic int kUnused [[maybe_unused]];"
    )
    ops.reload()
    with pytest.raises(RuntimeError, match="has no backward"):
        grad(X)
    ops.functional.setup_context(save)
    ops.functional.backward(backward_functional)
    assert same(grad(X), X * 2 * THIRD + 3)
