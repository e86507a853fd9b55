# SPDX-License-Identifier: Apache-2.0
"""Does an edit of a kernel's body reach everyone who looks: a running process, a call, readers of
the library?"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")

SOURCE = """
#include <kiln/op.h>
__global__ void squares(float* out, int n) { out[0] = 1; }
kiln::Tensor f(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  squares<<<1, 1, 0, kiln::stream(a)>>>(out.data<float>(), static_cast<int>(out.numel()));
  return out;
}
KILN_OP(f, "a").fake("like(a)");
"""


def test_an_edit_that_grows_is_seen_by_a_process_and_by_readers(
    command: Path, tmp_path: Path
) -> None:
    import kiln
    import torch

    source = tmp_path / "squares.cu"
    source.write_text(SOURCE)

    def built() -> dict:
        done = subprocess.run(
            [command, "build", source, "--json"], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def stores() -> int:
        line = [command, "inspect", built()["library"], "--ptx"]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout.count(
            "st.global"
        )

    zeros = torch.zeros(9, device=kiln.device())
    module = kiln.load(source)
    assert module.f(zeros)[0].item() == 1 and stores() == 1
    for number, lane in ((3, "device"), (4, "slice")):
        # More code than was linked: it finds no room in its place.
        body = "".join(f"out[{i}] = {i * i + number} * (n == 9);" for i in range(9))
        source.write_text(SOURCE.replace("out[0] = 1;", body))
        assert built()["lane"] == lane
        module.reload()
        assert module.f(zeros).tolist() == [i * i + number for i in range(9)]
        assert stores() == 9
    source.write_text(SOURCE)
    module.reload()
    assert module.f(zeros)[0].item() == 1 and stores() == 1


def test_a_comment_after_a_slice_compiles_nothing(command: Path, tmp_path: Path) -> None:
    """What NVRTC compiled is in no object file: the full lane would have to compile it anew."""
    source = tmp_path / "commented.cu"

    def built(comment: str, value: int) -> dict:
        text = SOURCE.replace("out[0] = 1;", f"out[0] = {value};  // {comment}\n")
        source.write_text(f"// {comment}\n{text}")
        done = subprocess.run(
            [command, "build", source, "--json"], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def code_of(told: dict) -> str:
        line = [command, "inspect", told["library"], "--ptx"]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout

    assert built("one", 1)["lane"] == "full"
    assert built("two", 1)["lane"] == "none"
    assert built("two", 2)["lane"] == "device"
    sliced = built("two", 3)
    code = code_of(sliced)
    assert sliced["lane"] == "slice"
    commented = built("another comment", 3)
    assert commented["lane"] == "none" and not commented["steps"] and code_of(commented) == code
    edited = built("one comment more", 4)
    assert edited["lane"] == "slice" and code_of(edited) != code


QUIET = """
__global__ void first(int* out) { out[0] = __LINE__; }
extern "C" __attribute__((visibility("default"))) int value() { return 1; }
"""


def test_an_added_comment_line_compiles_device_code_alone(command: Path, tmp_path: Path) -> None:
    """Above and inside of a kernel, where nothing of the host tells its line; the kernel's line is
    the new one."""
    source = tmp_path / "quiet.cu"

    def built(text: str) -> tuple[str, str]:
        source.write_text(text)
        done = subprocess.run(
            [command, "build", source, "--json"], capture_output=True, text=True, check=True
        )
        told = json.loads(done.stdout)
        line = [command, "inspect", told["library"], "--ptx"]
        return told["lane"], subprocess.run(line, capture_output=True, text=True, check=True).stdout

    assert built(QUIET)[0] == "full"
    lane, ptx = built("// a line\n" + QUIET)
    assert lane == "device" and "%r1, 3;" in ptx
    lane, ptx = built("// a line\n// another\n" + QUIET.replace("{ out", "{\n  // inside\n  out"))
    assert lane in ("device", "slice") and "%r1, 6;" in ptx


# Each body is one that something far from it makes the host's, or that has an effect on what
# follows. `host_numbers` tells both.
REACHING = """
#include "member.h"
#define ID __COUNTER__
#define MODE 1
#pragma push_macro("MODE")
#undef MODE
#define MODE 2
__device__ int Member::value() const { return 10; }
__host__ __device__ int forward();
__device__ int forward() { return 20; }
template <class T> __host__ __device__ T general(T x);
template <class T> __device__ T general(T x) { return x + 30; }
template <class T> __host__ __device__ T special(T x) { return x; }
template <> __device__ int special<int>(int x) { return x + 40; }
#define BOTH __host__ __device__
struct Hidden { BOTH int value() const; };
__device__ int Hidden::value() const { return 50; }
__device__ int Member::on_device() const { return 60; }
template <class T> __device__ T of_device(T x);
template <> __device__ int of_device<int>(int x) { return x + 70; }
__global__ void kernel(int* out) {
  out[0] = Member().on_device() + of_device(1);

}
extern "C" __attribute__((visibility("default"))) int host_number(int i) {
  int all[] = {Member().value(), forward(), general(0), special(0), Hidden().value(), __COUNTER__,
               MODE};
  return all[i];
}
"""
MEMBER = """struct Member {
  __host__ __device__ int value() const;
  __device__ int on_device() const;
};
"""
NUMBERS = [10, 20, 30, 40, 50, 0, 2]
IN_KERNEL = "\n  out[0] = Member().on_device() + of_device(1);\n\n"
# The edit, and which of the host's numbers it changes to what.
REACHES = {
    "a member declared for both": ("return 10;", "return 11;", 0, 11),
    "a function declared for both": ("return 20;", "return 21;", 1, 21),
    "a template declared for both": ("x + 30;", "x + 31;", 2, 31),
    "a specialisation of a template of both": ("x + 40;", "x + 41;", 3, 41),
    "a member that a macro declares for both": ("return 50;", "return 51;", 4, 51),
    "a macro that counts": (IN_KERNEL, "\n  out[0] = ID;\n\n", 5, 1),
    "a pragma": (IN_KERNEL, '\n  out[0] = 1;\n#pragma pop_macro("MODE")\n', 6, 1),
    "a pragma operator": (IN_KERNEL, '\n  _Pragma("pop_macro(\\"MODE\\")")\n\n', 6, 1),
    "a digraph": (IN_KERNEL, "\n%:undef MODE\n%:define MODE 3\n", 6, 3),
}
DEVICE_ONLY = {
    "a member of the device": ("return 60;", "return 61;"),
    "a specialisation of a template of the device": ("x + 70;", "x + 71;"),
    "a kernel": (
        IN_KERNEL,
        '\n  _Pragma("unroll")\n  for (;;) out[0] = MODE + Member().on_device() + of_device(1);\n',
    ),
}


def numbers_of(library: str) -> list[int]:
    code = f"import ctypes; f = ctypes.CDLL({library!r}).host_number\n"
    code += f"print(*(f(i) for i in range({len(NUMBERS)})))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


@pytest.fixture(scope="module")
def reaching(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict]:
    """Builds the text and returns what the command told."""
    source = tmp_path_factory.mktemp("reaching") / "reaching.cu"
    (source.parent / "member.h").write_text(MEMBER)

    def built(text: str) -> dict:
        source.write_text(text)
        done = subprocess.run(
            [command, "build", source, "--json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return built


@pytest.mark.parametrize("name", REACHES)
def test_a_body_that_the_host_depends_on_is_no_device_code_alone(
    reaching: Callable[[str], dict], name: str
) -> None:
    before, after, which, value = REACHES[name]
    assert REACHING.count(before) == 1
    assert numbers_of(reaching(REACHING)["library"]) == NUMBERS
    told = reaching(REACHING.replace(before, after))
    wanted = NUMBERS.copy()
    wanted[which] = value
    assert numbers_of(told["library"]) == wanted, told["lane"]


@pytest.mark.parametrize("name", DEVICE_ONLY)
def test_a_body_of_the_device_alone_takes_the_edit_lane(
    reaching: Callable[[str], dict], name: str
) -> None:
    before, after = DEVICE_ONLY[name]
    assert REACHING.count(before) == 1
    reaching(REACHING)
    told = reaching(REACHING.replace(before, after))
    assert told["lane"] in ("device", "slice"), told
    assert numbers_of(told["library"]) == NUMBERS


LINES = """
inline int line(int here = __builtin_LINE()) { return here; }
__global__ void kernel(int* out) { out[0] = 1; }
extern "C" __attribute__((visibility("default"))) int host_number(int i) { return line() + i; }
"""


def test_a_function_that_tells_its_callers_line_is_compiled_again(
    command: Path, tmp_path: Path
) -> None:
    source = tmp_path / "lines.cu"
    for text, line in ((LINES, 4), (LINES.replace("{ out", "{\n out"), 5)):
        source.write_text(text)
        done = subprocess.run(
            [command, "build", source, "--json"], capture_output=True, text=True, check=True
        )
        assert numbers_of(json.loads(done.stdout)["library"])[0] == line


# NVRTC has neither of the macros, and another fmax.
CONDITIONS = """
{condition}
__global__ void kernel(float* out, int n) {{ out[0] = {value}; }}
"""
DIFFERENT = {
    "a limit": (
        "#if defined(INT_MAX)\n#define LIMIT 1\n#else\n#define LIMIT 2\n#endif",
        "LIMIT",
    ),
    "a constant": ("#ifndef M_PI\n#define M_PI 3.14159265f\n#endif", "1e9f * n / M_PI"),
    "a name behind a macro": (
        "#define MOST INT_MAX\n#if MOST > 9\n#define LIMIT 1\n#else\n#define LIMIT 2\n#endif",
        "LIMIT",
    ),
    "an overload": ("", "fmax(out[1], n) / 3"),
    "a name of the compiler": (
        "#define NAME(x) __##x##__",
        "sizeof(long) * __CHAR_BIT__",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_nvrtc_compiles_nothing_that_it_understands_otherwise(
    command: Path, tmp_path: Path, name: str
) -> None:
    condition, value = DIFFERENT[name]
    source = tmp_path / "different.cu"

    def ptx(*options: str) -> str:
        done = subprocess.run(
            [command, "build", source, "--arch", "8.0", "--json", *options],
            capture_output=True,
            text=True,
            check=True,
        )
        library = json.loads(done.stdout)["library"]
        line = [command, "inspect", library, "--ptx"]
        text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        return re.sub(r"//.*|\.loc.*|\.file.*", "", text[text.index(".entry") :]).split("}}")[0]

    # The first is linked, the second shows what NVRTC makes of it, the third uses the macro.
    for number in (1, 2):
        source.write_text(CONDITIONS.format(condition=condition, value=number))
        ptx()
    source.write_text(CONDITIONS.format(condition=condition, value=value))
    edited = ptx()
    assert edited == ptx("--fresh", "--build-dir", str(tmp_path / "clean"))
