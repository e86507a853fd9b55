#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do Ctrl-C and SIGTERM end a program whose kernel never does?

test_interrupt.py KILN
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ENDLESS = r"""
#include <cstdio>
__global__ void endless(volatile int* word) {
  while (*word == 0) {
  }
}
int main() {
  int* word;
  cudaMalloc(&word, 4);
  cudaMemset(word, 0, 4);
  std::puts("started");
  std::fflush(stdout);
  endless<<<4, 64>>>(word);
  return cudaDeviceSynchronize();
}
"""
LIMIT_S = 120


def as_a_terminal_starts_it() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a test may have been started with it ignored


def ends_by(kiln: str, number: signal.Signals) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "endless.cu"
        source.write_text(ENDLESS)
        words = [kiln, "run", source, "--arch", "compute_90", "--build-dir", Path(folder) / "build"]
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=as_a_terminal_starts_it,
        )
        assert process.stdout
        if (line := process.stdout.readline()) != "started\n":
            print(f"the program did not start: {line}")
            return False
        time.sleep(1)  # long enough to be in the kernel
        if process.poll() is not None:
            print(f"the program ended by itself with {process.returncode}")
            return False
        process.send_signal(number)
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            print(f"the program runs {LIMIT_S} s after {number.name}")
            return False
    if code != -number:
        print(f"the program ended with {code}, not with {-number}")
    return code == -number


def main(kiln: str) -> int:
    return not all([ends_by(kiln, signal.SIGINT), ends_by(kiln, signal.SIGTERM)])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
