#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the kiln command print what it should? Each case is one file: input files, command lines,
expected output.

    # What this case shows.
    # needs: nvcc            (nvcc, torch, device, compiler of the engine or a program; skipped by
                             name where it is missing)
    === file add.cu          a file of the input
    === run                  a shell script, run in a folder of its own
    === exit 1               what is expected of it; left out when 0
    === stdout               left out when empty
    === stderr

    run.py --kiln BINARY [--update] [--set NAME=VALUE] [CASE...]     --update writes what was seen
                                                                     into the cases

A script has what --set gives as $NAME. Before it is compared, output has {NAME} for its value,
{dir} for the folder of the case, {kiln} for kiln's package, {time} and {hash} for times and hashes.
The environment is empty but for PATH, HOME, XDG_CACHE_HOME and the CUDA compiler's place.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_S = 120
REPLACED = [
    (re.compile(r'("(?:seconds|first)": )[0-9.e+-]+'), r"\1{time}"),
    (re.compile(r"\b(\d+ min )?\d+(\.\d+)? (ns|us|ms|s)(?![\w=])"), "{time}"),
    (re.compile(r"(?<=[-/])[0-9a-f]{12}\b"), "{hash}"),
]


@dataclass
class Step:
    script: str
    exit: int = 0
    stdout: str = ""
    stderr: str = ""


@dataclass
class Case:
    path: Path
    head: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.path.relative_to(HERE).with_suffix(""))

    @property
    def needs(self) -> list[str]:
        return [
            word
            for line in self.head
            if line.startswith("# needs:")
            for word in line.split(":", 1)[1].split()
        ]


def parse(path: Path) -> Case:
    case = Case(path)
    sections = re.split(r"(?m)^=== ", path.read_text())
    case.head = sections[0].splitlines()
    for section in sections[1:]:
        title, _, body = section.partition("\n")
        kind, _, rest = title.partition(" ")
        if kind == "file":
            case.files[rest] = body
        elif kind == "run":
            case.steps.append(Step(body))
        elif kind == "exit":
            case.steps[-1].exit = int(rest)
        elif kind in ("stdout", "stderr"):
            setattr(case.steps[-1], kind, body)
        else:
            raise SystemExit(f"{path}: there is no section '{kind}'")
    if not case.steps:
        raise SystemExit(f"{path}: it runs nothing")
    return case


def text_of(case: Case) -> str:
    out = "".join(line + "\n" for line in case.head)
    out += "".join(f"=== file {name}\n{content}" for name, content in case.files.items())
    for step in case.steps:
        out += f"=== run\n{step.script}"
        if step.exit:
            out += f"=== exit {step.exit}\n"
        for stream in ("stdout", "stderr"):
            if getattr(step, stream):
                out += f"=== {stream}\n{getattr(step, stream)}"
    return out


def environment(folder: Path, kiln: Path, values: dict[str, str]) -> dict[str, str]:
    paths = [str(kiln.parent), "/usr/local/bin", "/usr/bin", "/bin"]
    nvcc = shutil.which("nvcc")
    if nvcc:
        paths.insert(1, str(Path(nvcc).resolve().parent))
    paths.insert(
        1, str(Path(sys.executable).parent)
    )  # the python3 that has torch and pytest, if any has
    return values | {
        "PATH": ":".join(paths),
        "HOME": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(folder / "tmp"),
    }


def normal(text: str, folder: Path, kiln: Path, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(value, "{" + name + "}")
    text = text.replace(str(folder / "here"), "{dir}").replace(str(folder), "{top}")
    text = text.replace(str(kiln.parents[1]), "{kiln}")
    for pattern, by in REPLACED:
        text = pattern.sub(by, text)
    if text and not text.endswith("\n"):
        text += "\n{no newline}\n"
    return text


def run(case: Case, kiln: Path, values: dict[str, str]) -> list[Step]:
    with tempfile.TemporaryDirectory(prefix="kiln-golden-") as top:
        folder = Path(top).resolve()
        for name in ("here", "home", "tmp"):
            (folder / name).mkdir()
        for name, content in case.files.items():
            path = folder / "here" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        seen = []
        for step in case.steps:
            done = subprocess.run(
                ["/bin/sh", "-c", step.script],
                cwd=folder / "here",
                env=environment(folder, kiln, values),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
            )
            streams = [normal(text, folder, kiln, values) for text in (done.stdout, done.stderr)]
            seen.append(Step(step.script, done.returncode, *streams))
        return seen


def difference(wanted: Step, seen: Step) -> str:
    out = ""
    if wanted.exit != seen.exit:
        out += f"  exit code: wanted {wanted.exit}, seen {seen.exit}\n"
    for stream in ("stdout", "stderr"):
        one, other = getattr(wanted, stream), getattr(seen, stream)
        if one != other:
            out += f"  {stream}:\n"
            out += "".join(f"    - {line}\n" for line in one.splitlines())
            out += "".join(f"    + {line}\n" for line in other.splitlines())
    return f"  $ {wanted.script.strip()}\n{out}" if out else ""


def missing(need: str, kiln: Path) -> bool:
    if need == "device":  # where a kernel can run: a GPU, or the engine
        return (
            not Path("/dev/nvidiactl").exists()
            and not (kiln.parents[1] / "lib/libkiln_engine.so").exists()
        )
    if need == "compiler":  # of kernels, in the engine
        return b"asmjit" not in (kiln.parents[1] / "lib/libkiln_engine.so").read_bytes()
    if need == "nvcc":
        return shutil.which("nvcc") is None
    if need == "torch":
        import importlib.util

        return any(importlib.util.find_spec(name) is None for name in ("torch", "pytest"))
    return shutil.which(need) is None


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--kiln", required=True, type=Path)
    arguments.add_argument("--update", action="store_true")
    arguments.add_argument("--command", help="only the cases of this folder")
    arguments.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    arguments.add_argument("cases", nargs="*", type=Path)
    given = arguments.parse_args()
    kiln = given.kiln.resolve()
    values = dict(pair.split("=", 1) for pair in given.set)
    paths = given.cases or sorted((HERE / (given.command or ".")).rglob("*.test"))
    counts = {"passed": 0, "failed": 0, "updated": 0, "skipped": 0}
    for path in paths:
        case = parse(path.resolve())
        lacking = [need for need in case.needs if missing(need, kiln)]
        begun = time.monotonic()
        state, told = "passed", ""
        if lacking:
            state, told = "skipped", "  no " + ", no ".join(lacking) + "\n"
        else:
            seen = run(case, kiln, values)
            told = "".join(difference(wanted, one) for wanted, one in zip(case.steps, seen))
            if told and given.update:
                case.steps = seen
                path.write_text(text_of(case))
                state = "updated"
            elif told:
                state = "failed"
        counts[state] += 1
        print(
            f"{state:8} {time.monotonic() - begun:6.2f} s  {case.name}\n{told}", end="", flush=True
        )
    print(", ".join(f"{count} {state}" for state, count in counts.items() if count))
    return 1 if counts["failed"] or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
