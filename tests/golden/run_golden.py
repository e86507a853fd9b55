#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does kiln still say what it said? Runs the commands of golden files and compares exit code, stdout and stderr.

A golden file is text in sections, each begun by a line of its own:
    # a comment, at the top
    file NAME            the lines up to the next section, written to NAME before the commands run
    $ kiln ARGUMENTS     a command; {name} stands for a value given by --set, {tmp} for the folder it runs in
    exit N
    stdout
    stderr               each expected after a command; one that is left out is 0 or empty
Output that must differ between runs is put into one form first: times become TIME, the folder {tmp}, values {name}.
--update rewrites what is expected.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

TIME = re.compile(r"\b\d+(?:\.\d+)? (?:us|ms|s)\b")
JSON_SECONDS = re.compile(r'("(?:\w*_)?(?:seconds|first)": )[0-9.e+-]+')
HASH = re.compile(r"\b[0-9a-f]{12,}\b")


@dataclass
class Step:
    command: str
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""


@dataclass
class Golden:
    comment: str = ""
    files: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


def parse(text: str) -> Golden:
    golden = Golden()
    target = None  # where the lines of the section go
    for line in text.splitlines(keepends=True):
        if match := re.fullmatch(r"file (\S+)\n", line):
            golden.files[match[1]] = ""
            target = ("file", match[1])
        elif line.startswith("$ "):
            golden.steps.append(Step(line[2:].strip()))
            target = None
        elif (match := re.fullmatch(r"exit (\d+)\n", line)) and golden.steps:
            golden.steps[-1].exit_code = int(match[1])
        elif line in ("stdout\n", "stderr\n") and golden.steps:
            target = (line.strip(), "")
        elif target is None:
            if golden.steps and line.strip():
                raise SystemExit(f"a line outside of any section: {line!r}")
            golden.comment += line
        elif target[0] == "file":
            golden.files[target[1]] += line
        else:
            setattr(golden.steps[-1], target[0], getattr(golden.steps[-1], target[0]) + line)
    return golden


def render(golden: Golden) -> str:
    text = golden.comment
    for name, content in golden.files.items():
        text += f"file {name}\n{content}"
    for step in golden.steps:
        text += f"$ {step.command}\n"
        if step.exit_code:
            text += f"exit {step.exit_code}\n"
        for stream in ("stdout", "stderr"):
            content = getattr(step, stream)
            if content:
                text += f"{stream}\n{content}" + ("" if content.endswith("\n") else "\n")
    return text


def in_one_form(text: str, values: dict[str, str]) -> str:
    for name, value in sorted(values.items(), key=lambda item: -len(item[1])):
        text = text.replace(value, "{" + name + "}")
    return HASH.sub("HASH", JSON_SECONDS.sub(r"\1TIME", TIME.sub("TIME", text)))


def run_step(step: Step, kiln: str, folder: Path, values: dict[str, str]) -> Step:
    command = step.command
    for name, value in values.items():
        command = command.replace("{" + name + "}", value)
    words = shlex.split(command)
    if words[0] != "kiln":
        raise SystemExit(f"a golden command begins with kiln: {step.command}")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    environment = kept | {"XDG_CACHE_HOME": str(folder / "cache"), "NO_COLOR": "1"}
    done = subprocess.run(
        [kiln, *words[1:]], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    return Step(step.command, done.returncode, in_one_form(done.stdout, values), in_one_form(done.stderr, values))


def run_file(path: Path, kiln: str, values: dict[str, str], update: bool) -> bool:
    text = path.read_text()
    golden = parse(text)
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name).resolve()
        for file, content in golden.files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(content)
        steps = [run_step(step, kiln, folder, values | {"tmp": str(folder)}) for step in golden.steps]
    seen = render(Golden(golden.comment, golden.files, steps))
    if seen == text:
        return True
    if update:
        path.write_text(seen)
        print(f"updated {path}")
        return True
    sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), seen.splitlines(True), str(path), "now"))
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", required=True, type=Path, help="the command to test")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("paths", nargs="+", type=Path)
    arguments = parser.parse_args()
    values = dict(pair.split("=", 1) for pair in arguments.set)
    files = [f for p in arguments.paths for f in (sorted(p.rglob("*.txt")) if p.is_dir() else [p])]
    if not files:
        raise SystemExit("no golden file found")
    failed = [f for f in files if not run_file(f, str(arguments.kiln.resolve()), values, arguments.update)]
    print(f"{len(files) - len(failed)} of {len(files)} golden files as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
