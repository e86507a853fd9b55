# SPDX-License-Identifier: Apache-2.0
"""Do steps that run beside others begin early, fail with their own log, and never outlive the
run?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import steps  # noqa: E402

WAIT = "while [ ! -e {} ]; do sleep 0.02; done"


def shell(name: str, script: str, limit_s: int = 300, **more) -> steps.Step:
    return steps.Step(name, ["sh", "-c", script], limit_s, **more)


def test_it_begins_early_and_is_waited_for_at_its_place(tmp_path: Path) -> None:
    done = steps.run_steps(
        [
            shell("first", "true"),
            shell("waits for the one beside", WAIT.format(tmp_path / "begun")),
            shell("tells it to go on", f"touch {tmp_path / 'on'}"),
            shell(
                "long",
                f"touch {tmp_path / 'begun'}; {WAIT.format(tmp_path / 'on')}; echo whole",
                beside="first",
            ),
        ],
        tmp_path / "logs",
    )
    assert [one.state for one in done] == ["passed"] * 4
    assert (tmp_path / "logs/long.log").read_text() == "whole\n"


SKIPS = "printf 'skipped: a check\\n  why: no strace\\n  fix: get it\\n'"


def test_a_check_that_lacks_a_tool_is_skipped_and_says_so(tmp_path: Path) -> None:
    done = steps.run_steps([shell("check", f"{SKIPS}; exit 77"), shell("other", "true")], tmp_path)
    assert [one.state for one in done] == ["skipped", "passed"]
    assert "a check: no strace; get it" in steps.describe(done[0])
    assert steps.close(done) == 0


def test_a_skipped_test_of_many_says_what_it_lacks(tmp_path: Path) -> None:
    cases = '<testcase name="a"/><testcase name="b" status="notrun"><skipped/>'
    cases += "<system-out>skipped: b\n  why: no lizard\n  fix: get it\n</system-out></testcase>"
    junit = tmp_path / "results.xml"
    write = f"printf '%s' '<testsuite>{cases}</testsuite>' >{junit}"
    (done,) = steps.run_steps([shell("ctest", write, junit=junit)], tmp_path)
    assert (done.state, done.passed, done.skipped) == ("passed", 1, 1)
    assert "b: no lizard; get it" in steps.describe(done)


def test_its_failure_is_told_at_its_place_with_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = steps.run_steps(
        [
            shell("first", "true"),
            shell("long", "echo the reason; exit 3", beside="first"),
            shell("needs it", "true", needs=["long"]),
        ],
        tmp_path,
    )
    assert [one.state for one in done] == ["passed", "failed", "failed"]
    told = capsys.readouterr().out
    assert (
        told.index("first")
        < told.index("the reason")
        < told.index("exit status 3")
        < told.index("needs 'long'")
    )
    assert steps.close(done) == 1


def test_it_says_what_a_step_cost_whoever_else_was_busy(tmp_path: Path) -> None:
    busy = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'"
    done = steps.run_steps([shell("busy", busy), shell("idle", "sleep 0.3")], tmp_path)
    assert done[0].cpu_seconds >= 0.3 > done[1].cpu_seconds
    assert f"{done[0].cpu_seconds:.1f} cpu" in steps.describe(done[0])


def test_without_the_step_before_it_runs_in_its_turn(tmp_path: Path) -> None:
    assert [
        one.state for one in steps.run_steps([shell("long", "true", beside="left out")], tmp_path)
    ] == ["passed"]


def test_a_limit_counts_from_its_place(tmp_path: Path) -> None:
    done = steps.run_steps(
        [shell("first", "true"), shell("long", "sleep 600", limit_s=1, beside="first")], tmp_path
    )
    assert done[1].state == "failed" and "limit of 1 s" in done[1].note


def test_nothing_outlives_a_run_that_is_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    start = steps.start

    def seen(step: steps.Step, log: Path):
        begun.append(start(step, log))
        if step.name == "second":
            raise KeyboardInterrupt
        return begun[-1]

    monkeypatch.setattr(steps, "start", seen)
    with pytest.raises(KeyboardInterrupt):
        steps.run_steps(
            [
                shell("first", "true"),
                shell("second", "true"),
                shell("long", "sleep 600", beside="first"),
            ],
            tmp_path,
        )
    begun[-1].wait()
    assert len(begun) == 3 and begun[1].returncode == -9


def test_the_time_before_the_steps_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert steps.close(steps.run_steps([shell("only", "true")], tmp_path), before_s=300.0) == 0
    assert "1 passed, 0 failed, 0 skipped in 5 min " in capsys.readouterr().out
