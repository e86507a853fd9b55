# SPDX-License-Identifier: Apache-2.0
"""Are the mistakes that people make in ops found by kiln.test, kiln call or kiln.load, and named
with their cause? tests/sanitize/seeded.cu has them, and says which words must be in the message."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import kiln
from kiln.errors import Mismatch

pytestmark = [
    pytest.mark.one_in(2),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="the checkers watch the engine"),
]

SOURCE = Path(__file__).parents[1] / "sanitize" / "seeded.cu"
TEXT = SOURCE.read_text()
TESTS = re.findall(r"^// test (\w+)(\(.*\)) = (.*) \| (.*)$", TEXT, re.MULTILINE)
CALLS = re.findall(r"^// call (?:(\w+=\w+) )?(\w+) (.*) \| (.*)$", TEXT, re.MULTILINE)


def place_of(op: str) -> str:
    """The line of the mistake; empty: the message has no line, as for a launch that is refused."""
    for number, line in enumerate(TEXT.splitlines(), 1):
        if line.endswith(f"// here #{op}"):
            return f"{SOURCE.name}:{number}"
    return ""


@pytest.fixture(scope="module")
def ops() -> Any:
    return kiln.load(SOURCE)


def message_of(op: Any, arguments: tuple[Any, ...], reference: Any) -> str:
    with pytest.raises((Mismatch, RuntimeError)) as failed:
        kiln.test(op, *arguments, reference=reference)
    return str(failed.value)


@pytest.mark.parametrize(("op", "arguments", "right", "words"), TESTS)
def test_kiln_test_names_the_cause(
    ops: Any, op: str, arguments: str, right: str, words: str
) -> None:
    torch.manual_seed(0)
    given = eval(arguments[:-1] + ",)", {"torch": torch})

    def reference(x: torch.Tensor) -> torch.Tensor:
        return eval(right, {"torch": torch, "x": x})

    message = message_of(getattr(ops, op), given, reference)
    assert words in message
    assert place_of(op) in message


@pytest.mark.parametrize(("option", "op", "arguments", "words"), CALLS)
def test_kiln_call_names_the_cause(
    ops: Any, command: Path, option: str, op: str, arguments: str, words: str
) -> None:
    env = dict(os.environ, **dict([option.split("=")] if option else []))
    line = [command, "call", ops.__file__, op, *arguments.split()]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 1
    assert words in done.stderr
    assert place_of(op) in done.stderr


def test_a_wrong_backward(ops: Any) -> None:
    @ops.doubling.backward
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return 3 * grad

    x = torch.randn(100, requires_grad=True)
    message = message_of(ops.doubling, (x,), lambda x: 2 * x)
    assert "gradient" in message and "'x'" in message


def test_a_wrong_fake_rule_is_an_error_of_the_load(tmp_path: Path) -> None:
    (tmp_path / "bad_rule.cu").write_text(
        "#include <kiln/op.h>\n"
        "kiln::Tensor same(const kiln::Tensor& x) { return kiln::empty_like(x); }\n"
        'KILN_OP(same, "x").fake("lik(x)");\n'
    )
    with pytest.raises(
        kiln.KilnError, match=r"bad_rule\.cu\(3\).*unknown word 'lik' in the fake rule"
    ):
        kiln.load(tmp_path / "bad_rule.cu")


def test_the_table_is_whole() -> None:
    """At least 32 different mistakes, and two more in Python above."""
    named = {row[0] for row in TESTS} | {row[1] for row in CALLS}
    assert len(named) >= 32
    # A line that a formatter broke in two would be left out.
    assert len(TESTS) + len(CALLS) == len(re.findall(r"^// (?:test|call) ", TEXT, re.MULTILINE))
