# SPDX-License-Identifier: Apache-2.0
"""How does a long check run? As steps: each with a limit and a log of its own, counted, the next
one run whatever came before."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

TAIL_LINES = 80
# The exit status of a check that lacks a tool; it prints "skipped: what", "  why: ", "  fix: ".
SKIPPED = 77


@dataclass
class Step:
    name: str
    command: list[str]
    limit_s: int
    # where the command writes its results as JUnit XML; without it the step counts as one check
    junit: Path | None = None
    needs: list[str] = field(default_factory=list)  # names of steps that must have passed
    skip: str = ""  # why it cannot run here; empty: it can
    environment: dict[str, str] = field(default_factory=dict)
    # begins after the step of this name, at the lowest priority; its own place in the order is
    # where it is waited for
    beside: str = ""


@dataclass
class Outcome:
    step: Step
    state: str  # "passed", "failed", "skipped"
    seconds: float = 0.0
    # of its processes; on a busy machine the better measure of what it costs
    cpu_seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""


def read_junit(path: Path) -> tuple[int, int, int]:
    """Passed, failed, skipped."""
    counts = [0, 0, 0]
    for case in ElementTree.parse(path).iter("testcase"):
        if (
            case.find("failure") is not None
            or case.find("error") is not None
            or case.get("status") == "fail"
        ):
            counts[1] += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            counts[2] += 1
        else:
            counts[0] += 1
    return counts[0], counts[1], counts[2]


def lacking(printed: str) -> str:
    """What a check printed when it was skipped, as "what: why; fix"."""
    found: list[str] = []
    for line in printed.splitlines():
        text = line.strip()
        if text.startswith("skipped: "):
            found.append(text.removeprefix("skipped: "))
        elif found and text.startswith("why: "):
            found[-1] += ": " + text.removeprefix("why: ")
        elif found and text.startswith("fix: "):
            found[-1] += "; " + text.removeprefix("fix: ")
    return ", ".join(found)


def lacking_in(junit: Path) -> str:
    """The same of ctest's results, which keep what a skipped test printed."""
    cases = ElementTree.parse(junit).iter("testcase")
    printed = [
        case.findtext("system-out") or "" for case in cases if case.find("skipped") is not None
    ]
    return lacking("\n".join(printed))


def start(step: Step, log: Path) -> subprocess.Popen[bytes]:
    if step.junit:
        step.junit.unlink(missing_ok=True)
    with log.open("wb") as output:
        return subprocess.Popen(
            ["nice", "-n", "19", *step.command] if step.beside else step.command,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=os.environ | step.environment,
            start_new_session=True,
            # A shell that starts this in the background has Ctrl-C ignored, and every program
            # inherits it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


def finish(process: subprocess.Popen[bytes], limit_s: int) -> int | None:
    """The exit status, or None if it ran past its limit; then it is ended with all its children."""
    try:
        return process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # Also after Ctrl-C and after a normal end: nothing that the step started may outlive it.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_step(
    step: Step, log: Path, states: dict[str, str], begun: subprocess.Popen[bytes] | None = None
) -> Outcome:
    if step.skip:
        return Outcome(step, "skipped", note=step.skip)
    for need in step.needs:
        if states.get(need) != "passed":
            return Outcome(
                step,
                "failed" if states.get(need) == "failed" else "skipped",
                note=f"needs '{need}'",
            )
    at, cpu_at = time.monotonic(), cpu_of_children()
    status = finish(begun or start(step, log), step.limit_s)
    if status == SKIPPED and not step.junit:
        return Outcome(
            step, "skipped", time.monotonic() - at, note=lacking(log.read_text(errors="replace"))
        )
    outcome = Outcome(step, "passed" if status == 0 else "failed", time.monotonic() - at)
    outcome.cpu_seconds = cpu_of_children() - cpu_at
    if status is None:
        outcome.note = f"ran past its limit of {step.limit_s} s"
    elif status != 0:
        outcome.note = f"exit status {status}"
    if step.junit and step.junit.exists():
        outcome.passed, outcome.failed, outcome.skipped = read_junit(step.junit)
        outcome.note = ", ".join(filter(None, (outcome.note, lacking_in(step.junit))))
        # A runner that crashed, or found no test at all, has not passed.
        if outcome.passed + outcome.skipped == 0 and outcome.state == "passed":
            outcome.state, outcome.note = "failed", "no test ran"
        if outcome.state == "failed" and outcome.failed == 0:
            outcome.failed = 1
    else:
        outcome.passed, outcome.failed = (1, 0) if outcome.state == "passed" else (0, 1)
    return outcome


def describe(outcome: Outcome) -> str:
    counts = ""
    if outcome.step.junit and outcome.state != "skipped":
        counts = f"{outcome.passed} passed"
        counts += f", {outcome.failed} failed" if outcome.failed else ""
        counts += f", {outcome.skipped} skipped" if outcome.skipped else ""
    notes = ", ".join(text for text in (counts, outcome.note) if text)
    times = f"{outcome.seconds:7.1f} s {outcome.cpu_seconds:7.1f} cpu"
    return f"{outcome.state:8s}{times}  {outcome.step.name:34s}{notes}".rstrip()


def run_steps(steps: list[Step], logs: Path) -> list[Outcome]:
    logs.mkdir(parents=True, exist_ok=True)
    outcomes: list[Outcome] = []
    states: dict[str, str] = {}
    begun: dict[str, subprocess.Popen[bytes]] = {}
    log_of = {
        step.name: logs / (step.name.replace(" ", "-").replace("/", "-") + ".log") for step in steps
    }
    try:
        for step in steps:
            log = log_of[step.name]
            if sys.stdout.isatty():
                print(f"running           {step.name} ...", end="\r", flush=True)
            outcome = run_step(step, log, states, begun.get(step.name))
            states[step.name] = outcome.state
            outcomes.append(outcome)
            if outcome.state == "failed" and log.exists() and not outcome.note.startswith("needs"):
                tail = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
                print("\n".join(["", f"---- {step.name}: the end of {log}", *tail, "----"]))
            print(describe(outcome), flush=True)
            for later in steps:
                if later.beside == step.name and not later.skip:
                    begun[later.name] = start(later, log_of[later.name])
    finally:
        for process in begun.values():
            finish(process, 0)
    return outcomes


def close(outcomes: list[Outcome], before_s: float = 0) -> int:
    """Prints the closing line, with the seconds that went before the steps; the exit status for the
    whole."""
    passed = sum(o.passed for o in outcomes)
    failed = sum(o.failed for o in outcomes) + sum(
        1 for o in outcomes if o.state == "failed" and not o.failed
    )
    skipped = sum(o.skipped for o in outcomes) + sum(1 for o in outcomes if o.state == "skipped")
    seconds = before_s + sum(o.seconds for o in outcomes)
    print(
        f"{passed} passed, {failed} failed, {skipped} skipped in {int(seconds) // 60} min "
        f"{int(seconds) % 60} s"
    )
    return 1 if failed else 0
