#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a build read anything that kiln does not know of? Asked of the system, and not of the code
that makes keys.

    test_reads.py KILN [--only NAME] [--every N]

Twelve sources are built from nothing. (a) strace tells every file that the compilers open or look
for: it is in the record of the build, or REASONS says why it need not be. (b) A preloaded getenv
tells every variable that they ask for: it has a row in src/build/plan/variables.def. (c) With junk
in every variable that is cleared, and in variables that nobody knows, the same bytes come out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = 77  # ctest's word for it, by SKIP_RETURN_CODE
HERE = Path(__file__).resolve().parent
TINY = ("--cuda-flag=-Xcompiler=-D__COMMON_FUNCTIONS_H__", f"--cuda-flag=-I{HERE / 'tiny'}")
TABLE = HERE.parents[1] / "src/build/plan/variables.def"
GUIDE = HERE.parents[1] / "docs/guide/cache.md"
# They start the tools; what they read themselves never reaches a result.
NOT_TOOLS = {"kiln", "ninja", "sh", "dash", "bash", "env", "strace"}

EXPORT = 'extern "C" __attribute__((visibility("default")))'
KERNEL = "__global__ void kernel(int* out) { out[0] = VALUE; }\n"
LAUNCH = f"{EXPORT} void launch() {{ kernel<<<1, 1>>>(nullptr); }}\n"
ASM = 'asm(".section .rodata\\n.global data\\ndata: .incbin \\"data.bin\\"\\n.text");\n'


@dataclass
class Case:
    name: str
    files: dict[str, str]
    arguments: list[str]
    prepare: list[list[str]] = field(default_factory=list)


def device_cases() -> list[Case]:
    value = {"inc/value.h": "#define VALUE 1\n"}
    whole = KERNEL + LAUNCH
    asked = '#if __has_include("no/extra.h")\n#include "no/extra.h"\n#endif\n'
    half = "#include <cuda_fp16.h>\n"
    half += "__global__ void kernel(__half* x) { x[0] = __hadd(x[0], x[1]); }\n"
    cub = "#include <cub/warp/warp_reduce.cuh>\n__global__ void kernel(int* x) {\n"
    cub += "  __shared__ cub::WarpReduce<int>::TempStorage t;\n"
    cub += "  x[0] = cub::WarpReduce<int>(t).Sum(x[threadIdx.x]);\n}\n"
    op = "#include <kiln/op.h>\n"
    op += "kiln::Tensor same(const kiln::Tensor& x) { return kiln::empty_like(x); }\n"
    op += 'KILN_OP(same, "x");\n'
    return [
        Case("plain", {"a.cu": whole}, ["a.cu", "-DVALUE=1", *TINY]),
        Case("header", {"a.cu": '#include "value.h"\n' + whole, **value, "first/x.h": ""},
             ["a.cu", "-I", "first", "-I", "inc", *TINY]),
        Case("question", {"a.cu": asked + whole}, ["a.cu", "-I", "first", "-DVALUE=2", *TINY]),
        Case("options_file", {"a.cu": whole, "o.txt": "-DVALUE=3"},
             ["a.cu", "--cuda-flag=--options-file", "--cuda-flag=o.txt", *TINY]),
        Case("host_options", {"a.cu": whole, "o.txt": "-DVALUE=3"},
             ["a.cu", "--cuda-flag=-Xcompiler=@TOP/o.txt", *TINY]),
        Case("incbin", {"a.cu": ASM + whole, "inc/data.bin": "data"},
             ["a.cu", "-I", "inc", "-DVALUE=4", *TINY]),
        Case("fp16", {"a.cu": half}, ["a.cu"]),
        Case("cub", {"a.cu": cub}, ["a.cu"]),
        Case("op", {"a.cu": op}, ["a.cu"]),
    ]  # fmt: skip


def host_cases() -> list[Case]:
    value = {"inc/value.h": "#define VALUE 1\n"}
    function = f"{EXPORT} int f() {{ return VALUE; }}\n"
    calls = f"int n(); {EXPORT} int f() {{ return n(); }}\n"
    library = [["g++", "-shared", "-fPIC", "lib/n.cpp", "-o", "lib/libn.so"]]
    return [
        Case("host", {"a.cpp": '#include <vector>\n#include "value.h"\n' + function, **value},
             ["a.cpp", "-I", "inc"]),
        Case("host_incbin", {"a.cpp": ASM + function, "inc/data.bin": "data", **value},
             ["a.cpp", "-I", "inc", "--cflag=-include", "--cflag=value.h"]),
        Case("library", {"a.cpp": calls, "lib/n.cpp": "int n() { return 1; }",
                         "v.map": "{ global: *; };", "none/x": ""},
             ["a.cpp", "--ldflag=-LTOP/none", "--ldflag=-LTOP/lib", "--ldflag=-ln",
              "--ldflag=-Wl,--version-script=TOP/v.map"],
             library),
    ]  # fmt: skip


def cases() -> list[Case]:
    return [*device_cases(), *host_cases()]


# Paths that no record needs, with the reason. OWN: folders of the compilers, TOOL: libraries that a
# tool loads.
REASONS = (
    (r"/dev/|/proc/|/sys/", "the machine, not a file"),
    (
        r"/etc/ld\.so\.|/usr/lib/locale/|/usr/share/locale|.*/gconv",
        "the loader's list and translated messages",
    ),
    (r"TMP/.*|TMP$", "temporary files of the tool itself"),
    (r"/etc/malloc[.]conf$", "settings of cicc's allocator"),
    (r"/etc/localtime$", "the time zone; __DATE__ and __TIME__ are the preprocessor's"),
    (r"/kiln(/|$)", "the source of the dry run, which need not be there"),
    (r"TOP/getenv$", "this test's"),
    (
        r"TOP/build(/|$)",
        "the build folder: results of other steps, which are inputs by content, and of this one",
    ),
    (
        r"OWN(/|$)",
        "a folder of the compiler: belongs to the compiler, which is in the key by content",
    ),
    (
        r".*/(liblto_plugin\.so|lto-wrapper|lto1|ldscripts/.*|libkiln_getenv\.so)$",
        "gcc's, used with -flto alone; this test's",
    ),
    (r"PATH/[\w.+-]+$", "a program looked for along PATH: every build looks along it again"),
)


@dataclass
class World:
    kiln: Path
    top: Path
    preload: Path
    path: list[str] = field(default_factory=lambda: os.environ["PATH"].split(":"))

    def environment(self) -> dict[str, str]:
        kept = {
            k: v
            for k, v in os.environ.items()
            if k in ("PATH", "HOME", "CUDA_HOME", "LIBRARY_PATH", "LD_LIBRARY_PATH")
        }
        return kept | {"XDG_CACHE_HOME": str(self.top / "cache"), "TMPDIR": str(self.top / "tmp")}


def write(case: Case, top: Path) -> None:
    for name, text in case.files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (top / "tmp").mkdir(exist_ok=True)
    for line in case.prepare:
        subprocess.run(line, cwd=top, check=True)


def build(case: Case, world: World, env: dict[str, str], before: list[str]) -> dict:
    """From nothing, always in the same folder."""
    for name in ("build", "cache"):
        shutil.rmtree(world.top / name, ignore_errors=True)
    words = [word.replace("TOP", str(world.top)) for word in case.arguments]
    line = [
        *before,
        str(world.kiln),
        "build",
        *words,
        "--arch",
        "8.0",
        "--build-dir",
        "build",
        "--json",
    ]
    done = subprocess.run(line, cwd=world.top, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{case.name}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def bytes_of(built: dict) -> str:
    return hashlib.sha256(Path(built["library"]).read_bytes()).hexdigest()


# ---- (a) files


@dataclass
class Record:
    """state.txt of the build folder: files with their states, and paths where nothing was."""

    files: set[str]
    absent: list[str]

    @classmethod
    def read(cls, folder: Path) -> Record:
        files, absent = set(), []
        for line in (folder / "state.txt").read_text().splitlines()[4:]:
            if line.startswith("- "):
                absent.append(line[2:])
            else:
                files.add(os.path.normpath(line.split(" ", 4)[4]))
        real = {os.path.realpath(name) for name in files}
        return cls(files | real, absent)

    def knows(self, path: str, there: bool) -> bool:
        if there:
            return path in self.files or os.path.realpath(path) in self.files
        return any(path == name or path.startswith(name + "/") for name in self.absent)


def touched(log: Path) -> list[tuple[str, str, bool]]:
    """Program, path and whether it was there, for each call of one process."""
    found, program, folder = [], "", ""
    for line in log.read_text(errors="replace").splitlines():
        call = re.match(r"(?:\d+ )?(\w+)\((.*)\)\s+= (-?\d+)(?:<[^>]*>)?(?: (\w+))?", line)
        if not call:
            continue
        name, arguments, result, error = call.groups()
        where = re.search(r"AT_FDCWD<([^>]*)>", arguments)
        folder = where.group(1) if where else folder
        path = re.search(r'"((?:[^"\\]|\\.)*)"', arguments)
        if not path:
            continue
        full = os.path.normpath(os.path.join(folder, path.group(1)))
        if name == "execve":
            if result == "0":
                program = os.path.basename(os.path.realpath(full))
            continue
        if program and program not in NOT_TOOLS:
            found.append((program, full, error not in ("ENOENT", "ENOTDIR")))
    return found


class Reasons:
    def __init__(self, world: World):
        search = subprocess.run(
            ["g++", "-v", "-E", "-x", "c++", "/dev/null"], capture_output=True, text=True
        ).stderr
        folders = re.findall(
            r'^ (/\S+)$|^ignoring nonexistent directory "([^"]*)"', search, re.MULTILINE
        )
        folders = [name for pair in folders for name in pair if name]
        dirs = subprocess.run(
            ["g++", "-print-search-dirs"],
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"]},
        )
        folders += [
            name
            for line in dirs.stdout.splitlines()
            for name in line.split("=")[-1].split(":")
            if name[:1] == "/"
        ]
        nvcc = Path(shutil.which("nvcc") or "").resolve()
        own = {os.path.normpath(name) for name in folders} | {str(nvcc.parents[1])}
        own |= {os.path.realpath(name) for name in own}
        self.own = own
        words = {
            "OWN": "|".join(sorted(map(re.escape, own), key=len, reverse=True)),
            "PATH": "|".join(re.escape(os.path.normpath(name)) for name in world.path if name),
            "TMP": re.escape(str(world.top / "tmp")),
            "TOP": re.escape(str(world.top)),
        }
        self.rows = []
        for pattern, reason in REASONS:
            for word, regex in words.items():
                # A function: as a text, re.sub would read the backslashes in it.
                group = f"(?:{regex})"
                pattern = re.sub(rf"\b{word}(?=[/($])", lambda _, g=group: g, pattern)
            self.rows.append((re.compile(pattern), reason))
        self.libraries: dict[str, set[str]] = {}

    def loads(self, program: str, path: str) -> bool:
        """A library that the tool is linked with, wherever the loader looked for it."""
        if program not in self.libraries:
            full = shutil.which(program) or next(
                iter(sorted(Path("/usr/lib/gcc").glob(f"*/*/{program}"))),
                Path(shutil.which("nvcc") or "").parents[1] / "nvvm/bin" / program,
            )
            listed = subprocess.run(["ldd", str(full)], capture_output=True, text=True).stdout
            self.libraries[program] = set(
                re.findall(r"^\s*(?:/\S*/)?([^\s/]+\.so[^\s/]*)", listed, re.MULTILINE)
            )
        name = os.path.basename(path)
        return (
            name in self.libraries[program]
            or "glibc-hwcaps" in path
            or re.fullmatch(r".*/(tls|atomics|aarch64|x86_64|haswell)", path) is not None
        )

    def why(self, program: str, path: str, there: bool) -> str:
        if there and os.path.isdir(path):
            return "a folder: what is in it is looked for by name"
        if not there and any(own.startswith(path + "/") for own in self.own):
            return "a folder on the way to one of the compiler's"
        if (
            "g" in program
            and re.fullmatch(r".*/\w*crt\w*\.o", path)
            and not program.endswith("ld.bfd")
        ):
            return "gcc looks whether it is there; the linker reads it"
        for regex, reason in self.rows:
            # A file in a compiler's folder that was opened has to be in the record; one that is not
            # there need not.
            if regex.match(path) and not (there and reason.startswith("a folder of the compiler")):
                return reason
        return "a library that the tool loads" if self.loads(program, path) else ""


def unknown_files(world: World, logs: Path, reasons: Reasons) -> list[str]:
    record, unknown = Record.read(world.top / "build"), set()
    for log in logs.iterdir():
        for program, path, there in touched(log):
            if not record.knows(path, there) and not reasons.why(program, path, there):
                unknown.add(f"{program} {'reads' if there else 'looks for'} {path}")
    return sorted(unknown)


# ---- (b) and (c) variables


def table() -> dict[str, str]:
    rows = re.findall(r"^VARIABLE\(([^,]+), (\w+), \w+, ", TABLE.read_text(), re.MULTILINE)
    return dict(rows)


def unknown_variables(log: Path) -> list[str]:
    known, unknown = table(), set()
    for line in set(log.read_text().splitlines()):
        program, _, name = line.partition("\t")
        if os.path.basename(program) not in NOT_TOOLS and name not in known:
            unknown.add(f"{os.path.basename(program)} asks for {name}")
    return sorted(unknown)


def with_junk(env: dict[str, str]) -> dict[str, str]:
    junk = {name: "/junk" for name, rule in table().items() if rule == "Clear"}
    junk |= {
        "UNHEARD_OF": "/junk",
        "CFLAGS": "-DVALUE=99",
        "CXXFLAGS": "-DVALUE=99",
        "LDFLAGS": "-ljunk",
    }
    junk |= {
        "NVCCFLAGS": "-DVALUE=99",
        "CUDAFLAGS": "-DVALUE=99",
        "LD_OPTIONS": "-ljunk",
        "AS_OPTIONS": "--junk",
    }
    return env | junk


def checked(case: Case, kiln: Path, preload: Path) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="kiln-reads-") as folder:
        world = World(kiln, Path(folder).resolve(), preload)
        logs = world.top / "strace"
        logs.mkdir()
        write(case, world.top)
        env = world.environment()
        told = env | {"GETENV_LOG": str(world.top / "getenv")}
        trace = [
            "strace",
            "-ff",
            "-qq",
            "-y",
            "-s",
            "4096",
            "-e",
            "trace=%file",
            "-o",
            str(logs / "p"),
        ]
        told["LD_PRELOAD"] = str(preload)
        traced = build(case, world, told, trace)
        faults = unknown_files(world, logs, Reasons(world))
        asked = world.top / "getenv"
        faults += (
            unknown_variables(asked)
            if asked.exists()
            else ["no program asked for a variable: nothing was seen"]
        )
        if sum(1 for _ in logs.iterdir()) < 5:
            faults.append("fewer than five processes were seen")
        first = bytes_of(traced)
        if bytes_of(build(case, world, with_junk(env), [])) != first:
            faults.append("other bytes with junk in the environment")
        return [f"{case.name}: {fault}" for fault in faults]


def undocumented() -> list[str]:
    guide = GUIDE.read_text()
    return [
        f"docs/guide/cache.md does not name {name}" for name in table() if f"`{name}`" not in guide
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Files and variables that builds read, against kiln's records."
    )
    parser.add_argument("kiln", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    for program in ("nvcc", "gcc"):
        if not shutil.which(program):
            print(f"error: {program} is not on PATH\n  fix: tools/bootstrap test")
            return 3
    if not shutil.which("strace"):
        print(
            "skipped: which files the compilers read\n  why: strace is not on PATH\n"
            "  fix: tools/bootstrap test, or: sudo apt-get install strace"
        )
        return SKIPPED
    chosen = [case for case in cases() if given.only in case.name][:: given.every]
    with tempfile.TemporaryDirectory(prefix="kiln-getenv-") as folder:
        preload = Path(folder) / "libkiln_getenv.so"
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-O1", str(HERE / "getenv_log.c"), "-o", str(preload)],
            check=True,
        )
        with ThreadPoolExecutor(2) as pool:
            faults = [
                fault
                for found in pool.map(lambda c: checked(c, given.kiln.resolve(), preload), chosen)
                for fault in found
            ]
    faults += undocumented()
    for fault in faults:
        print(fault)
    print(f"{len(chosen)} sources, {len(faults)} reads that nobody knows of")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
