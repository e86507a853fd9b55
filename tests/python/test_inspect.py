# SPDX-License-Identifier: Apache-2.0
"""Does `kiln inspect` take every kind of target, end to end: objects, archives, wheels, projects,
packages?"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(2)

KERNEL = """\
#include <cstdio>
__global__ void __launch_bounds__(256, 3) scale(float* p, float by, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? p[i] : 0;
  __syncthreads();
  if (i < n) p[i] = tile[255 - threadIdx.x] * by;
}
__global__ void __launch_bounds__(512) other(float* p) { *p += 1; }
"""
ARCHS = [
    "-gencode",
    "arch=compute_80,code=sm_80",
    "-gencode",
    "arch=compute_90,code=[sm_90,compute_90]",
]


def run(*words: object, cwd: Path | None = None, **env: str) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def inspect(command):
    def ask(*words: object, cwd: Path | None = None, **env: str) -> list[dict]:
        return json.loads(run(command, "inspect", "--json", *words, cwd=cwd, **env))["files"]

    return ask


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """scale.o and scale.so: SASS of two architectures, PTX of one. Without lines no cubin keeps its
    PTX."""
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    folder = tmp_path_factory.mktemp("built")
    (folder / "scale.cu").write_text(KERNEL)
    run("nvcc", *ARCHS, "-Xcompiler", "-fPIC", "-c", "scale.cu", "-o", "scale.o", cwd=folder)
    run("g++", "-shared", "scale.o", "-o", "scale.so", cwd=folder)
    return folder


def kernels(file: dict) -> set[tuple]:
    return {
        (one["symbol"], one["arch"], one["registers"], one["instructions"])
        for one in file["kernels"]
    }


def test_an_object_and_a_library_have_the_same_images(inspect, built):
    files = [inspect(built / name)[0] for name in ("scale.o", "scale.so")]
    assert [file["kind"] for file in files] == ["object", "shared library"]
    for file in files:
        kinds = sorted((image["kind"], image["arch"]) for image in file["images"])
        assert kinds == [("ptx", "compute_90"), ("sass", "sm_80"), ("sass", "sm_90")]
        assert sum(piece["bytes"] for piece in file["pieces"]) == file["bytes"]
    assert kernels(files[0]) == kernels(files[1])
    assert len(kernels(files[0])) == 4


def test_lto_in_a_fat_binary(inspect, built):
    code = ["-rdc=true", "-gencode", "arch=compute_90,code=lto_90"]
    run("nvcc", *code, "-fatbin", "scale.cu", "-o", "lto.fatbin", cwd=built)
    file = inspect(built / "lto.fatbin")[0]
    assert [(image["kind"], image["arch"]) for image in file["images"]] == [("lto", "LTO sm_90")]
    assert {one["service"] for one in file["gpus"]} == {"none"}


def test_min_blocks_are_known_where_ptx_of_the_architecture_is(inspect, built):
    known = {
        (one["symbol"], one["arch"]): one["min_blocks"]
        for one in inspect(built / "scale.so")[0]["kernels"]
    }
    scale, other = (next(name for name, _ in known if word in name) for word in ("scale", "other"))
    assert known[scale, "sm_90"] == 3
    assert known[scale, "sm_80"] is None  # bounds may depend on the architecture
    assert known[other, "sm_90"] is None


def test_an_archive_is_its_objects(command, inspect, built, tmp_path):
    (tmp_path / "a_name_of_more_than_sixteen_letters.c").write_text("int f(void) { return 1; }\n")
    run("gcc", "-c", "a_name_of_more_than_sixteen_letters.c", cwd=tmp_path)
    shutil.copy(built / "scale.o", tmp_path)
    run("ar", "rcs", "libboth.a", "a_name_of_more_than_sixteen_letters.o", "scale.o", cwd=tmp_path)
    files = inspect("libboth.a", cwd=tmp_path)
    assert [file["name"] for file in files] == ["a_name_of_more_than_sixteen_letters.o", "scale.o"]
    assert files[0]["images"] == []
    assert kernels(files[1]) == kernels(inspect("scale.o", cwd=tmp_path)[0])
    assert [file["member"] for file in inspect("libboth.a", "--member", "scale", cwd=tmp_path)] == [
        "scale.o"
    ]
    text = run(command, "inspect", "libboth.a", cwd=tmp_path)
    assert "no GPU code" in text and "scale(float*, float, int)" in text


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """The folder of packages of a Python of its own, and the environment in which `python3` is that
    one."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    env = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    packages = run(
        "python3", "-c", "import sysconfig; print(sysconfig.get_path('platlib'))", **env
    ).strip()
    return Path(packages), env


def write_wheel(path: Path, members: dict[str, Path]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, file in members.items():
            wheel.write(file, name)
        wheel.writestr("pkg-1.dist-info/WHEEL", "Wheel-Version: 1.0\n")


@pytest.fixture(scope="module")
def wheel(built, tmp_path_factory) -> Path:
    """A library that finds another member by $ORIGIN, that one in `.data/platlib`; and a CUDA
    library."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "inner.c").write_text("int inner(void) { return 1; }\n")
    (folder / "outer.c").write_text(
        "int inner(void); int missing(void); int outer(void) { return inner() + missing(); }\n"
    )
    run(
        "gcc",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libinner.so.1",
        "inner.c",
        "-o",
        "libinner.so.1",
        cwd=folder,
    )
    runpath = "-Wl,-rpath,$ORIGIN/nowhere:$ORIGIN/../pkg.libs,--enable-new-dtags"
    run(
        "gcc", "-shared", "-fPIC", "outer.c", "libinner.so.1", runpath, "-o", "outer.so", cwd=folder
    )
    path = folder / "pkg-1-py3-none-linux_any.whl"
    names = {
        "pkg/outer.so": "outer.so",
        "pkg-1.data/platlib/pkg.libs/libinner.so.1": "libinner.so.1",
    }
    write_wheel(
        path,
        {member: folder / file for member, file in names.items()}
        | {"pkg/scale.so": built / "scale.so"},
    )
    return path


def test_origin_of_a_wheels_member_is_where_pip_puts_it(command, inspect, wheel, environment):
    packages, env = environment
    symbols = inspect(wheel, "--symbols", "--member", "outer", **env)[0]["symbols"]
    assert symbols["origin"] == str(packages / "pkg")
    found = next(one for one in symbols["libraries"] if one["name"] == "libinner.so.1")
    assert found["member"] == "pkg-1.data/platlib/pkg.libs/libinner.so.1"
    assert found["path"] == str(packages / "pkg.libs/libinner.so.1")
    assert found["by"] == "RUNPATH $ORIGIN/../pkg.libs" and found["found_by_loader"]
    providers = {one["name"]: one["provider"] for one in symbols["needed"]}
    assert providers["inner"] == "libinner.so.1"
    assert providers["missing"] is None
    text = run(command, "inspect", wheel, "--symbols", "--member", "outer", **env)
    assert (
        "in this wheel: pkg-1.data/platlib/pkg.libs/libinner.so.1 (RUNPATH $ORIGIN/../pkg.libs)"
        in text
    )
    # As ldd sees it once it is installed.
    (packages / "pkg").mkdir()
    (packages / "pkg.libs").mkdir()
    with zipfile.ZipFile(wheel) as members:
        (packages / "pkg/outer.so").write_bytes(members.read("pkg/outer.so"))
        (packages / "pkg.libs/libinner.so.1").write_bytes(
            members.read("pkg-1.data/platlib/pkg.libs/libinner.so.1")
        )
    where = re.search(r"libinner\.so\.1 => (\S+)", run("ldd", packages / "pkg/outer.so")).group(1)
    assert Path(where).resolve() == Path(found["path"]).resolve()


def test_a_wheels_kernels_are_its_librarys(inspect, wheel, built, tmp_path):
    files = {file["name"]: file for file in inspect(wheel)}
    assert sorted(files) == [
        "pkg-1.data/platlib/pkg.libs/libinner.so.1",
        "pkg/outer.so",
        "pkg/scale.so",
    ]
    assert files["pkg/scale.so"]["bytes"] == (built / "scale.so").stat().st_size
    assert kernels(files["pkg/scale.so"]) == kernels(inspect(built / "scale.so")[0])
    inspect(
        wheel,
        "--member",
        "scale",
        "--html",
        tmp_path / "page.html",
        "--extract",
        tmp_path / "images",
    )
    assert (tmp_path / "page.html").stat().st_size < 1_000_000
    assert len(list((tmp_path / "images").iterdir())) == 3


def test_libraries_that_need_each_other(command, inspect, tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.c").write_text(f"int {name}(void) {{ return 1; }}\n")
        run("gcc", "-shared", "-fPIC", f"{name}.c", "-o", f"lib{name}.so", cwd=tmp_path)
    for name, other in (("one", "two"), ("two", "one")):
        words = [
            "-Wl,--no-as-needed",
            f"-Wl,-soname,lib{name}.so",
            "-Wl,-rpath,$ORIGIN",
            f"lib{other}.so",
        ]
        run("gcc", "-shared", "-fPIC", f"{name}.c", *words, "-o", f"lib{name}.so.new", cwd=tmp_path)
    for name in ("one", "two"):
        (tmp_path / f"lib{name}.so.new").rename(tmp_path / f"lib{name}.so")
    symbols = inspect("libone.so", "--symbols", cwd=tmp_path)[0]["symbols"]
    assert [one["name"] for one in symbols["libraries"]].count("libtwo.so") == 1
    assert "libone.so" not in [one["name"] for one in symbols["libraries"]]
    text = run(command, "inspect", "libone.so", "--symbols", cwd=tmp_path)
    assert "    libone.so  (above)" in text


def test_a_project_is_built_first(command, inspect, tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    run(command, "new", "twice", cwd=tmp_path)
    file = inspect("twice", "--arch", "9.0", "--overview", "--kernels", "--symbols", cwd=tmp_path)[
        0
    ]
    assert file["kind"] == "shared library"
    assert {image["arch"] for image in file["images"]} == {"sm_90", "compute_90"}
    assert file["kernels"]
    assert all(one["provider"] or one["weak"] for one in file["symbols"]["needed"]), (
        "nobody provides a symbol"
    )


def test_an_installed_package(inspect):
    import torch

    files = inspect(
        "torch",
        "--overview",
        "--member",
        "libc10.so",
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    )
    assert [file["name"] for file in files] == ["lib/libc10.so"]
    assert Path(files[0]["path"]) == Path(torch.__file__).parent / "lib/libc10.so"
    assert files[0]["bytes"] == Path(files[0]["path"]).stat().st_size


def test_a_library_that_links_torch_without_a_path_to_it(command, inspect, tmp_path):
    """`libc10.so: cannot open shared object file`, explained."""
    import torch

    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    lib = Path(torch.__file__).parent / "lib"
    (tmp_path / "x.cpp").write_text(
        "namespace c10 { struct Error2 { Error2(); }; namespace cuda { int device_count(); } }\n"
        "int f() { c10::Error2(); return c10::cuda::device_count(); }\n"
    )
    words = ["-shared", "-fPIC", "x.cpp", "-Wl,--no-as-needed", f"-L{lib}", "-lc10"]
    run("g++", *words, "-o", "bare.so", cwd=tmp_path)
    run("g++", *words, f"-Wl,-rpath,{lib}", "-o", "led.so", cwd=tmp_path)
    bare, led = (
        inspect(f"{name}.so", "--symbols", cwd=tmp_path, **here)[0]["symbols"]
        for name in ("bare", "led")
    )
    found = {
        name: next(one for one in view["libraries"] if one["name"] == "libc10.so")
        for name, view in (("bare", bare), ("led", led))
    }
    assert not found["bare"]["found_by_loader"] and found["led"]["found_by_loader"]
    assert found["led"]["by"].startswith(("RUNPATH", "RPATH"))
    assert any("libc10.so: cannot open shared object file" in line for line in bare["advice"])
    assert not any("cannot open" in line for line in led["advice"])
    why = next(one["why"] for one in bare["needed"] if "Error2" in one["name"])
    assert torch.__version__ in why


def keys_of(value: object) -> set[str]:
    """Names of fields; `mix` maps classes of instructions, which are listed by themselves."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(keys_of(inner) for inner in value.values()))


def test_every_field_of_the_json_is_documented(command, built):
    reference = (Path(__file__).parents[2] / "docs/reference/inspect-json.md").read_text()
    views = ["--overview", "--kernels", "--ptx", "--sass", "--all-symbols"]
    answer = json.loads(run(command, "inspect", built / "scale.so", *views, "--json"))
    diff = json.loads(run(command, "diff", built / "scale.so", built / "scale.so", "--json"))
    documented = set(re.findall(r"\w+", reference))
    for kernel in diff["kernels"]:
        kernel["figures"], kernel["mix"] = (
            list(kernel["figures"].values()),
            list(kernel["mix"].values()),
        )
    diff["groups"] = list(diff["groups"].values())
    assert not (keys_of(answer) | keys_of(diff)) - documented


def test_ptx_of_a_source_that_includes_torch(command, tmp_path):
    """No include path is given by hand."""
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    pytest.importorskip("torch")
    (tmp_path / "k.cu").write_text(
        "#include <c10/macros/Macros.h>\n"
        "C10_LAUNCH_BOUNDS_2(128, 4) __global__ void k(float* p) { p[threadIdx.x] *= 2; }\n"
    )
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    text = run(command, "inspect", "k.cu", "--ptx", "--arch", "9.0", cwd=tmp_path, **here)
    assert ".visible .entry _Z1kPf(" in text and ".minnctapersm 4" in text


def test_diff_says_what_an_edit_did(command, tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    (tmp_path / "k.cu").write_text(
        "__global__ void k(float* p, int n) { float s = 0;\n"
        "#ifdef AFTER\n#pragma unroll\n  for (int i = 0; i < 16; ++i) s += p[i * n] * p[i];\n"
        "#else\n  s = p[n];\n#endif\n  p[threadIdx.x] = s; }\n"
    )
    for name, words in (("before", []), ("after", ["-DAFTER"])):
        run("nvcc", "-cubin", "-arch=sm_90", *words, "k.cu", "-o", f"{name}.cubin", cwd=tmp_path)
    diff = json.loads(
        run(command, "diff", "before.cubin", "after.cubin", "--sass", "--json", cwd=tmp_path)
    )
    kernel = diff["kernels"][0]
    assert kernel["change"] == "more_resources"
    for figure in ("registers", "instructions"):
        assert kernel["figures"][figure]["after"] > kernel["figures"][figure]["before"]
    assert any(line.startswith("+") for block in kernel["blocks"] for line in block["lines"])
    same = json.loads(run(command, "diff", "after.cubin", "after.cubin", "--json", cwd=tmp_path))
    assert [one["change"] for one in same["kernels"]] == ["same"]
    assert "more resources" in run(command, "diff", "before.cubin", "after.cubin", cwd=tmp_path)
