# SPDX-License-Identifier: Apache-2.0
"""What can an op be compared with? A function by its name, or an expression over the names of the
op's parameters, in kiln.bench, `kiln bench` and `kiln tune` alike."""

from __future__ import annotations

import inspect
import subprocess

import pytest

import kiln
from kiln._against import parameters_of_op, peer_named


def parameters(text: str) -> inspect.Signature:
    """Of `def f(TEXT)`."""
    scope: dict = {}
    exec(f"def f({text}): pass", scope)
    return inspect.signature(scope["f"])


ROWS = parameters("x, dim=-1, *, alpha=1.0")


@pytest.fixture(scope="module")
def x():
    import torch

    return torch.arange(6, dtype=torch.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("torch.neg", lambda x: -x),
        ("torch.softmax(x, -1)", lambda x: x.softmax(-1)),
        ("torch.softmax(x, dim) * alpha", lambda x: x.softmax(-1)),
        ("F.gelu(x)", lambda x: __import__("torch").nn.functional.gelu(x)),
        ("lambda *a, **k: a[0] + 1", lambda x: x + 1),
        ("functools.partial(torch.softmax, dim=-1)", lambda x: x.softmax(-1)),
        ("sum(torch.neg(y) for y in [x, x])", lambda x: -2 * x),
        ("math.pi * x", lambda x: 3.141592653589793 * x),
    ],
)
def test_an_expression_is_called_as_the_op_is(x, text, wanted):
    import torch

    torch.testing.assert_close(peer_named(text, ROWS)(x), wanted(x))


def test_arguments_by_name_and_defaults(x):
    import torch

    function = peer_named("x.sum(dim) * alpha", ROWS)
    torch.testing.assert_close(function(x), x.sum(-1))
    torch.testing.assert_close(function(x, 0, alpha=2.0), 2 * x.sum(0))
    torch.testing.assert_close(function(dim=0, x=x), x.sum(0))


@pytest.mark.parametrize(
    ("text", "why", "fix"),
    [
        ("torch.softmax(x, -1", "not a Python expression", "torch.softmax(x, -1)"),
        ("y + 1", "'y' is not a parameter of the op, nor a module", "the parameters are x, dim"),
        ("alhpa * x", "'alhpa' is not a parameter", "did you mean alpha?"),
        ("1 + 2", "it uses none of the op's parameters, and int is not a function", "x, dim"),
        ("torch.no_such_thing", "no module has a function of this name", "as an expression"),
        ("x = 1", "not a Python expression", "torch.add"),
    ],
)
def test_what_is_wrong_with_a_text_is_said_before_anything_runs(text, why, fix):
    with pytest.raises(kiln.KilnError) as caught:
        peer_named(text, ROWS)
    assert caught.value.what == f"cannot compare with '{text}'"
    assert why in caught.value.why and fix in caught.value.fix


def test_what_an_expression_raises_has_its_text(x):
    with pytest.raises(kiln.KilnError, match="it raised AttributeError") as caught:
        peer_named("torch.no_such_function(x)", ROWS)(x)
    assert "its names are x, dim, alpha" in caught.value.fix


@pytest.fixture(scope="module")
def scaled(tmp_path_factory, command):
    """An op with a keyword-only parameter, in a folder of its own."""
    folder = tmp_path_factory.mktemp("scaled")
    (folder / "scaled.cu").write_text("""
#include <kiln/op.h>
#ifndef BLOCK
#define BLOCK 64
#endif
__global__ void scaled_kernel(kiln::View<const float, 1> x, float f, kiln::View<float, 1> out) {
  int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = f * x(i);
}
kiln::Tensor scaled(const kiln::Tensor& x, double factor) {
  kiln::Tensor out = kiln::empty_like(x);
  scaled_kernel<<<kiln::blocks_for(out.numel(), BLOCK), BLOCK, 0, kiln::stream(x)>>>(
      x.flat<const float>(), static_cast<float>(factor), out.flat<float>());
  return out;
}
KILN_OP(scaled, "x, *, factor=2.0").fake("like(x)");
""")
    return folder


def test_kiln_bench_of_python(scaled):
    import torch

    module = kiln.load(scaled / "scaled.cu")
    assert list(parameters_of_op(module.scaled, module.scaled.default).parameters) == [
        "x", "factor",
    ]  # fmt: skip
    x = torch.randn(64, device=kiln.device())
    with pytest.raises(kiln.Untrusted):
        kiln.bench(module.scaled, x, against="3 * x")
    result = kiln.bench(module.scaled, x, against={"times": "x * factor"}, factor=3.0)
    assert "times" in result.times_ns and "equal to times" in result.json["correct"]


@pytest.mark.long
def test_the_commands_take_it_too(command, scaled, tmp_path):
    def run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [command, *words], cwd=scaled, capture_output=True, text=True, timeout=300
        )

    done = run("bench", "scaled.cu", "scaled", "randn:f32:64", "--quick", "--against", "x * factor")
    assert done.returncode == 0, done.stderr
    assert "equal to x * factor" in done.stdout
    wrong = run("bench", "scaled.cu", "scaled", "randn:f32:64", "--quick", "--against", "y * 2")
    assert wrong.returncode != 0
    assert "error: cannot compare with 'y * 2'" in wrong.stderr
    assert "fix: the parameters are x, factor" in wrong.stderr
    tuned = run("tune", "scaled.cu", "scaled", "randn:f32:64", "--vary", "BLOCK=32,64",
                "--vary", "BLOKC=1,2", "--against", "x * factor", "--limit", "300")  # fmt: skip
    assert tuned.returncode == 0, tuned.stderr
    assert "no file that is compiled mentions BLOKC" in tuned.stderr
    assert "4 checked" in tuned.stdout
    table = tuned.stdout[tuned.stdout.index("registers") :].splitlines()
    assert table[0].split() == [
        "registers", "shared", "spilled", "blocks", "occupancy", "outcome", "defines",
    ]  # fmt: skip
    assert all("checked" in row and "BLOCK=" in row for row in table[1:5])
    wrong = run(
        "tune",
        "scaled.cu",
        "scaled",
        "randn:f32:64",
        "--vary",
        "BLOCK=32",
        "--against",
        "x x",
        "--limit",
        "300",
    )
    assert wrong.returncode == 2 and "not a Python expression" in wrong.stderr
