# SPDX-License-Identifier: Apache-2.0
"""Does Ctrl-C stop a kernel that would never end?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from conftest import STAGE

PROGRAM = """
import sys, kiln, torch
wait_for_ = kiln.load(sys.argv[1]).wait_for_
flag = torch.zeros(1)
print("started", flush=True)
try:
    wait_for_(flag)
except KeyboardInterrupt:
    print("interrupted", flush=True)
flag.fill_(1)
wait_for_(flag)
print("the next call ends", flush=True)
"""


def start(arguments: list[str]) -> subprocess.Popen[str]:
    paths = [str(STAGE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        arguments,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "KILN_DEVICE": "engine"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where the tests were started in the background, SIGINT is ignored, and children inherit
        # that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def interrupt(process: subprocess.Popen[str], number: int = signal.SIGINT) -> tuple[str, str]:
    """A kernel must be running by then; one that has not begun yet ends as well."""
    time.sleep(1.5)
    process.send_signal(number)
    try:
        return process.communicate(timeout=120)
    finally:
        process.kill()


def test_python_raises_keyboard_interrupt_from_the_call(command, sources):
    process = start([sys.executable, "-c", PROGRAM, str(sources / "endless.cu")])
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n", process.communicate()[1]
    out, err = interrupt(process)
    assert out == "interrupted\nthe next call ends\n", err
    assert process.returncode == 0


def test_sigterm_ends_python(command, sources):
    process = start([sys.executable, "-c", PROGRAM, str(sources / "endless.cu")])
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n", process.communicate()[1]
    interrupt(process, signal.SIGTERM)
    assert process.returncode == -signal.SIGTERM


def test_kiln_call_ends(command, sources):
    source = str(sources / "endless.cu")
    subprocess.run([str(command), "build", source], check=True, capture_output=True)
    process = start([str(command), "call", source, "wait_for_", "zeros:f32:1"])
    interrupt(process)
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
