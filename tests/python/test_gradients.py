# SPDX-License-Identifier: Apache-2.0
"""Does kiln.test find a wrong backward, and pass a right one? And is a reference evaluated in f64
where it can be?"""

from __future__ import annotations

import kiln
import pytest
import torch
from kiln._checks.gradients import has_backward
from torch.nn import functional

pytestmark = pytest.mark.one_in(2)

ROOT_HALF, ROOT_TWO_PI = 0.5**0.5, (2 * torch.pi) ** 0.5


@pytest.fixture
def smooth(command, sources):
    """A module without backwards: a test gives its own, and the next finds none."""
    module = kiln.load(sources / "smooth.cu")
    yield module
    for name in dir(module):
        op = getattr(module, name)
        if isinstance(op, kiln.Op):
            forget(op)


def forget(op: kiln.Op) -> None:
    for overload in op._kiln_overloads():
        op._kiln_refuse_gradients(overload)
    op._kiln_backward.clear()
    op._kiln_setup.clear()
    op._kiln_reference = None


def gelu_gradient(x):
    return 0.5 * (1 + torch.erf(x * ROOT_HALF)) + x * torch.exp(-0.5 * x * x) / ROOT_TWO_PI


def with_gelu(smooth, gradient=gelu_gradient):
    smooth.gelu.reference(functional.gelu)

    @smooth.gelu.backward
    def _(ctx, grad):
        (x,) = ctx.saved_tensors
        wide = x if x.dtype == torch.float64 else x.float()
        return (grad * gradient(wide)).to(x.dtype)

    return smooth.gelu


def with_product(smooth, backward):
    smooth.product_and_sum.reference(lambda a, b: (a * b, a + b))
    smooth.product_and_sum.backward(backward)
    return smooth.product_and_sum


def right_product(ctx, of_product, of_sum):
    a, b = ctx.saved_tensors
    return of_product * b + of_sum, of_product * a + of_sum


@pytest.fixture
def x(kiln_device):
    return torch.randn(6, 10, generator=torch.Generator().manual_seed(3)).to(kiln_device)


def outcomes(report) -> dict[str, str]:
    return {row.variant: row.outcome for row in report.rows}


def checked(op, *args, **kwargs) -> kiln.Report:
    """Without opcheck, which takes most of the time."""
    return kiln.test(op, *args, opcheck=False, **kwargs)


def fails(op, *args, **kwargs) -> kiln.Mismatch:
    with pytest.raises(kiln.Mismatch) as caught:
        checked(op, *args, **kwargs)
    return caught.value


def test_a_right_backward_passes(smooth, x):
    report = kiln.test(with_gelu(smooth), x)
    seen = outcomes(report)
    assert (
        seen["gradient of x"]
        == seen["gradients of .sum()"]
        == seen["gradients, misaligned"]
        == "passed"
    )
    assert (
        seen["gradients, size 6 -> 0"]
        == seen["gradients, size 10 -> 9"]
        == seen["opcheck"]
        == "passed"
    )
    assert "gradients, strided" not in seen, (
        "the op refuses strided tensors, so there is nothing to differentiate"
    )
    assert "gradient of x" in str(report)


def test_a_wrong_backward_fails_and_names_the_input(smooth, x):
    error = fails(with_gelu(smooth, lambda x: gelu_gradient(x) * 1.01), x)
    assert "the gradient of 'x' differs at [0, 0]: got " in str(error) and ", expected " in str(
        error
    )
    assert error.report.outcome("as given") == "passed"
    assert error.report.outcome("gradients") == "FAILED"


def test_the_wrong_one_of_two_inputs_is_named(smooth, x):
    def swapped(ctx, of_product, of_sum):
        a, _ = ctx.saved_tensors
        return of_product * a + of_sum, of_product * a + of_sum

    text = str(fails(with_product(smooth, swapped), x, x.flip(0)))
    assert "the gradient of 'a' differs at [0, 0]" in text


def test_two_inputs_two_results_and_any_layout(smooth, x):
    seen = outcomes(checked(with_product(smooth, right_product), x, x.flip(0)))
    for name in (
        "gradient of a",
        "gradient of b",
        "gradients of result 0",
        "gradients of result 1",
    ):
        assert seen[name] == "passed"
    for layout in ("strided", "transposed", "misaligned", "expanded"):
        assert seen[f"gradients, {layout}"] == "passed"


def test_a_backward_that_forgets_one_result(smooth, x):
    def forgets(ctx, of_product, of_sum):
        a, b = ctx.saved_tensors
        return of_product * b, of_product * a

    assert "the gradient of 'a'" in str(fails(with_product(smooth, forgets), x, x.flip(0)))


def test_a_backward_that_is_right_for_contiguous_gradients_alone(smooth, x):
    def in_memory_order(ctx, of_product, of_sum):
        a, b = ctx.saved_tensors
        if of_product.is_contiguous():
            return of_product * b + of_sum, of_product * a + of_sum
        flat = torch.as_strided(of_product, (of_product.numel(),), (1,)).reshape(a.shape)
        return flat * b + of_sum, flat * a + of_sum

    error = fails(with_product(smooth, in_memory_order), x, x.flip(0))
    assert error.report.outcome("gradient of a") == "passed"
    assert error.report.outcome("gradients, transposed") == "FAILED"


def test_a_backward_that_gives_none(smooth, x):
    def half(ctx, of_product, of_sum):
        return of_product * ctx.saved_tensors[1] + of_sum, None

    text = str(fails(with_product(smooth, half), x, x.flip(0)))
    assert "the gradient of 'b' differs at [0, 0]: got None for the whole input, expected" in text
    # Not meant to have one: the reference says so.
    op = with_product(smooth, half)
    op.reference(lambda a, b: (a * b.detach(), a + b.detach()))
    assert checked(op, x, x.flip(0)).passed


def test_a_backward_that_raises(smooth, x):
    def raises(ctx, of_product, of_sum):
        raise ValueError("no backward today")

    assert "the backward raised ValueError: no backward today" in str(
        fails(with_product(smooth, raises), x, x)
    )


def test_a_backward_may_refuse_a_layout_and_may_not_fault(smooth, x):
    def picky(text):
        def backward(ctx, of_product, of_sum):
            if not of_product.is_contiguous():
                raise RuntimeError(text)
            return right_product(ctx, of_product, of_sum)

        return with_product(smooth, backward)

    op = picky(
        "gather: x must be contiguous"
    )  # another op of the library, which the backward calls
    assert checked(op, x, x).outcome("gradients of .sum()") == "refused"
    assert fails(op, x, x, refusals=False).report.outcome("gradients of .sum()") == "FAILED"
    error = fails(picky("error: a kernel wrote past the end"), x, x)
    assert error.report.outcome("gradients of .sum()") == "FAILED"


def test_integer_inputs_are_left_out(smooth, kiln_device):
    smooth.gather.reference(lambda x, index: x[index])

    @smooth.gather.backward
    def _(ctx, grad):
        x, index = ctx.saved_tensors
        return torch.zeros_like(x).index_add(0, index, grad), None

    x, index = torch.randn(7, device=kiln_device), torch.tensor([3, 0, 3, 5], device=kiln_device)
    seen = outcomes(checked(smooth.gather, x, index))
    assert seen["gradient of x"] == "passed" and "gradient of index" not in seen


def test_inputs_that_require_a_gradient_are_chosen(smooth, x):
    def half(ctx, of_product, of_sum):
        return of_product * ctx.saved_tensors[1] + of_sum, None

    seen = outcomes(checked(with_product(smooth, half), x.requires_grad_(), x.detach().flip(0)))
    assert seen["gradient of a"] == "passed" and "gradient of b" not in seen


def test_ops_without_a_backward_say_so(smooth, x):
    smooth.gelu.reference(functional.gelu)
    report = checked(smooth.gelu, x)
    assert [row.detail for row in report.rows if row.variant == "gradients"] == [
        "the op has no backward: @smooth.gelu.backward gives it one"
    ]
    smooth.scale_.reference(lambda x, factor: x.mul_(factor) and None)
    report = checked(smooth.scale_, x[0, :1].clone(), 2.0)
    assert "it writes to its arguments" in str(report)


def test_a_function_without_gradients_says_so(x):
    def doubled(x):
        return x.detach() * 2

    rows = {row.variant: row for row in checked(doubled, x, reference=lambda x: x * 2).rows}
    assert rows["gradients"].outcome == "skipped"
    assert "autograd.Function" in rows["gradients"].detail
    # Tensors that ask for gradients expect some.
    fails(doubled, x.clone().requires_grad_(), reference=lambda x: x * 2)


def test_an_autograd_function_without_gradients_fails(x):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x * 2
            ctx.mark_non_differentiable(out)
            return out

    error = fails(Doubled.apply, x, reference=lambda x: x * 2)
    assert "no result of the op requires a gradient" in str(error)


def test_gradients_can_be_left_out(smooth, x):
    report = checked(with_gelu(smooth, lambda x: x), x, gradients=False)
    assert not any("gradient" in row.variant for row in report.rows)


def test_without_a_reference_the_backward_is_checked_numerically(smooth, x):
    op = with_gelu(smooth)
    op._kiln_reference = None
    report = checked(op, x)
    assert outcomes(report)["as given"] == "skipped"
    assert [row for row in report.rows if row.variant == "gradients"][
        0
    ].detail == "gradcheck in f64 of x"
    with_gelu(smooth, lambda x: gelu_gradient(x) * 1.01)
    op._kiln_reference = None
    text = str(fails(op, x))
    assert "gradcheck in f64 (input 0 is 'x')" in text and "Jacobian mismatch" in text


def test_without_a_reference_and_without_f64_nothing_is_claimed(smooth, x):
    op = with_product(smooth, right_product)
    op._kiln_reference = None
    row = next(row for row in checked(op, x, x).rows if row.variant == "gradients")
    assert (
        row.outcome == "skipped"
        and "not checked: the op has no reference and takes no f64" in row.detail
    )


def test_several_dtypes(smooth, x):
    report = checked(with_gelu(smooth), x, dtypes=[torch.float32, torch.float64, "f16", "bfloat16"])
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        assert (
            report.outcome(f"{dtype}: as given")
            == report.outcome(f"{dtype}: gradient of x")
            == "passed"
        )
    with pytest.raises(kiln.KilnError, match="kiln.test has no dtype 'int32'"):
        checked(smooth.gelu, x, dtypes=["int32"])


def test_a_dtype_that_fails_does_not_hide_the_others(smooth, x):
    op = with_product(smooth, right_product)
    error = fails(op, x, x, dtypes=["f32", "f64"])
    assert error.report.outcome("float32: gradient of a") == "passed"
    assert error.report.outcome("float64: as given") == "FAILED"


@pytest.mark.parametrize("seed", range(24))
def test_a_right_gelu_passes_for_every_seed(smooth, kiln_device, seed):
    """In f32 the reference's own error was more than the tolerance for some."""
    smooth.gelu.reference(functional.gelu)
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(seed)).to(kiln_device)
    assert checked(smooth.gelu, x).passed


def test_a_reference_that_errs_in_f32_is_evaluated_in_f64(smooth, kiln_device):
    """(x + 1e4) - 1e4 loses four digits in f32 and none that matter in f64."""
    x = torch.randn(100, device=kiln_device)
    assert checked(smooth.gelu, x, reference=lambda x: functional.gelu((x + 1e4) - 1e4)).passed


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        (
            lambda x: functional.gelu(x.float()),
            "it computes in float32 whatever the dtype of its arguments",
        ),
        (lambda x: functional.gelu(x + 0 * torch.rand_like(x)), "it draws random numbers"),
        (
            lambda x: functional.linear(functional.gelu(x), torch.eye(8).to(x.device)),
            "it fails in f64: ",
        ),
    ],
)
def test_a_reference_that_takes_no_f64(smooth, kiln_device, reference, why):
    report = checked(smooth.gelu, torch.randn(4, 8, device=kiln_device), reference=reference)
    assert f"the reference was not evaluated in f64: {why}" in report.rows[0].detail


@pytest.mark.parametrize("key", ["AutogradCPU", "AutogradCUDA", "AutogradMeta"])
def test_a_backward_of_one_device_counts_for_that_device_alone(key):
    library = torch.library.Library(f"one_device_{key.lower()}", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, key)
    overload = getattr(torch.ops, f"one_device_{key.lower()}").twice.default
    devices = {"AutogradCPU": "cpu", "AutogradCUDA": "cuda", "AutogradMeta": "meta"}
    found = {name: has_backward(overload, torch.device(device)) for name, device in devices.items()}
    assert found == {name: name == key for name in devices}
