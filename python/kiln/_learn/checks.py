# SPDX-License-Identifier: Apache-2.0
"""Is an exercise done? Each check runs commands of kiln on the file, as the learner could, and says
what is still missing."""

from __future__ import annotations

import array
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Optional

from ..command import PACKAGE, checked_command
from ..errors import SetupError
from ..lanes import Trace, read

# Of one command, in seconds: an endless loop must not hang the learner's terminal.
LIMIT_S: ContextVar[float] = ContextVar("limit_s", default=120)


class NotYet(Exception):
    """What is missing, in words for the learner."""


def kiln(*words: object) -> str:
    """What `kiln WORDS` printed; NotYet with its message if it failed."""
    done = _run([str(checked_command()), *map(str, words), "-q"], shown(words))
    if done.returncode != 0:
        raise NotYet(f"{(done.stderr.strip() or done.stdout.strip())}\nfrom: {shown(words)}")
    return done.stdout


def _run(
    line: Sequence[str], name: str, env: Optional[Mapping[str, str]] = None
) -> subprocess.CompletedProcess[str]:
    limit_s = LIMIT_S.get()
    try:
        return subprocess.run(
            line, capture_output=True, text=True, timeout=limit_s, check=False, env=env
        )
    except subprocess.TimeoutExpired:
        raise NotYet(
            f"this did not finish in {limit_s:g} s (--limit): look for an endless loop\n  {name}"
        ) from None


def shown(words: Sequence[object]) -> str:
    """The command as the learner would type it."""
    here = Path.cwd()
    return "kiln " + " ".join(
        str(word.relative_to(here) if isinstance(word, Path) and here in word.parents else word)
        for word in words
    )


def clean(path: Path, *words: object) -> None:
    """No finding of kiln sanitize."""
    name = shown(["sanitize", path, *words])
    done = _run([str(checked_command()), "sanitize", str(path), *map(str, words)], name)
    if done.returncode != 0:
        raise NotYet(f"{done.stdout.strip() or done.stderr.strip()}\nfrom: {name}")


def traced(path: Path, *words: object) -> Trace:
    with tempfile.TemporaryDirectory(prefix="kiln-learn-") as folder:
        trace = Path(folder) / "trace.jsonl"
        kiln("call", path, *words, "--print", 0, "--accesses", trace)
        return read(trace)


def gives(path: Path, words: Sequence[object], expected: Sequence[float], kind: str, shape: str,
          *options: object) -> None:  # fmt: skip
    """The op's result is `expected`."""
    with tempfile.TemporaryDirectory(prefix="kiln-learn-") as folder:
        file = Path(folder) / "expected.npy"
        file.write_bytes(npy(expected, kind, shape))
        kiln("call", path, *words, "--print", 0, "--expect", file, *options)


def npy(values: Sequence[float], kind: str, shape: str) -> bytes:
    """A .npy file of f32 or i32, version 1.0: a magic number, the length of a header, the header,
    the values."""
    sizes = "".join(f"{size}, " for size in shape.split("x"))
    code = {"f32": ("<f4", "f"), "i32": ("<i4", "i")}[kind]
    header = f"{{'descr': '{code[0]}', 'fortran_order': False, 'shape': ({sizes}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    return head + array.array(code[1], values).tobytes()


def grid(path: Path) -> None:
    kiln("call", path, "add_one", "zeros:f32:1000", "--print", 0, "--expect", "ones:f32:1000")
    clean(path, "add_one", "zeros:f32:1000")


class _Device:
    """A device whose clock cannot be fooled: a launch costs the host 1 ms, the work of a call 50 ms
    of the device, that of the first call 2 s. Work from before is still in the queue."""

    def __init__(self) -> None:
        self.now, self.done_at, self.calls = 0.0, 7.0, 0

    def launch(self) -> None:
        self.now += 0.001
        self.done_at = max(self.done_at, self.now) + (0.05 if self.calls else 2.0)
        self.calls += 1

    def synchronize(self) -> None:
        self.now = max(self.now, self.done_at)

    def clock(self) -> float:
        return self.now


def timer(path: Path) -> None:
    spec = importlib.util.spec_from_file_location("timer_exercise", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        seen = [module.seconds_per_call(_Device(), calls) for calls in (10, 100)]
    except Exception as error:  # noqa: BLE001  whatever the learner's code raises
        raise NotYet(f"seconds_per_call raised {type(error).__name__}: {error}") from None
    for calls, one in zip((10, 100), seen):
        if not isinstance(one, float) or abs(one - 0.05) > 0.002:
            said = f"{one * 1e3:.3g} ms" if isinstance(one, float) else repr(one)
            raise NotYet(f"a call takes 50 ms; for {calls} calls the function says {said}")


def fused(path: Path) -> None:
    words = ("length", "full=3:f32:1024", "full=4:f32:1024")
    kiln("call", path, *words, "--print", 0, "--expect", "full=5:f32:1024")
    trace = traced(path, *words)
    launches = len({one.launch for one in trace})
    stores = sum(one.kind == "store" for one in trace)
    loads = sum(one.kind == "load" for one in trace)
    if launches != 1 or stores > 32 or loads > 64:
        raise NotYet(
            f"{loads} warp loads and {stores} stores in {launches} launches; one launch needs 64 "
            "and 32"
        )


def scale(path: Path) -> None:
    kiln("call", path, "scale", "full=3:f32:100", "--print", 0, "--expect", "full=6:f32:100")
    kiln("call", path, "scale", "full=3:f32:100", "by=0.5", "--print", 0,
         "--expect", "full=1.5:f32:100")  # fmt: skip


def coalesce(path: Path) -> None:
    height, width = 64, 96
    rows = [float(column) for _ in range(height) for column in range(width)]
    words = ("add_row", f"zeros:f32:{height}x{width}", f"arange:f32:{width}")
    gives(path, words, rows, "f32", f"{height}x{width}")
    wasted = [
        f"line {row['line']}: {row['units']} sectors, {row['needed']} are needed ({row['kind']})"
        for row in traced(path, *words).rows()
        if row["units"] > row["needed"]
    ]
    if wasted:
        raise NotYet("\n".join(wasted))


def vector(path: Path) -> None:
    words = ("copy", "arange:f32:4096")
    kiln("call", path, *words, "--print", 0, "--expect", "arange:f32:4096")
    narrow = {(one.line, one.kind, one.bytes) for one in traced(path, *words) if one.bytes < 16}
    if narrow:
        raise NotYet(
            "\n".join(
                f"line {line}: a {kind} of {size} bytes" for line, kind, size in sorted(narrow)
            )
        )


def banks(path: Path) -> None:
    side, words = 64, ("transpose", "arange:f32:64x64")
    turned = [float(column * side + row) for row in range(side) for column in range(side)]
    gives(path, words, turned, "f32", f"{side}x{side}")
    rows = [row for row in traced(path, *words).rows() if row["space"] == "shared"]
    if not rows:
        raise NotYet("the kernel uses no shared memory")
    slow = [
        f"line {row['line']}: {row['units']} turns for {row['accesses']} accesses ({row['kind']})"
        for row in rows
        if row["units"] > row["needed"]
    ]
    if slow:
        raise NotYet("\n".join(slow))


def barrier(path: Path) -> None:
    for count in (100, 128, 1):
        gives(path, ("reverse", f"arange:f32:{count}"), [float(n) for n in reversed(range(count))],
              "f32", str(count))  # fmt: skip
    clean(path, "reverse", "randn:f32:100")


def race(path: Path) -> None:
    gives(path, ("histogram", "full=3:i32:300"), [0, 0, 0, 300, 0, 0, 0, 0, 0, 0], "i32", "10")
    clean(path, "histogram", "randint=0,10:i32:300")


def double(path: Path) -> None:
    kiln("call", path, "line", "full=2:f32:100", "--print", 0, "--expect", "full=5.2:f32:100")
    doubles = [
        text.strip() for text in kiln("inspect", path, "--ptx").splitlines() if ".f64" in text
    ]
    if doubles:
        raise NotYet("the PTX has double arithmetic:\n" + "\n".join(doubles))


def define(path: Path) -> None:
    for block in (64, 256, 1024):
        count = 2048 // block
        expected = [float(block * block * k + block * (block - 1) // 2) for k in range(count)]
        gives(path, ("sum", "arange:f32:2048"), expected, "f32", str(count), "-D", f"BLOCK={block}")
        clean(path, "sum", "arange:f32:2048", "-D", f"BLOCK={block}")


_FAKE = """
import json, sys, torch, kiln
from torch._subclasses.fake_tensor import FakeTensorMode
pairs = kiln.load(sys.argv[1]).pairs
real = pairs(torch.arange(5.0, device=kiln.device()))
with FakeTensorMode():
    fake = pairs(torch.empty(5, device=real.device))
print(json.dumps([list(real.shape), list(fake.shape), str(real.dtype), str(fake.dtype)]))
"""


def fake(path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        raise SetupError(
            "cannot check this exercise",
            f"{sys.executable} has no torch",
            "pip install torch; KILN_PYTHON names another Python",
        )
    package = str(PACKAGE.parent)
    search = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    done = _run(
        [sys.executable, "-c", _FAKE, str(path)], "a call with a fake tensor",
        {**os.environ, "PYTHONPATH": os.pathsep.join(search)},
    )  # fmt: skip
    if done.returncode != 0:
        raise NotYet("torch says: " + "\n".join(done.stderr.strip().splitlines()[-3:]))
    real, ruled, dtype, ruled_dtype = json.loads(done.stdout.splitlines()[-1])
    if (real, dtype) != (ruled, ruled_dtype):
        raise NotYet(f"the result is {dtype} {real}, the rule says {ruled_dtype} {ruled}")
