#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the engine stay silent under ASan and UBSan while whole programs run on it?

sanitized.py KILN ENGINE     the command, and a libkiln_engine.so of the asan preset
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_S = 1200


def preloads() -> str:
    """The sanitizers' own libraries: the program that loads the engine was built without them."""
    names = ("libasan.so", "libubsan.so")
    found = [
        subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip()
        for name in names
    ]
    return ":".join(found)


def main(kiln: str, engine: str) -> int:
    # CUDA programs do not free all they have; and what the sanitizers find ends the program.
    options = {
        "KILN_ENGINE": engine,
        "KILN_DEVICE": "engine",
        "LD_PRELOAD": preloads(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    failed = 0
    for source in sorted(HERE.glob("*.cu")):
        with tempfile.TemporaryDirectory() as folder:
            words = [
                kiln,
                "build",
                "--program",
                source,
                "--arch",
                "compute_90",
                "--build-dir",
                folder,
            ]
            program = subprocess.check_output(words, text=True).strip().splitlines()[-1]
            done = subprocess.run(
                [program], env=os.environ | options, capture_output=True, text=True, timeout=LIMIT_S
            )
        print(
            f"{source.name}: {'ok' if done.returncode == 0 else f'ended with {done.returncode}'}",
            flush=True,
        )
        if done.returncode:
            failed += 1
            print((done.stdout + done.stderr)[-4000:])
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
