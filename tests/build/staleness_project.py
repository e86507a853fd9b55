# SPDX-License-Identifier: Apache-2.0
"""What can an edit change, and how do kiln and a clean nvcc build the same state?"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

TINY = Path(__file__).resolve().parent / "tiny"
ARCH = "8.0"
GENCODE = "-gencode=arch=compute_80,code=[sm_80,compute_80]"
EXPORT = 'extern "C" __attribute__((visibility("default")))'
# Each is a number or a switch of State. What device code alone changes with is there more often.
EVERYWHERE = [
    "comment",
    "lines",
    "host",
    "header",
    "define",
    "fast_math",
    "compiler",
    "arch_branch",
    "host_branch",
]
# Bodies of the device that something far from them makes the host's too.
BODIES_OF_BOTH = ["member", "forward", "general", "special"]
# What in a kernel has an effect on the host's text behind it; and macros that the C library or the
# kernel's text has, in conditions.
REACHING = ["counted", "pragma", "pragma_word", "packed", "digraph"]
NOT_IN_A_SLICE = ["shadow", "extra", "environment", "option", "host_option", "data", "forced",
                  "library", "library_shadow", "run_path", "place", "checkout", "moved",
                  "program"]  # fmt: skip


@dataclass
class State:
    """Everything that an edit can change; each number ends up in the host's text or in a kernel's
    code."""

    comment: int = 0
    lines: int = 0  # comment lines at the head of the source
    body_lines: int = 0  # and in the kernel
    device: int = 1
    host: int = 1
    header: int = 1
    define: int = 1
    fast_math: bool = False
    environment: int = 0
    compiler: int = 0
    shadow: bool = False
    extra: bool = False
    arch_branch: int = 1
    host_branch: int = 1
    option: int = 1  # in an option file of nvcc, which another one names
    host_option: int = 1  # in one of the host compiler
    data: int = 1  # a file that asm() reads
    forced: int = 1  # -include
    library: int = 1
    library_shadow: bool = False
    run_path: int = 0
    place: bool = False  # a define that holds the path of the checkout
    checkout: bool = False  # the other one, which has the same sources and shares the cache
    moved: int = 0
    program: bool = False
    member: int = 2
    forward: int = 2
    general: int = 2
    special: int = 2
    counted: bool = False  # a macro that stands for __COUNTER__
    pragma: bool = False  # pop_macro, as a line and as a word
    pragma_word: bool = False
    packed: bool = False  # the layout of the types behind the kernel
    digraph: bool = False
    limit: bool = False  # the kernel uses what a condition on a macro of the C library chose
    constant: bool = False
    overload: int = 0  # one that NVRTC has with other types
    conditions: bool = False  # those are there, and NVRTC is asked
    second: int = 0
    simple: bool = False  # nothing that keeps NVRTC from compiling a slice
    bias: int = 8  # how often device code is edited, for each other kind
    history: Counter = field(default_factory=Counter)

    def edit(self, dice: random.Random) -> str:
        kinds = EVERYWHERE + BODIES_OF_BOTH
        kinds += [] if self.simple else NOT_IN_A_SLICE + REACHING
        kinds += ["limit", "constant", "overload"] * self.bias if self.conditions else []
        kinds += ["device", "body_lines"] * self.bias
        kinds += ["second", "device"] * self.bias if self.second else []
        kind = dice.choice(kinds)
        old = getattr(self, kind)
        if isinstance(old, bool):
            setattr(self, kind, not old)
        else:
            most = 6 if kind.endswith("lines") or kind == "overload" else 60
            setattr(
                self, kind, dice.choice([n for n in range(0 if most == 6 else 2, most) if n != old])
            )
        self.history[kind] += 1
        return kind

    def second_source(self) -> str:
        return (
            f"__global__ void other(int* out) {{ out[0] = {self.second}; }}\n"
            f"{EXPORT} void launch_other() {{ other<<<1, 1>>>(nullptr); }}\n"
        )

    def source(self) -> str:
        asked = '#if __has_include("extra.h")\n#include "extra.h"\n#else\n#define EXTRA 5\n#endif'
        above = "".join(["// another line\n", "//\n", "// \n"][: self.lines])
        inside = "  // a line\n" if self.body_lines else ""
        inside += "  // more\n" if self.body_lines > 2 else ""
        # Small letters: a macro that nobody takes for one tells its line. For a slice nothing below
        # the kernel may.
        return f"""// comment {self.comment}
{above}
#include "value.h"
{"#define EXTRA 5" if self.simple else asked}
{self.defaults()}
#ifndef __CUDA_ARCH__
#define SIDE {self.host_branch}
#else
#define SIDE {self.arch_branch}
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
{"#define here 0" if self.simple else "#define here __LINE__"}
{self.bodies_of_both()}
{self.chosen()}
{self.host_part() if self.simple else ""}
__global__ void kernel(int* out, float x) {{
{inside}
{self.reaching()}
  out[0] = {self.device}; out[1] = VALUE; out[2] = SIDE; out[3] = EXTRA;
  out[4] = DEFINE; out[5] = ENVIRONMENT;
  out[6] = static_cast<int>(x / {self.device}.5f); out[7] = OPTION + 100 * FORCED;
  out[8] = Member().value() + forward() + general(1) + special(1);
{self.using_conditions()}
}}
{EXPORT} void launch() {{ kernel<<<1, 1>>>(nullptr, 1.0f); }}
{"" if self.simple else self.host_part()}
"""

    def bodies_of_both(self) -> str:
        return f"""#define ID __COUNTER__
#define MODE 1
#pragma push_macro("MODE")
#undef MODE
#define MODE 2
struct Member {{ __host__ __device__ int value() const; }};
__device__ int Member::value() const {{ return {self.member}; }}
__host__ __device__ int forward();
__device__ int forward() {{ return {self.forward}; }}
template <class T> __host__ __device__ T general(T x);
template <class T> __device__ T general(T x) {{ return x + {self.general}; }}
template <class T> __host__ __device__ T special(T x) {{ return x; }}
template <> __device__ int special<int>(int x) {{ return x + {self.special}; }}"""

    def reaching(self) -> str:
        if self.simple:
            return ""
        lines = [
            "  out[9] = ID;" if self.counted else "",
            '#pragma pop_macro("MODE")' if self.pragma else "",
            '  _Pragma("pop_macro(\\"MODE\\")")' if self.pragma_word else "",
            "#pragma pack(1)" if self.packed else "",
            "%:undef MODE\n%:define MODE 3" if self.digraph else "",
        ]
        return "\n".join(lines)

    def chosen(self) -> str:
        """By names that nvcc's headers define, and NVRTC's do not."""
        if not self.conditions:
            return ""
        return """#if defined(INT_MAX)
#define LIMIT 1
#else
#define LIMIT 2
#endif
#ifndef M_PI
#define M_PI 3.14159265f
#endif"""

    def using_conditions(self) -> str:
        lines = ["  out[10] = LIMIT;"] if self.limit else []
        lines += ["  out[11] = static_cast<int>(1e9f * x / M_PI);"] if self.constant else []
        name = ["", "fmax(x, {})", "pow({}, x)", "fmod(x, {})", "hypot(x, {})", "__CHAR_BIT__"]
        if self.overload:
            call = name[self.overload].format(f"{self.device}LL")
            lines.append(f"  out[12] = static_cast<int>(1e9f / {call});")
        return "\n".join(lines)

    def numbers(self) -> str:
        """What the host knows of the bodies and of what the kernel left behind."""
        behind = "" if self.simple else ", __COUNTER__, MODE, static_cast<int>(sizeof(Behind))"
        packed = "" if self.simple else "struct Behind { char c; int i; };\n"
        return (
            f"{packed}{EXPORT} int host_number(int i) {{\n  const int all[] = {{Member().value(), "
            f"forward(), general(1), special(1){behind}}};\n"
            "  return i < static_cast<int>(sizeof(all) / sizeof(int)) ? all[i] : -1;\n}\n"
        )

    def defaults(self) -> str:
        names = {
            "ENVIRONMENT": "0",
            "COMPILER": "0",
            "OPTION": "0",
            "HOST_OPTION": "0",
            "FORCED": "0",
            "PLACE": '"none"',
        }
        return "\n".join(
            f"#ifndef {name}\n#define {name} {value}\n#endif" for name, value in names.items()
        )

    def host_part(self) -> str:
        numbers = " ".join(
            f'" {name.lower()} " TEXT({name})'
            for name in (
                "VALUE",
                "SIDE",
                "EXTRA",
                "DEFINE",
                "ENVIRONMENT",
                "COMPILER",
                "OPTION",
                "HOST_OPTION",
                "FORCED",
            )
        )
        text = (
            f'{EXPORT} const char* host_text() {{ return "host {self.host}" {numbers} " line " '
            f'TEXT(here) " place " PLACE; }}\n'
        )
        text += self.numbers()
        if self.simple:
            return text + f'{EXPORT} const char* more_text() {{ return ""; }}\n'
        text += (
            'asm(".pushsection .rodata\\n.global stale_data\\nstale_data: .incbin '
            '\\"data.bin\\"\\n.byte 0\\n.popsection");\n'
        )
        text += 'extern "C" const char stale_data[];\nconst char* library_text();\n'
        text += f"{EXPORT} const char* more_text() {{\n  static char all[200];\n  char* to = all;\n"
        text += (
            "  const char* parts[] = {stale_data, library_text()};\n  for (const char* part : "
            "parts)\n"
        )
        text += "    for (; *part; ++part) *to++ = *part;\n  *to = 0;\n  return all;\n}\n"
        if self.program:
            text += (
                'extern "C" int puts(const char*);\nextern "C" int printf(const char*, ...);\n'
                "int main() {\n  puts(host_text());\n  puts(more_text());\n"
                '  for (int i = 0; i < 8; ++i) printf("%d ", host_number(i));\n  return 0;\n}\n'
            )
        return text


class Project:
    def __init__(self, kiln: Path, top: Path, real_headers: bool):
        self.kiln, self.all = kiln, top
        self.lately: list[float] = []  # seconds of the last builds
        self.flags = [] if real_headers else ["-Xcompiler=-D__COMMON_FUNCTIONS_H__", f"-I{TINY}"]
        self.names = {False: "one", True: "two"}  # of the checkouts
        for name in ("bin", "oracle"):
            (top / name).mkdir(parents=True)
        self.gxx = shutil.which("g++") or "/usr/bin/g++"
        self.archives: dict[int, bytes] = {}

    def folder(self, state: State) -> Path:
        return self.all / self.names[state.checkout]

    def write(self, state: State) -> None:
        wanted = f"{'two' if state.checkout else 'one'}{state.moved or ''}"
        if wanted != self.names[state.checkout]:
            if self.folder(state).exists():
                self.folder(state).rename(self.all / wanted)
            self.names[state.checkout] = wanted
        self.put(state, "a.cu", state.source())
        if state.second:
            self.put(state, "b.cu", state.second_source())
        self.put(state, "second/value.h", f"#define VALUE {state.header}\n")
        self.put(state, "outer.txt", f"--options-file {self.folder(state)}/inner.txt\n")
        self.put(state, "inner.txt", f"-DOPTION={state.option}\n")
        self.put(state, "host.txt", f"-DHOST_OPTION={state.host_option}\n")
        self.put(state, "pre.h", f"#define FORCED {state.forced}\n")
        self.put(state, "second/data.bin", f"data {state.data} ")
        for name, wanted, text in (
            ("first/value.h", state.shadow, f"#define VALUE {state.header + 1}\n"),
            ("first/extra.h", state.extra, "#define EXTRA 7\n"),
            ("first/unused.h", True, ""),
        ):
            if wanted:
                self.put(state, name, text)
            else:
                (self.folder(state) / name).unlink(missing_ok=True)
        self.write_library(state)
        self.write_compiler(state)

    def put(self, state: State, name: str, text: str) -> None:
        path = self.folder(state) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)

    def write_library(self, state: State) -> None:
        for name, there, value in (
            ("second", True, state.library),
            ("first", state.library_shadow, 100),
        ):
            path = self.folder(state) / name / "libvalue.a"
            if not there:
                path.unlink(missing_ok=True)
            elif not path.exists() or path.read_bytes() != self.archive(value):
                path.write_bytes(self.archive(value))

    def archive(self, value: int) -> bytes:
        if value not in self.archives:
            made = self.all / "oracle-library"
            made.mkdir(exist_ok=True)
            (made / "l.cpp").write_text(
                f'const char* library_text() {{ return "library {value}"; }}\n'
            )
            (made / "l.a").unlink(missing_ok=True)
            subprocess.run(
                [self.gxx, "-fPIC", "-O1", "-c", "l.cpp", "-o", "l.o"], cwd=made, check=True
            )
            subprocess.run(["ar", "rcD", "l.a", "l.o"], cwd=made, check=True)
            self.archives[value] = (made / "l.a").read_bytes()
        return self.archives[value]

    def write_compiler(self, state: State) -> None:
        """Swapped at its path, of the same size, with the times that the former one had."""
        compiler = self.all / "bin/g++"
        text = f'#!/bin/sh\nexec {self.gxx} -DCOMPILER={state.compiler:02d}L "$@"\n'.replace(
            "=0", "="
        )
        text = text.replace("=L", "=0L")
        text += "#" * (120 - len(text)) + "\n"
        if not compiler.exists() or compiler.read_text() != text:
            before = compiler.stat() if compiler.exists() else None
            compiler.write_text(text)
            compiler.chmod(0o755)
            if before:
                os.utime(compiler, ns=(before.st_atime_ns, before.st_mtime_ns))

    def environment(self, state: State) -> dict[str, str]:
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("KILN_", "NVCC_", "TORCH_")) and k != "CXX"
        }
        kept |= {"XDG_CACHE_HOME": str(self.all / "cache"), "CXX": str(self.all / "bin/g++")}
        if state.environment:
            kept["NVCC_APPEND_FLAGS"] = f"-DENVIRONMENT={state.environment}"
        if state.run_path:
            kept["LD_RUN_PATH"] = f"/run/path/{state.run_path}"
        return kept

    def sources(self, state: State) -> list[str]:
        return ["a.cu", "b.cu"] if state.second else ["a.cu"]

    def user_flags(self, state: State) -> list[str]:
        if state.simple:
            return self.flags
        folder = self.folder(state)
        more = [
            "--options-file",
            f"{folder}/outer.txt",
            f"-Xcompiler=@{folder}/host.txt",
            "-include",
            f"{folder}/pre.h",
        ]
        return [*self.flags, *more]

    def defines(self, state: State) -> list[str]:
        return [
            f"-DDEFINE={state.define}",
            *([f'-DPLACE="{self.folder(state)}"'] if state.place else []),
        ]

    def libraries(self, state: State) -> list[str]:
        return (
            []
            if state.simple
            else [f"-L{self.folder(state)}/first", f"-L{self.folder(state)}/second", "-lvalue"]
        )

    def kiln_line(self, state: State) -> list[str]:
        line = [
            str(self.kiln),
            "build",
            *self.sources(state),
            "--arch",
            ARCH,
            "--json",
            "--build-dir",
            "build",
        ]
        line += [
            *self.defines(state),
            "-Ifirst",
            "-Isecond",
            *(f"--cuda-flag={flag}" for flag in self.user_flags(state)),
        ]
        line += [f"--ldflag={flag}" for flag in self.libraries(state)]
        return (
            line
            + (["--fast-math"] if state.fast_math else [])
            + (["--program"] if state.program else [])
        )

    def by_kiln(self, state: State) -> dict:
        begun = time.monotonic()
        done = subprocess.run(
            self.kiln_line(state),
            cwd=self.folder(state),
            env=self.environment(state),
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise SystemExit(f"kiln build failed:\n{done.stdout}\n{done.stderr}")
        told = json.loads(done.stdout)
        if told["rebuilt"]:  # what a killed build may be in the middle of
            self.lately = [*self.lately[-3:], time.monotonic() - begun]
        return told

    def killed(self, state: State, after_s: float) -> bool:
        process = subprocess.Popen(
            self.kiln_line(state), cwd=self.folder(state), env=self.environment(state),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        time.sleep(after_s)
        alive = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return alive

    def by_nvcc(self, state: State) -> tuple[str, dict[str, str]]:
        folder, env = self.all / "oracle", self.environment(state)
        shutil.rmtree(folder)
        folder.mkdir()
        line = [
            "nvcc",
            "-c",
            "-std=c++20",
            "-O3",
            "--expt-relaxed-constexpr",
            GENCODE,
            "-ccbin",
            str(self.all / "bin/g++"),
        ]
        line += [
            "-Xcompiler",
            "-fPIC,-fvisibility=hidden",
            *self.defines(state),
            "-DKILN_NAMESPACE=a",
            "-Ifirst",
        ]
        line += ["-Isecond", *self.user_flags(state), "--keep", "--keep-dir", str(folder)]
        line += ["--use_fast_math"] if state.fast_math else []
        found = {}
        for name in self.sources(state):
            made = folder / name.replace(".cu", ".o")
            subprocess.run(
                [*line, name, "-o", str(made)], cwd=self.folder(state), env=env, check=True
            )
            found |= bodies((folder / name.replace(".cu", ".ptx")).read_text())
        runtime = self.kiln.parents[1] / "lib/libkiln_runtime.a"
        result = folder / "oracle"
        link = [
            self.gxx,
            *([] if state.program else ["-shared"]),
            "-o",
            result,
            folder / "a.o",
            runtime,
        ]
        subprocess.run([*link, *self.libraries(state), "-ldl", "-lpthread"], env=env, check=True)
        return said_by(result, state.program), found

    def seen(self, built: dict) -> tuple[str, dict[str, str]]:
        result = Path(built.get("library") or built["program"])
        done = subprocess.run(
            [str(self.kiln), "inspect", str(result), "--ptx"],
            capture_output=True,
            text=True,
            check=True,
        )
        return said_by(result, "program" in built), bodies(done.stdout)


def said_by(result: Path, program: bool) -> str:
    """The host's texts and the run path. A library in a process of its own: those of one name would
    stay mapped."""
    code = f"import ctypes; l = ctypes.CDLL({str(result)!r})\nfor f in l.host_text, l.more_text:\n"
    code += "  f.restype = ctypes.c_char_p\n  print(f().decode())\n"
    code += "print(*(l.host_number(i) for i in range(8)))"
    line = [str(result)] if program else [sys.executable, "-I", "-S", "-c", code]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    dynamic = subprocess.run(
        ["readelf", "-d", str(result)], capture_output=True, text=True, check=True
    ).stdout
    return text + "".join(re.findall(r"R(?:UN)?PATH\).*", dynamic))


def bodies(ptx: str) -> dict[str, str]:
    """Each kernel's instructions, without lines and comments."""
    found = {}
    for match in re.finditer(r"\.entry\s+(\w+)\s*\([^)]*\)[^{]*\{(.*?)\n\}", ptx, re.DOTALL):
        lines = (" ".join(line.split("//")[0].split()) for line in match.group(2).splitlines())
        found[match.group(1)] = "\n".join(
            line for line in lines if line and not line.startswith((".loc", "$L__", ".file"))
        )
    return found
