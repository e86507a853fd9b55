# SPDX-License-Identifier: Apache-2.0
"""Does kiln.bench refuse what is wrong, and is what it says of the rest complete? On the engine;
tests/gpu has the GPU."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import kiln
import pytest
import torch
from kiln._checks.arguments import Call
from kiln._checks.compare import Tolerance
from kiln._checks.timed import Checked

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "traps"))
from traps import TRAPS

pytestmark = [
    pytest.mark.one_in(2),
    pytest.mark.skipif(torch.cuda.is_available(), reason="times the engine; a GPU has tests/gpu"),
]
QUICK = {
    "min_warm_up_s": 0.002,
    "max_warm_up_s": 0.01,
    "min_time_s": 0.01,
    "max_time_s": 0.1,
    "side_s": 0.002,
}


def pair(elements: int = 1 << 14):
    return torch.randn(elements), torch.randn(elements)


def quick(function, *args, **more):
    return kiln.bench(function, *args, options={**QUICK, **more.pop("options", {})}, **more)


@pytest.mark.parametrize(
    "trap",
    [t for t in TRAPS if not t.gpu_only],
    ids=lambda t: f"{t.name}-{getattr(t.make, '__name__', '')}",
)
def test_traps(trap):
    x, y = pair(1 << 18 if trap.name == "allocates without end" else 1 << 14)
    against = trap.right if trap.options.get("check", True) else None
    if trap.refused:
        with pytest.raises(kiln.KilnError) as caught:
            quick(trap.make(), x, y, against=against, **trap.options)
        if trap.name != "allocates without end":
            assert caught.value.trap == trap.name
        else:
            assert "free memory fell at each check" in caught.value.why
    else:
        assert trap.name in quick(trap.make(), x, y, against=against, **trap.options).traps()


def test_an_address_that_was_freed_and_given_again_is_not_a_new_one():
    # An allocator gives back what was freed last: an op that knows addresses was then wrong "at
    # new addresses", in about one check of seven, and got the name of another trick.
    trap = next(t for t in TRAPS if t.name == "replay by pointer")
    for _ in range(60):
        call = Call.of(torch.add, pair(1 << 12), {})
        with pytest.raises(kiln.KilnError) as caught:
            Checked("add", trap.make(), call, torch.add, Tolerance(None, None)).run()
        assert caught.value.trap == trap.name


def test_an_op_that_writes_to_its_argument_and_skips_calls_is_called_that():
    calls = [0]

    def add_(a, b):
        calls[0] += 1
        return a.add_(b if calls[0] % 2 else 2 * b)  # wrong in every second call

    call = Call((*pair(1 << 12),), {}, frozenset({0}), None)
    with pytest.raises(kiln.KilnError) as caught:
        Checked("add_", add_, call, torch.Tensor.add_, Tolerance(None, None)).run()
    assert caught.value.trap == "batch-and-skip"


def test_engine_time_is_never_called_gpu_time(kinds):
    x, y = pair()
    result = quick(torch.add, x, y, against={"again": torch.add})
    assert result.json["time"] == "engine time"
    text = str(result)
    assert "CPU engine time (not GPU time)" in text
    assert "GB/s" not in text and "gb_per_s" not in result.json["contenders"][0]
    assert "engine time" in result.traps()


def test_dropped_precision_is_named_where_large_values_cancel():
    # 5 + -4.98 in bfloat16 is wrong by far more than 1 % of the result.
    x, y = pair()
    x[::64], y[::64] = 5.0103, -4.9871
    for name in ("bfloat16", "float16"):
        narrow = getattr(torch, name)
        with pytest.raises(kiln.Untrusted, match=f"as if computed in {name}") as caught:
            quick(lambda a, b, t=narrow: (a.to(t) + b.to(t)).float(), x, y, against=torch.add)
        assert caught.value.trap == "precision dropped"

    def fewer_bits(a, b):  # as tensor cores take their inputs
        return (a.view(torch.int32) & ~0x1FFF).view(torch.float32) + b

    with pytest.raises(kiln.Untrusted) as caught:
        quick(fewer_bits, x, y, against=torch.add)
    assert caught.value.trap == "precision dropped"
    with pytest.raises(kiln.Untrusted) as caught:
        quick(lambda a, b: a + 1.2 * b, x, y, against=torch.add)
    assert caught.value.trap == "wrong result"


def test_what_the_engine_ran_is_counted(source):
    add = kiln.load("counted", [source("plus.cu")])
    one = quick(add.plus, torch.randn(1000)).json["contenders"][0]
    assert one["counts"]["launches"] == len(one["kernels"]) == 1
    assert one["counts"]["threads"] >= 1000 and one["kernels"][0]["name"]
    assert 0 < one["kernel"]["median_ns"] < one["cold"]["greatest_ns"]
    result = quick(torch.add, *pair(), check=False)
    assert result.json["contenders"][0]["kernel"] is None and result.kernel_ns is None


def test_contenders_write_to_the_same_memory():
    places: dict[str, set[int]] = {"a": set(), "b": set()}

    def add_at(name):
        def add(a, b):
            out = a + b
            places[name].add(out.data_ptr())
            return out

        return add

    x, y = pair(1 << 18)
    first, second = add_at("a"), add_at("b")
    quick(first, x, y, against={"b": second}, check=False)
    assert places["a"] & places["b"]


def test_a_slow_peer_is_told_apart():
    x, y = pair(16)

    def sleeps(seconds):
        def add(a, b):
            time.sleep(seconds)
            return torch.add(a, b)

        return add

    # A loaded machine needs many rounds; an idle one is precise enough at once.
    options = {"max_time_s": 4, "precision_percent": 20}
    result = quick(sleeps(0.001), x, y, against={"longer": sleeps(0.005)}, options=options)
    assert result.verdict == "FASTER" and result.ratio < 0.8


def test_forms(tmp_path):
    x, y = pair()
    result = quick(torch.add, x, y, against="torch.add", name="mine")
    assert result.markdown().startswith("| benchmark |") and "| mine |" in result.markdown()
    assert result.csv().splitlines()[0].startswith("date,benchmark,contender")
    assert len(result.csv().splitlines()) == 3
    result.save(tmp_path / "history.jsonl")
    result.save(tmp_path / "history.jsonl")
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert len(lines) == 2
    value = json.loads(lines[0])
    assert value["machine"]["architecture"] and value["versions"]["torch"] == torch.__version__
    assert value["contenders"][0]["cold"]["samples_ns"]


def test_without_a_reference_it_says_so():
    result = quick(torch.add, *pair())
    assert "not checked" in result.traps()
    assert "not checked" in result.json["correct"]


def test_the_reference_of_an_op_is_used(kinds, source):
    add = kiln.load(source("plus.cu"))
    op = next(getattr(add, name) for name in dir(add) if isinstance(getattr(add, name), kiln.Op))
    op.reference(lambda *a: torch.zeros(1))
    with pytest.raises(kiln.Untrusted):
        quick(op, *(torch.randn(64) for _ in op.default._schema.arguments))


def test_an_op_in_place_is_timed():
    x, y = pair()
    result = quick(lambda a, b: a.add_(b), x, y, reference=lambda a, b: a.add_(b))
    assert result.median_ns > 0


def test_errors_of_the_call_come_through():
    def broken(a, b):
        raise ValueError("no luck today")

    with pytest.raises(ValueError, match="no luck today"):
        quick(broken, *pair(), check=False)


def test_an_error_in_the_middle():
    calls = [0]

    def fragile(a, b):
        calls[0] += 1
        if calls[0] > 30:
            raise RuntimeError("worn out")
        return a + b

    with pytest.raises(RuntimeError, match="worn out"):
        quick(fragile, *pair(), check=False)


def test_interrupt_ends_the_benchmark():
    calls = [0]

    def interrupted(a, b):
        calls[0] += 1
        if calls[0] > 30:
            raise KeyboardInterrupt
        return a + b

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        kiln.bench(interrupted, *pair(), check=False)
    assert time.monotonic() - began < 5


def test_unknown_names_are_told():
    with pytest.raises(kiln.KilnError, match="no option 'patience'"):
        kiln.bench(torch.add, *pair(), options={"patience": 1})
    with pytest.raises(kiln.KilnError, match=r"cannot compare with 'torch\.ad'"):
        kiln.bench(torch.add, *pair(), against="torch.ad")


def test_contenders_of_one_name_are_both_timed_and_compared():
    def add(a, b):
        return a + b

    right = add

    def add(a, b):  # noqa: F811  the same name on purpose
        return a - b

    x, y = pair()
    with pytest.raises(kiln.KilnError) as caught:
        quick(right, x, y, against=add)
    assert caught.value.trap == "wrong result"
    result = quick(right, x, y, against={"add": right})
    assert [one["name"] for one in result.json["contenders"]] == ["add", "add (2)"]
    assert "not checked" not in result.traps()
