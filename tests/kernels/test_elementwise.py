# SPDX-License-Identifier: Apache-2.0
"""Does kiln/elementwise.h keep its word to an author: three inputs, mixed sizes, outputs in place
and of any layout?"""

import pytest
import samples
import torch


def floats(*shape, device, seed=1, dtype=torch.float32):
    return samples.values(shape, dtype, device, seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_three_inputs(author, device, dtype):
    plain, rows, scalar, mixed = (
        [(700,)] * 3,
        [(9, 40), (40,), (9, 1)],
        [(), (33,), (2, 33)],
        [(3, 1, 40), (5, 1), (40,)],
    )
    for shapes in (plain, rows, scalar, mixed):
        a, b, c = (
            floats(*shape, device=device, seed=s, dtype=dtype) for s, shape in enumerate(shapes)
        )
        expected = a.double() * b.double() + c.double()
        got = author.multiply_add(a, b, c)
        assert got.dtype == dtype and got.shape == expected.shape
        loose = 4e-3 if dtype == torch.float16 else 2e-6
        assert torch.allclose(got.double(), expected, rtol=loose, atol=loose)


def test_operands_of_different_sizes(author, device):
    """8-byte, 4-byte and 1-byte operands in one loop, from any alignment; converted where they
    differ."""
    for cut in range(4):
        a = floats(5000 + cut, device=device, dtype=torch.float64)[cut:]
        b = floats(5001 + cut, device=device, seed=2)[1 + cut :]
        assert torch.equal(author.greater(a, b), a > b)
        assert torch.equal(
            author.greater(a[:4000].view(50, 80), b[:80]), a[:4000].view(50, 80) > b[:80]
        )
    half = floats(300, device=device, seed=3, dtype=torch.float16)
    assert torch.equal(author.greater(half, half.flip(0)), half.double() > half.flip(0).float())
    with pytest.raises(RuntimeError, match="an input of c64 cannot be read as f64"):
        author.greater(half.to(torch.complex64), half)


def test_in_place(author, device):
    for make in (
        lambda: floats(9000, device=device, dtype=torch.float16),
        lambda: floats(9001, device=device, dtype=torch.float16)[1:],
        lambda: floats(60, 90, device=device, dtype=torch.float16).t(),
        lambda: floats(60, 90, device=device, dtype=torch.float16)[3:50, 5:77],
        lambda: floats(400, device=device, dtype=torch.float16)[::3],
    ):
        x = make()
        expected = x * 2
        author.scale_(x, 2.0)
        assert torch.equal(x, expected)


def test_output_of_any_layout_and_nothing_beside_it(author, device):
    """The output is a view in a larger tensor: what lies around it keeps its value."""
    for op in (author.scale_into, author.scale_exact_into):
        for shape, cut in (
            ((20000,), (slice(1, -3),)),
            ((20000,), (slice(3, 11),)),
            ((50, 101), (slice(2, 40), slice(7, 96))),
            ((50, 96), (slice(None), slice(1, 90))),
            ((700,), (slice(0, 700, 3),)),
        ):
            whole = torch.full(shape, -1.0, device=device)
            out = whole[cut]
            plain = floats(*out.shape, device=device)
            turned = floats(*out.shape[::-1], device=device).permute(*reversed(range(out.ndim)))
            for x in (plain, turned, floats(device=device).expand(out.shape)):
                whole.fill_(-1.0)
                op(out, x, 0.5)
                expected = torch.full(shape, -1.0, device=device)
                expected[cut] = x * 0.5
                assert torch.equal(whole, expected), (shape, cut, x.stride())


def test_refusals(author, device):
    with pytest.raises(
        RuntimeError, match=r"an input of shape \[3\] does not broadcast to the output's \[2\]"
    ):
        author.scale_into(torch.ones(2, device=device), torch.ones(3, device=device), 1.0)
    with pytest.raises(RuntimeError, match="the output is f64"):
        author.scale_into(
            torch.ones(2, device=device, dtype=torch.float64), torch.ones(2, device=device), 1.0
        )
    with pytest.raises(RuntimeError, match="dtype differs from what the function takes"):
        author.scale_exact_into(
            torch.ones(2, device=device), torch.ones(2, device=device, dtype=torch.int32), 1.0
        )


def test_conversion_on_the_way_in(author, device):
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16):
        x = samples.values((1000,), dtype, device, 1)
        out = torch.empty(1000, device=device)
        author.scale_into(out, x, 0.5)
        assert torch.equal(out, x.float() * 0.5), dtype
