# SPDX-License-Identifier: Apache-2.0
"""Are builds right with compilers in unusual places, behind a launcher, or with sources in folders
of unusual names?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")

SOURCE = """
__global__ void fill(int* out) { out[0] = 1; }
extern "C" __attribute__((visibility("default"))) void launch() { fill<<<1, 1>>>(nullptr); }
#ifndef __CUDA_ARCH__
#define SIDE 3
#else
#define SIDE 4
#endif
extern "C" __attribute__((visibility("default"))) int value() { return SIDE; }
"""


@pytest.fixture
def build(command: Path, tmp_path: Path):
    """Builds with an environment and a cache of its own; what kiln told, as JSON."""

    def run(source: Path, **env: str) -> dict:
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("KILN_", "NVCC", "CCACHE")) and k != "CXX"
        }
        line = [command, "build", source, "--arch", "8.0", "--name", "k", "--json", "--explain"]
        environment = kept | {"XDG_CACHE_HOME": str(tmp_path / "cache")} | env
        done = subprocess.run(line, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


def value_in(library: str) -> int:
    code = f"import ctypes; print(ctypes.CDLL({library!r}).value())"
    return int(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
    )


def search_list(driver: str | Path) -> list[Path]:
    told = subprocess.run(
        [driver, "-v", "-E", "-x", "c++", "/dev/null"], capture_output=True, text=True
    ).stderr
    lines = told.partition("#include <...>")[2].partition("End of search list")[0].splitlines()[1:]
    return [Path(os.path.normpath(line.strip())) for line in lines]


def moved_gcc(prefix: Path) -> Path:
    """The host compiler as if it were installed below `prefix`: the driver and its headers copied,
    the rest linked."""
    told = subprocess.run(
        ["g++", "-print-libgcc-file-name"], capture_output=True, text=True, check=True
    ).stdout
    real = Path(told.strip()).resolve().parent
    (prefix / "include").parent.mkdir(parents=True)
    for folder in search_list(
        "g++"
    ):  # /usr/include/c++/13: the library's are looked for beside the compiler too
        if folder.parent.name == "c++" and not (prefix / "include").exists():
            (prefix / "include").symlink_to(folder.parents[1])
    folder = prefix / "lib/gcc" / real.parent.name / real.name
    folder.mkdir(parents=True)
    for entry in real.iterdir():
        if entry.name == "include":
            shutil.copytree(entry, folder / "include")
        else:
            (folder / entry.name).symlink_to(entry)
    (prefix / "bin").mkdir()
    driver = prefix / "bin/g++"
    shutil.copy2(Path(shutil.which("g++")).resolve(), driver)
    return driver


@pytest.mark.long
def test_headers_of_a_compiler_that_is_installed_elsewhere_are_the_systems(
    build, tmp_path: Path
) -> None:
    driver = moved_gcc(tmp_path / "opt/gcc")
    if not any(folder.is_relative_to(tmp_path / "opt/gcc/lib") for folder in search_list(driver)):
        pytest.skip("this g++ does not look for its headers beside itself")
    source = tmp_path / "a.cu"
    for number, lane in ((1, "full"), (2, "device"), (3, "slice")):
        source.write_text(SOURCE.replace("out[0] = 1", f"out[0] = {number}"))
        built = build(source, CXX=str(driver))
        assert built["lane"] == lane, built["explain"]
    # The user's own header is not: a question in it that NVRTC answers otherwise keeps the slice
    # away.
    (tmp_path / "own.h").write_text("#ifdef __NVCC__\n#endif\n")
    for number, lane in ((4, "full"), (5, "device"), (6, "device")):
        source.write_text('#include "own.h"\n' + SOURCE.replace("out[0] = 1", f"out[0] = {number}"))
        built = build(source, CXX=str(driver))
        assert built["lane"] == lane, built["explain"]
    assert "__NVCC__" in built["explain"]["why_lane"]


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("ccache"), reason="no ccache")
def test_ccache_runs_in_the_mode_that_is_sound(build, tmp_path: Path) -> None:
    source, folder = tmp_path / "a.cu", tmp_path / "ccache"
    env = {"NVCC": "ccache nvcc", "CCACHE_DIR": str(folder), "KILN_CACHE_DIR": "off"}

    def hits() -> int:
        line = ["ccache", "--print-stats"]
        done = subprocess.run(
            line, env=os.environ | env, capture_output=True, text=True, check=True
        )
        counts = dict(line.split("\t") for line in done.stdout.splitlines())
        return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"])

    source.write_text(SOURCE)
    assert value_in(build(source, **env)["library"]) == 3 and hits() == 0
    shutil.rmtree(tmp_path / "cache")
    assert value_in(build(source, **env)["library"]) == 3 and hits() == 1, "ccache was not asked"
    # ccache's preprocessor sees one of nvcc's passes: elsewhere it answers with the object of
    # before this edit.
    source.write_text(SOURCE.replace("SIDE 3", "SIDE 5"))
    assert value_in(build(source, **env)["library"]) == 5
    source.write_text(SOURCE.replace("SIDE 3", "SIDE 6"))
    shutil.rmtree(tmp_path / "cache")
    assert value_in(build(source, **env)["library"]) == 6


def test_blanks_and_letters_of_other_scripts_in_a_cu(build, tmp_path: Path) -> None:
    folder = tmp_path / "mit Leerzeichen ü 核 'x'"
    folder.mkdir()
    (folder / "größe 1.h").write_text("#define SIZE 1\n")
    source = folder / "kérnel $x #1.cu"
    text = '#include "größe 1.h"\n' + SOURCE.replace("return SIDE", "return SIZE")
    for number, lane in ((1, "full"), (2, "device"), (3, "slice")):
        source.write_text(text.replace("out[0] = 1", f"out[0] = {number}"))
        built = build(source)
        assert built["lane"] == lane, built["explain"]
        assert value_in(built["library"]) == 1
    assert not build(source)["rebuilt"]
    (folder / "größe 1.h").write_text("#define SIZE 2\n")
    assert value_in(build(source)["library"]) == 2


@pytest.mark.long
def test_a_lambda_in_a_function_of_a_header_keeps_the_edit_lane(
    build, command: Path, tmp_path: Path
) -> None:
    """The flag that it needs is given, and an edit of the source's own kernel compiles device code
    alone."""
    (tmp_path / "each.h").write_text(
        "template <class F> __global__ void each(F f, int* out) { out[threadIdx.x] = "
        "f(threadIdx.x); }\n"
        "inline void twice(int* out) { each<<<1, 32>>>([=] __device__ (int i) { return 2 * i; }, "
        "out); }\n"
        "template <class T> __host__ __device__ T both(T x) { auto f = [=] __host__ __device__ (T "
        "y) { return x + y; };"
        " return f(x); }\n"
    )
    source = tmp_path / "a.cu"
    text = SOURCE.replace("launch() {", "launch() { twice(nullptr);").replace(
        "SIDE;", "both(SIDE);"
    )
    text = '#include "each.h"\n' + text
    for number, lane in ((1, "full"), (2, "device"), (3, "device")):
        source.write_text(text.replace("out[0] = 1", f"out[0] = both({number}LL) + both(2.5f)"))
        built = build(source)
        assert built["lane"] == lane, built["explain"]
        assert value_in(built["library"]) == 6
    (tmp_path / "clean").mkdir()
    clean = build(source, XDG_CACHE_HOME=str(tmp_path / "clean"))
    assert clean["lane"] == "full"

    def code(library: str) -> list[str]:
        done = subprocess.run(
            [command, "inspect", library, "--ptx"], capture_output=True, text=True, check=True
        )
        return [line for line in done.stdout.splitlines() if "out[" not in line and "/" not in line]

    assert code(built["library"]) == code(clean["library"])
