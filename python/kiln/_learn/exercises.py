# SPDX-License-Identifier: Apache-2.0
"""Which exercises are there, what is asked, and what helps?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from . import checks

FOLDER = Path(__file__).parent / "files"


@dataclass(frozen=True)
class Exercise:
    file: str
    lesson: int
    goal: str
    check: Callable[[Path], None]  # raises NotYet
    hints: tuple[str, ...]

    @property
    def name(self) -> str:
        return Path(self.file).stem


EXERCISES = (
    Exercise(
        "grid.cu", 1, "every element is reached, and nothing past the end", checks.grid,
        ("1,000 / 256 is 3 in C++. How many threads is that?",
         "Round up: kiln::blocks_for(n, 256). Which threads have nothing to do then?"),
    ),
    Exercise(
        "timer.py", 2, "the time of a call, not of its launch", checks.timer,
        ("When does launch() return, and when is the work done?",
         "Warm up and synchronize(): before the clock starts, nothing may be in the queue, and "
         "before it stops, everything must be done."),
    ),
    Exercise(
        "fused.cu", 3, "three kernels become one", checks.fused,
        ("A thread can keep x[i] * x[i] in a variable: that is a register.",
         "The kernel gets x, y and out. No other tensor is needed."),
    ),
    Exercise(
        "scale.cu", 4, "an op with a number and a default", checks.scale,
        ("A number is a double parameter of the C++ function.",
         'The text of KILN_OP names parameters and defaults: "x, value=1.0".'),
    ),
    Exercise(
        "coalesce.cu", 5, "no sector more than needed", checks.coalesce,
        ("Neighbouring lanes should touch neighbouring addresses. Which index is the inner one "
         "of a row-major matrix?",
         "Let columns follow threadIdx.x, and rows blockIdx.y; the grid changes with them."),
    ),
    Exercise(
        "vector.cu", 5, "16 bytes per lane", checks.vector,
        ("float4 is a struct of four floats that loads and stores as one.",
         "reinterpret_cast<const float4*>(...) on the host; n / 4 elements."),
    ),
    Exercise(
        "banks.cu", 6, "each access of shared memory takes one turn", checks.banks,
        ("Lane k reads tile[k][...]: how far apart are two lanes, in words? Modulo 32?",
         "If a row had another length, a column would be in different banks."),
    ),
    Exercise(
        "barrier.cu", 6, "all threads reach the barrier", checks.barrier,
        ("kiln sanitize barrier.cu reverse randn:f32:100 shows who waits and who does not.",
         "Two ifs with the barrier between them."),
    ),
    Exercise(
        "race.cu", 7, "no count is lost", checks.race,
        ("kiln sanitize race.cu histogram randint=0,10:i32:256 names the line.",
         "Reading, adding and writing must be one step: look for atomicAdd."),
    ),
    Exercise(
        "double.cu", 8, "no double in the PTX", checks.double,
        ("kiln inspect double.cu --ptx: which instructions have f64 in their name?",
         "What type has the literal 1.0 in C++? And 1.0f?"),
    ),
    Exercise(
        "define.cu", 9, "right for every BLOCK", checks.define,
        ("Which numbers in the kernel are BLOCK in disguise?",
         "One of them is BLOCK, the other BLOCK / 2."),
    ),
    Exercise(
        "fake.cu", 10, "torch.compile knows the result's shape", checks.fake,
        ('A fake rule follows KILN_OP: KILN_OP(f, "x").fake("...").',
         'A rule is a dtype and a shape: "f32[x.shape[0], 7]" would have seven columns.'),
    ),
)  # fmt: skip


def named(name: str) -> Optional[Exercise]:
    """By name or file."""
    stem = Path(name).stem
    return next((one for one in EXERCISES if one.name == stem), None)
