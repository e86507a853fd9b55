# SPDX-License-Identifier: Apache-2.0
"""Does a build end that would never end, or would take all memory? Are pipes and devices read?"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")

# Each instance needs two more: the compiler never comes to an end.
ENDLESS = """
template <unsigned long long N, int D> struct Tree {
  static const int value = Tree<N * 2, D - 1>::value + Tree<N * 2 + 1, D - 1>::value;
};
template <unsigned long long N> struct Tree<N, 0> { static const int value = 1; };
extern "C" int endless() { return Tree<1, 30>::value; }
"""
KERNEL = "__global__ void kernel() {}\n"


def built(command: Path, source: Path, *options: str) -> tuple[subprocess.CompletedProcess, float]:
    begun = time.monotonic()
    done = subprocess.run(
        [command, "build", source, *options], capture_output=True, text=True, timeout=100
    )
    return done, time.monotonic() - begun


def test_a_compiler_that_takes_too_long_is_killed(command: Path, tmp_path: Path) -> None:
    source = tmp_path / "endless.cpp"
    source.write_text(ENDLESS)
    done, seconds = built(command, source, "--limit", "1")
    assert done.returncode == 1 and seconds < 30
    assert "it did not finish in 1 s (--limit)" in done.stderr
    assert "fix: raise --limit" in done.stderr


def test_a_compiler_that_takes_too_much_memory_fails(command: Path, tmp_path: Path) -> None:
    source = tmp_path / "endless.cpp"
    source.write_text(ENDLESS)
    done, _ = built(command, source, "--limit", "90", "--memory-limit", "60M")
    assert done.returncode == 3 and "memory ran out" in done.stderr, done.stderr
    done, _ = built(command, source, "--memory-limit", "much")
    assert done.returncode == 2 and "'much' is not a size" in done.stderr


@pytest.mark.parametrize("ending", ["cu", "cpp"])
def test_what_is_no_file_is_not_read(command: Path, tmp_path: Path, ending: str) -> None:
    os.mkfifo(tmp_path / "pipe.h")
    source = tmp_path / f"special.{ending}"
    for name, kind in (("/dev/zero", "a device"), ("pipe.h", "a pipe")):
        source.write_text(f'#include "{name}"\n{KERNEL if ending == "cu" else ""}')
        done, seconds = built(command, source)
        assert done.returncode == 2 and seconds < 30
        assert f"it is {kind}, not a regular file" in done.stderr
        assert "fix: name and include regular files only" in done.stderr


def test_the_null_device_and_a_pipe_of_the_shell_are_read(command: Path, tmp_path: Path) -> None:
    (tmp_path / "null.cu").write_text('#include "/dev/null"\n' + KERNEL)
    done, _ = built(command, tmp_path / "null.cu", "--arch", "8.0")
    assert done.returncode == 0, done.stderr


def test_a_c_source_is_said_to_be_compiled_as_cpp(command: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.c").write_text("int plain(void) { return 1; }\n")
    (tmp_path / "kernel.cu").write_text(KERNEL)
    done = subprocess.run(
        [command, "build", "kernel.cu", "plain.c", "--arch", "8.0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "plain.c is compiled as C++" in done.stderr


def test_device_code_of_two_files_is_said_not_to_be_linked(command: Path, tmp_path: Path) -> None:
    for text, fix in (
        (
            "extern __device__ int other();\n__global__ void k(int* p) { *p = other(); }\n",
            "define it in this .cu",
        ),
        (
            "__global__ void a() {}\n__global__ void b() { a<<<1, 1>>>(); }\n",
            "launch the kernel from host code",
        ),
        (
            'asm(".incbin \\"data.bin\\"");\n' + KERNEL,
            ".incbin looks there",
        ),
    ):
        (tmp_path / "two.cu").write_text(text)
        done, _ = built(command, tmp_path / "two.cu", "--arch", "8.0")
        assert done.returncode == 1 and fix in done.stderr, done.stderr


def test_an_undefined_symbol_has_its_name_and_a_fix_everywhere(
    command: Path, tmp_path: Path
) -> None:
    import kiln

    source = tmp_path / "lacking.cu"
    source.write_text(
        "#include <kiln/op.h>\nvoid helper(float*);\n"
        "kiln::Tensor f(const kiln::Tensor& a) { helper(nullptr); return kiln::empty_like(a); }\n"
        'KILN_OP(f, "a").fake("like(a)");\n'
    )
    with pytest.raises(kiln.LoadError) as raised:
        kiln.load(source)
    done = subprocess.run(
        [command, "call", source, "f", "ones:f32:4"], capture_output=True, text=True
    )
    for told in (str(raised.value), done.stderr):
        assert "undefined symbol: helper(float*)" in told
        assert "fix: add what defines it to the build: every source (a project)" in told
