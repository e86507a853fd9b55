#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a build survive what happens to builds? Kills, interrupts, two at once, a full disk, files
that change meanwhile.

    survival.py KILN [--every N] [unittest's arguments]

nvcc is a script here that takes as long as a test wants; what it makes is compiled by the host
compiler.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import one_in

KILN = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path()

FAKE_NVCC = """#!/bin/sh
# Compiles as C++ with the flags that matter; leaves a mark; waits while the file `slow` is there.
case "$*" in *--dryrun*) echo "a compiler that tells nothing"; exit 1 ;; esac
echo run >> "$FAKE_LOG"
while [ -e "$FAKE_SLOW" ]; do sleep 0.02; done
words=""
for word in "$@"; do
  case "$previous" in -o|-MF|-MT) words="$words $word"; previous=""; continue ;; esac
  previous="$word"
  case "$word" in -o|-MF|-MT|-MD|-I*|-D*|/*.cu) words="$words $word" ;; esac
done
exec g++ -x c++ -c -fPIC $words
"""


class Build(unittest.TestCase):
    def setUp(self) -> None:
        self.temporary = tempfile.TemporaryDirectory(prefix="kiln-survival-")
        self.top = Path(self.temporary.name).resolve()
        self.source = self.write(
            "add.cu", '#include "value.h"\nextern "C" int value() { return VALUE; }\n'
        )
        self.write("value.h", "#define VALUE 1\n")
        nvcc = self.write("cuda/bin/nvcc", FAKE_NVCC)
        nvcc.chmod(0o755)
        self.slow = self.top / "slow"
        self.log = self.top / "log"
        # A package of its own: a test may change the archive.
        self.home = self.top / "home"
        (self.home / "lib").mkdir(parents=True)
        (self.home / "include").mkdir()
        shutil.copy(KILN.parents[1] / "lib/libkiln_runtime.a", self.home / "lib")
        ninja = Path(shutil.which("ninja") or "/usr/bin/ninja")
        self.environment = {
            "PATH": f"{ninja.parent}:/usr/local/bin:/usr/bin:/bin",
            "CUDA_HOME": str(self.top / "cuda"),
            "KILN_HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.top / "cache"),
            "FAKE_SLOW": str(self.slow),
            "FAKE_LOG": str(self.log),
        }

    def tearDown(self) -> None:
        self.slow.unlink(missing_ok=True)
        self.temporary.cleanup()

    def write(self, name: str, content: str) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        line = [str(KILN), "build", str(self.source), "--json", *arguments]
        return subprocess.Popen(
            line,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def build(self, *arguments: str) -> dict:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out)

    def error(self, *arguments: str) -> tuple[int, dict]:
        process = self.start(*arguments)
        out, _ = process.communicate(timeout=120)
        return process.returncode, json.loads(out)["error"]

    def compiles(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def wait_for_compile(self, count: int = 1) -> None:
        limit = time.monotonic() + 120
        while self.compiles() < count:
            self.assertLess(time.monotonic(), limit, "the compiler was not started")
            time.sleep(0.01)

    def value_in(self, library: str) -> int:
        code = f"import ctypes; print(ctypes.CDLL({library!r}).value())"
        return int(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )

    def files_below(self, folder: str) -> list[str]:
        return sorted(p.name for p in Path(folder).rglob("*") if p.is_file())


class Survival(Build):
    def test_killed_build_hinders_nothing(self) -> None:
        self.slow.touch()
        first = self.start()
        self.wait_for_compile()
        first.kill()
        first.communicate(timeout=120)
        self.slow.unlink()
        begun = time.monotonic()
        built = self.build()
        self.assertLess(time.monotonic() - begun, 100)
        self.assertTrue(built["rebuilt"])
        self.assertNotIn("staging", os.listdir(built["build_dir"]))

    def test_compiler_dies_with_a_killed_kiln(self) -> None:
        self.slow.touch()
        first = self.start()
        self.wait_for_compile()
        first.kill()
        first.communicate(timeout=120)
        self.assert_compiler_ends()

    def assert_compiler_ends(self) -> None:
        """ninja passes the signal on and does not wait: the compiler may take a moment."""
        limit = time.monotonic() + 120
        while self.running("cuda/bin/nvcc") and time.monotonic() < limit:
            time.sleep(0.02)
        self.assertEqual(self.running("cuda/bin/nvcc"), [])

    def running(self, part: str) -> list[str]:
        """Command lines of live processes that belong to this test."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                line = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:
                continue
            if str(self.top / part) in line:
                found.append(line)
        return found

    def test_compiler_that_outlives_kiln_and_ninja_publishes_nothing(self) -> None:
        self.slow.touch()
        first = self.start()
        self.wait_for_compile()
        # SIGSTOP first: ninja must not live to end its children.
        os.killpg(first.pid, signal.SIGSTOP)
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate(timeout=120)
        self.assertNotEqual(
            self.running("cuda/bin/nvcc"), [], "the orphan is what this test is about"
        )
        self.write("value.h", "#define VALUE 2\n")
        second = self.start()
        self.wait_for_compile(2)
        self.slow.unlink()  # both go on
        out, err = second.communicate(timeout=120)
        self.assertEqual(second.returncode, 0, err)
        time.sleep(0.3)
        self.assertEqual(self.value_in(json.loads(out)["library"]), 2)
        again = self.build()
        self.assertEqual(self.value_in(again["library"]), 2)

    def test_interrupt_ends_with_130_and_leaves_nothing_half(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                self.slow.touch()
                self.log.unlink(missing_ok=True)
                process = self.start("--build-dir", str(self.top / "b"))
                self.wait_for_compile()
                process.send_signal(number)
                out, _ = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 130)
                self.assertEqual(json.loads(out)["error"]["fault"], "interrupted")
                left = self.files_below(str(self.top / "b" / "obj"))
                self.assertEqual(left, [])
                self.assert_compiler_ends()

    def test_two_at_once_both_succeed_and_compile_once(self) -> None:
        self.slow.touch()
        both = [self.start(), self.start()]
        self.wait_for_compile()
        time.sleep(0.2)
        self.slow.unlink()
        answers = []
        for process in both:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            answers.append(json.loads(out))
        self.assertEqual(answers[0]["library"], answers[1]["library"])
        self.assertEqual(self.compiles(), 1)

    def test_source_that_changes_while_it_is_compiled_is_compiled_again(self) -> None:
        self.slow.touch()
        process = self.start()
        self.wait_for_compile()
        time.sleep(0.05)
        self.write("value.h", "#define VALUE 3\n")
        self.slow.unlink()
        process.communicate(timeout=120)
        self.write("value.h", "#define VALUE 3\n")
        built = self.build()
        self.assertEqual(self.value_in(built["library"]), 3)

    def test_unwritable_build_dir(self) -> None:
        code, error = self.error("--build-dir", "/sys/kiln-build")
        self.assertEqual(code, 3)
        self.assertIn("/sys/kiln-build", error["what"])
        self.assertIn("--build-dir", error["fix"])

    def test_full_disk(self) -> None:
        folder = self.top / "small"
        folder.mkdir()
        # 40 KB: room for the ninja file, none for the object of a large array.
        self.write("add.cu", "int a[40000] = {1};\n")
        script = (
            f"mount -t tmpfs -o size=40k tmpfs {folder} && exec {KILN} build {self.source} "
            f"--json --build-dir {folder}"
        )
        done = subprocess.run(
            ["unshare", "-m", "-r", "sh", "-c", script],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if not done.stdout:
            self.skipTest(f"cannot mount a small disk here: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 3, done.stdout)
        error = json.loads(done.stdout)["error"]
        self.assertIn("No space left on device", error["why"])
        self.assertIn("free some space", error["fix"])


class Freshness(Build):
    """What must, and what must not, cause a rebuild."""

    def test_nothing_changed(self) -> None:
        first = self.build()
        second = self.build()
        self.assertTrue(first["rebuilt"])
        self.assertFalse(second["rebuilt"])
        self.assertEqual(first["library"], second["library"])
        self.assertEqual(self.compiles(), 1)

    def test_header(self) -> None:
        first = self.build()
        self.write("value.h", "#define VALUE 2\n")
        second = self.build()
        self.assertEqual(
            self.value_in(first["library"]), 1
        )  # its path is its own: it is still there
        self.assertEqual(self.value_in(second["library"]), 2)
        self.assertEqual(os.path.realpath(second["link"]), second["library"])

    def test_touch_alone_gives_the_same_library(self) -> None:
        first = self.build()
        os.utime(self.source)
        self.assertEqual(self.build()["library"], first["library"])

    def test_define_back_and_forth(self) -> None:
        self.write("value.h", "")
        one, two = self.build("-DVALUE=1"), self.build("-D", "VALUE=2")
        self.assertEqual((self.value_in(one["library"]), self.value_in(two["library"])), (1, 2))
        self.assertFalse(self.build("-DVALUE=1")["rebuilt"])
        self.assertEqual(self.compiles(), 2)

    def test_flags_in_one_build_dir(self) -> None:
        self.write("value.h", "")
        where = ("--build-dir", str(self.top / "b"))
        self.build("-DVALUE=1", *where)
        self.assertEqual(self.value_in(self.build("-DVALUE=2", *where)["library"]), 2)
        self.assertEqual(self.value_in(self.build("-DVALUE=1", *where)["library"]), 1)

    def test_compiler(self) -> None:
        self.build()
        self.write("cuda/bin/nvcc", FAKE_NVCC + "# another one\n").chmod(0o755)
        self.assertTrue(self.build()["rebuilt"])
        self.write("cuda/bin/ptxas", "").chmod(0o755)
        self.assertTrue(self.build()["rebuilt"])
        self.assertEqual(self.compiles(), 3)

    def test_environment_of_the_compiler(self) -> None:
        self.build()
        self.environment["CPATH"] = str(self.top / "elsewhere")
        self.assertTrue(self.build()["rebuilt"])

    def test_runtime_archive_only_links(self) -> None:
        self.build()
        with (self.home / "lib/libkiln_runtime.a").open("ab"):
            os.utime(self.home / "lib/libkiln_runtime.a")
        steps = [step["what"] for step in self.build()["steps"]]
        self.assertEqual(steps, ["link libadd.so"])

    def test_lost_result_comes_back(self) -> None:
        first = self.build()
        os.unlink(first["library"])
        self.assertEqual(self.build()["library"], first["library"])
        self.assertTrue(Path(first["library"]).exists())
        os.unlink(first["link"])
        self.build()
        self.assertTrue(Path(first["link"]).exists())

    def test_damaged_record_is_no_harm(self) -> None:
        first = self.build()
        state = Path(first["build_dir"]) / "state.txt"
        state.write_bytes(state.read_bytes()[:100])
        self.assertEqual(self.build()["library"], first["library"])

    def test_old_libraries_go_but_for_a_few(self) -> None:
        for value in range(7):
            self.write("value.h", f"#define VALUE {value}\n")
            built = self.build()
        left = [name for name in os.listdir(built["build_dir"]) if name.startswith("libadd-")]
        self.assertEqual(len(left), 4)
        self.assertIn(Path(built["library"]).name, left)

    def test_two_copies_of_one_file_are_two_builds(self) -> None:
        first = self.build()
        self.source = self.write("copy/add.cu", 'extern "C" int value() { return 5; }\n')
        self.assertNotEqual(self.build()["build_dir"], first["build_dir"])


class Speed(Build):
    def best_of(self, count: int, line: list[str]) -> float:
        times = []
        for _ in range(count):
            begun = time.monotonic()
            subprocess.run(
                line,
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
            )
            times.append(time.monotonic() - begun)
        return min(times)

    def test_no_change_takes_under_40_ms(self) -> None:
        self.build()
        self.assertLess(self.best_of(20, [str(KILN), "build", str(self.source)]), 0.040)

    def test_help_takes_under_10_ms(self) -> None:
        self.assertLess(self.best_of(20, [str(KILN), "--help"]), 0.010)


if __name__ == "__main__":
    one_in.main()
