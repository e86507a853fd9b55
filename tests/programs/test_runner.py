# SPDX-License-Identifier: Apache-2.0
"""Does tools/programs tell a pass from a failure, cut sizes, and run only what has no result yet?
With a command in kiln's place that runs a shell script."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "programs"
loader = importlib.machinery.SourceFileLoader("programs", str(TOOL))
programs = importlib.util.module_from_spec(importlib.util.spec_from_loader("programs", loader))
sys.dont_write_bytecode = True
loader.exec_module(programs)

# `kiln build --program X.cu` wants the file; `kiln run X.cu ... -- ARGUMENTS` runs it as a shell
# script.
FAKE_KILN = """#!/bin/sh
if [ "$1" = build ]; then
  grep -q BROKEN "$3" && { echo "x.cu(1): error: broken"; exit 1; }
  exit 0
fi
file=$2
while [ "$1" != -- ]; do shift; done
shift
exec sh "./$file" "$@"
"""


def ran(text: str, code: int = 0, timed_out: bool = False) -> dict:
    return {"text": text, "code": code, "timed_out": timed_out}


PROGRAM = {"pass": ["PASS"], "fail": ["FAIL"]}


class Reasons(unittest.TestCase):
    def test_a_pass_needs_exit_code_and_words(self):
        self.assertEqual(programs.reason_of(PROGRAM, ran("PASS\n")), "")
        self.assertIn("exit code 3", programs.reason_of(PROGRAM, ran("PASS\n", 3)))
        self.assertIn("did not print PASS", programs.reason_of(PROGRAM, ran("nothing\n")))

    def test_a_failed_check_counts_though_the_exit_code_is_0(self):
        self.assertEqual(
            programs.reason_of(PROGRAM, ran("PASS\nk2: FAIL\n")), "its own check failed: k2: FAIL"
        )

    def test_the_engines_words_come_before_the_programs(self):
        text = "error: cannot run k on the engine\nFAIL\n"
        self.assertEqual(
            programs.reason_of(PROGRAM, ran(text)), "error: cannot run k on the engine"
        )

    def test_limits_and_signals(self):
        self.assertIn("CPU time", programs.reason_of(PROGRAM, ran("PASS", -24, True)))
        self.assertIn("SIGSEGV", programs.reason_of(PROGRAM, ran("PASS", -11)))


class Folders(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp())
        self.suite = self.top / "suite"
        (self.suite / "common").mkdir(parents=True)
        (self.suite / "common" / "words.sh").write_text("WORD=PASS\n")
        self.kiln = self.top / "kiln"
        self.kiln.write_text(FAKE_KILN)
        self.kiln.chmod(0o755)

    def add(self, name: str, script: str) -> None:
        (self.suite / "src" / name).mkdir(parents=True)
        (self.suite / "src" / name / "main.cu").write_text(script)

    def run_tool(self, *words: str) -> subprocess.CompletedProcess:
        command = [sys.executable, str(TOOL), "--state", str(self.top / "state"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def write_list(self, own: dict) -> str:
        facts = {
            "repository": "https://example.org/s",
            "commit": "0" * 40,
            "folder": "src/{name}",
            "sources": ["main.cu"],
        }
        listed = {"suites": {"s": {**facts, "pass": ["PASS"], "fail": ["FAIL"], "programs": own}}}
        path = self.top / "list.json"
        path.write_text(json.dumps(listed))
        return str(path)

    def test_programs_pass_fail_and_are_not_run_twice(self):
        self.add("good", '. ../../common/words.sh\n[ "$1" = 7 ] && echo "$WORD"\n')
        self.add("bad", "echo FAIL\n")
        self.add("broken", "BROKEN\n")
        listed = self.write_list({"good": {"arguments": "7"}, "bad": {}, "broken": {}})
        first = self.run_tool("--list", listed, "run", f"s={self.suite}", "--kiln", str(self.kiln))
        self.assertEqual(first.returncode, 1, first.stderr)
        self.assertIn("pass s/good", first.stdout)
        self.assertIn("its own check failed: FAIL", first.stdout)
        self.assertIn("x.cu(1): error: broken", first.stdout)
        again = self.run_tool("--list", listed, "run", f"s={self.suite}", "--kiln", str(self.kiln))
        self.assertEqual((again.returncode, again.stdout), (0, ""))
        failed = self.run_tool(
            "--list",
            listed,
            "run",
            f"s={self.suite}",
            "--kiln",
            str(self.kiln),
            "--again",
            "failed",
        )
        self.assertNotIn("s/good", failed.stdout)
        self.assertIn("s/bad", failed.stdout)
        self.assertEqual(
            self.run_tool("--list", listed, "report", str(self.top / "table")).returncode, 0
        )
        self.assertIn("**1 of 3 pass**", (self.top / "table.md").read_text())

    def test_sizes_change_the_copy_and_not_the_suite(self):
        self.add("sized", "#define SIZE 4096\n  const int count = 1 << 20;\n")
        place = programs.copy_program(
            {"root": str(self.suite), "folder": "src/sized", "suite": "s", "name": "sized"},
            self.top / "state",
        )
        self.assertEqual(programs.cut_sizes(place, {"SIZE": 16, "count": 32}), "")
        self.assertEqual(
            (place / "main.cu").read_text(), "#define SIZE 16\n  const int count = 32;\n"
        )
        self.assertIn("4096", (self.suite / "src" / "sized" / "main.cu").read_text())
        self.assertTrue((place / ".." / ".." / "common" / "words.sh").exists())
        self.assertIn("NOWHERE", programs.cut_sizes(place, {"NOWHERE": 1}))

    def test_programs_are_built_with_the_defaults_of_a_user(self):
        program = {"suite": "s", "name": "a"}
        words = programs.build_words(program, self.suite, self.top / "state")
        self.assertEqual(words, ["--build-dir", str(self.top / "state" / "build" / "s" / "a")])
        words = programs.build_words(
            {**program, "defines": ["A=1"]}, self.suite, self.top / "state"
        )
        self.assertEqual(words[2:], ["--define=A=1"])

    def test_every_cu_with_main_below_a_folder(self):
        self.add("one", "# main()\necho hello\n")
        self.add("two", "no entry\n")
        seen = self.run_tool("--list", "none", "run", str(self.suite), "--kiln", str(self.kiln))
        self.assertIn("pass suite/src/one/main", seen.stdout)
        self.assertNotIn("two", seen.stdout)


if __name__ == "__main__":
    unittest.main()
