# SPDX-License-Identifier: Apache-2.0
"""Does `kiln doctor` find faults that are really there, and leave a good machine in peace?"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(2)

OLD_TORCH_SYMBOL = "_ZN3c104impl3cow14delete_contextEPv"  # torch 2.1's
OLD_STRING_SYMBOL = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"


@pytest.fixture
def surroundings(tmp_path) -> dict[str, str]:
    """A machine on which everything is chosen well; a test spoils one thing."""
    for name in ("bin", "home"):
        (tmp_path / name).mkdir()
    kept = {name: os.environ[name] for name in ("CUDA_HOME",) if name in os.environ}
    return kept | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "KILN_PYTHON": sys.executable,
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "TORCH_CUDA_ARCH_LIST": "9.0",
        "MAX_JOBS": "1",
    }


@pytest.fixture
def doctor(command, surroundings, tmp_path):
    """doctor(words, NAME=value...) -> exit code and the findings by name."""

    def ask(
        *words: object, before: str = "", **variables: str | None
    ) -> tuple[int, dict[str, dict]]:
        env = {
            name: value for name, value in (surroundings | variables).items() if value is not None
        }
        line = f'{before}exec "$@"'
        done = subprocess.run(
            [
                "/bin/sh",
                "-c",
                line,
                "sh",
                str(command),
                "doctor",
                "--no-compile",
                "--json",
                *map(str, words),
            ],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode in (0, 1), f"{done.returncode}\n{done.stdout}{done.stderr}"
        return done.returncode, {row["name"]: row for row in json.loads(done.stdout)["checks"]}

    return ask


def program(tmp_path: Path, name: str, script: str) -> Path:
    path = tmp_path / "bin" / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return path


def library(tmp_path: Path, name: str, code: str = "", *options: object) -> Path:
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    out = tmp_path / name
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", out, *map(str, options)],
        input=code,
        text=True,
        check=True,
    )
    return out


def expect(found: dict[str, dict], name: str, verdict: str, reason: str, fix: str) -> None:
    row = found[name]
    assert row["verdict"] == verdict, row
    assert reason in row["reason"] and fix in row["fix"], row


def test_no_false_alarm(doctor):
    if not (shutil.which("ninja") and shutil.which("nvcc")):
        pytest.skip("not a good machine: no ninja or nvcc")
    code, found = doctor()
    assert code == 0
    assert [row for row in found.values() if row["verdict"] in ("warning", "fault")] == []
    assert len(found) >= 30


def test_two_seconds_of_cpu(command, surroundings, tmp_path):
    # CPU time, of it and of all that it starts: other work on the machine does not count.
    before = os.times()
    subprocess.run(
        [str(command), "doctor", "--no-compile"],
        env=surroundings,
        cwd=tmp_path,
        capture_output=True,
    )
    after = os.times()
    assert (
        after.children_user + after.children_system - before.children_user - before.children_system
        < 2
    )


def test_a_path_that_leads_nowhere(doctor, tmp_path):
    if not Path("/usr/bin/ninja").exists():
        pytest.skip("ninja is not in /usr/bin")
    # It is there, and a shell does not find it: never "missing".
    _, found = doctor(PATH=str(tmp_path / "bin"))
    expect(
        found,
        "ninja",
        "warning",
        "/usr/bin/ninja, which is not on PATH",
        "export PATH=/usr/bin:$PATH",
    )


def test_ninja_removed(doctor, command, surroundings, tmp_path):
    (tmp_path / "nothing").write_text("")
    real = shutil.which("ninja", path="/usr/local/bin:/usr/bin:/bin")
    names = sorted(
        {
            str(Path(folder) / "ninja")
            for folder in ("/usr/local/bin", "/usr/bin")
            if (Path(folder) / "ninja").exists()
        }
    )
    hide = " && ".join(f"mount --bind {tmp_path}/nothing {name}" for name in names)
    unshare = ["unshare", "-r", "-m", "/bin/sh", "-c"]
    if (
        not real
        or not shutil.which("unshare")
        or subprocess.run([*unshare, hide], capture_output=True).returncode
    ):
        pytest.skip("no mount namespaces here")
    words = f"{hide} && PATH={tmp_path}/bin:/usr/bin:/bin exec {command} doctor --no-compile --json"
    done = subprocess.run(
        [*unshare, words],
        env=surroundings | {"KILN_PYTHON": "/usr/bin/python3"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    expect(
        {row["name"]: row for row in json.loads(done.stdout)["checks"]},
        "ninja",
        "fault",
        "not on PATH",
        "kiln setup",
    )


@pytest.mark.parametrize(
    ("script", "reason"),
    [("echo 1.8.2", "ninja 1.8.2"), ("echo no libz >&2; exit 127", "it ended with 127: no libz")],
)
def test_a_bad_ninja(doctor, tmp_path, script, reason):
    program(tmp_path, "ninja", script)
    code, found = doctor()
    assert code == 1
    expect(found, "ninja", "fault", reason, "kiln setup")


def test_an_old_nvcc(doctor, tmp_path):
    version = "Cuda compilation tools, release 11.8, V11.8.89"
    answers = f'case "$1" in --version) echo "{version}";; *arch) echo compute_80;; esac\n'
    nvcc = program(tmp_path, "nvcc", answers)
    code, found = doctor(NVCC=str(nvcc), CUDA_HOME=None)
    assert code == 1
    expect(
        found,
        "arch-supported",
        "fault",
        "nvcc 11.8 does not support",
        "remove 9.0 from TORCH_CUDA_ARCH_LIST",
    )
    expect(found, "cuda-home", "warning", "no include/cuda_runtime.h", "kiln setup")
    if found["cuda-major"]["verdict"] != "skip":
        expect(found, "cuda-major", "warning", "nvcc is CUDA 11.8", "build with kiln")


def test_a_cuda_home_that_is_empty(doctor, tmp_path):
    code, found = doctor(CUDA_HOME=str(tmp_path / "home"))
    assert code == 1
    expect(found, "cuda-home", "fault", "has no bin/nvcc", "")


def test_variables(doctor, tmp_path):
    program(tmp_path, "g++", 'echo "g++ (GCC) 99.1.0"')
    code, found = doctor(
        TORCH_CUDA_ARCH_LIST="3.5",
        MAX_JOBS="4000",
        NVCC_APPEND_FLAGS="--threads 8",
        CXXFLAGS="-std=c++14",
        CXX=str(tmp_path / "bin/g++"),
    )
    assert code == 1
    expect(found, "arch-supported", "fault", "requests 3.5", "remove 3.5 from")
    expect(found, "host-compiler", "fault", "g++ 99.1.0", "export NVCC_CCBIN=g++-")
    expect(found, "cxx-standard", "fault", "-std=c++14 in CXXFLAGS", "remove -std=c++14 from")
    expect(found, "memory", "warning", "MAX_JOBS=4000", "export MAX_JOBS=")
    expect(found, "job-threads", "warning", "4000 jobs x 8 threads", "MAX_JOBS=")


def test_no_gpu_and_no_architecture(doctor):
    if Path("/dev/nvidiactl").exists():
        pytest.skip("a GPU is here")
    _, found = doctor(TORCH_CUDA_ARCH_LIST=None)
    if found["cuda-major"]["verdict"] == "skip":
        pytest.skip("no torch for CUDA here")
    expect(found, "arch-pinned", "warning", "IndexError", "export TORCH_CUDA_ARCH_LIST='8.0'")


def test_little_memory(doctor):
    _, found = doctor(before="ulimit -v 2000000; ")
    expect(found, "memory", "warning", "2.0 GB (ulimit -v)", "ulimit -v unlimited")


def test_a_python_without_headers(doctor, tmp_path):
    answer = {
        "version": "3.12.1",
        "include": "/nowhere",
        "header": False,
        "prefix": "/usr",
        "packages": [],
        "torch": "",
    }
    python = program(tmp_path, "python", f"echo '{json.dumps(answer)}'")
    _, found = doctor(KILN_PYTHON=str(python))
    expect(
        found, "python-headers", "warning", "/nowhere has no Python.h", "apt install python3.12-dev"
    )


def test_ccache_before_nvcc(doctor, tmp_path):
    program(
        tmp_path,
        "ccache",
        'case "$1" in --version) echo "ccache version 4.8";; --get-config) echo false;; '
        '--print-stats) printf "direct_cache_hit\\t0\\ncache_miss\\t300\\n";; *) exec "$@";; esac',
    )
    _, found = doctor(NVCC="ccache nvcc")
    expect(found, "ccache-depend", "warning", "without depend mode", "export CCACHE_DEPEND=1")
    expect(found, "cache-hits", "warning", "ccache had 0 hits in 300", "ccache --show-stats")
    assert doctor(NVCC="ccache nvcc", CCACHE_DEPEND="1")[1]["ccache-depend"]["verdict"] == "ok"


def test_a_lock_without_owner(doctor, command, surroundings, tmp_path):
    lock = tmp_path / "extensions" / "add" / "lock"
    lock.parent.mkdir(parents=True)
    held = lock.open("w")
    where = str(tmp_path / "extensions")
    assert doctor(TORCH_EXTENSIONS_DIR=where)[1]["stale-lock"]["verdict"] == "ok"
    held.close()
    code, found = doctor(TORCH_EXTENSIONS_DIR=where)
    assert code == 1
    expect(found, "stale-lock", "fault", "no process holds", f"rm {lock}")
    for words, left in ((["--dry-run"], True), ([], False)):
        done = subprocess.run(
            [str(command), "doctor", "--no-compile", "--fix", *words],
            env=surroundings | {"TORCH_EXTENSIONS_DIR": where},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert f"remove {lock}" in done.stdout and lock.exists() == left, done.stdout + done.stderr


def test_a_cache_that_cannot_be_written(doctor, tmp_path):
    (tmp_path / "file").write_text("")
    code, found = doctor(KILN_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert code == 1 and found["cache-folder"]["verdict"] == "fault", found["cache-folder"]


def test_a_second_cudart(doctor, tmp_path):
    for name in ("libcudart.so.11", "libcudart.so.10"):
        (tmp_path / name).write_bytes(b"\0" * 4096)
    _, found = doctor(LD_LIBRARY_PATH=str(tmp_path))
    if found["cuda-major"]["verdict"] != "skip":
        expect(
            found,
            "two-cudarts",
            "warning",
            "LD_LIBRARY_PATH",
            f"remove {tmp_path} from LD_LIBRARY_PATH",
        )
    files = [(tmp_path / name).open("r+b") for name in ("libcudart.so.11", "libcudart.so.10")]
    maps = [mmap.mmap(file.fileno(), 0) for file in files]
    code, found = doctor("--pid", os.getpid())
    assert code == 1 and len(maps) == 2
    expect(found, "two-cudarts", "fault", f"process {os.getpid()} has two CUDA runtimes", "kiln")


def test_damaged_and_foreign_libraries(doctor, tmp_path):
    good = library(tmp_path, "good.so", "int one(void) { return 1; }")
    code, found = doctor(good)
    assert code == 0, found
    content = bytearray(good.read_bytes())
    (tmp_path / "short.so").write_bytes(content[:200])
    code, found = doctor(tmp_path / "short.so")
    assert code == 1
    expect(found, "cpu", "fault", "cannot be read", "again")
    machine = 183 if content[18] == 62 else 62
    content[18] = machine
    (tmp_path / "foreign.so").write_bytes(content)
    code, found = doctor(tmp_path / "foreign.so")
    assert code == 1
    expect(found, "cpu", "fault", "is for " + {183: "aarch64", 62: "x86_64"}[machine], "built for")


def test_a_library_of_torch(doctor, tmp_path):
    fake = tmp_path / "link"
    fake.mkdir()
    library(
        tmp_path,
        "link/libc10.so",
        f"void {OLD_TORCH_SYMBOL}(void) {{}} void {OLD_STRING_SYMBOL}(void) {{}}",
    )
    names = (OLD_TORCH_SYMBOL, OLD_STRING_SYMBOL)
    code = "".join(
        f"extern void {name}(void); void f{at}(void) {{ {name}(); }} "
        for at, name in enumerate(names)
    )
    ours = library(tmp_path, "ours.so", code, f"-L{fake}", "-lc10")
    exit_code, found = doctor(ours)
    assert exit_code == 1
    if found["string-abi"]["verdict"] == "fault":
        expect(found, "libc10", "warning", "needs libc10.so", "import torch before it")
        expect(
            found,
            "torch-symbols",
            "fault",
            "built for torch 2.1 or older",
            "install torch 2.1 or older",
        )
        expect(found, "string-abi", "fault", "old std::string", "_GLIBCXX_USE_CXX11_ABI")
    else:
        expect(found, "libc10", "fault", "no torch is installed", "pip install torch")


def test_system_libraries_too_old(doctor, tmp_path):
    def versioned(soname: str, version: str, symbol: str, where: str) -> Path:
        (tmp_path / where).mkdir(exist_ok=True)
        script = tmp_path / where / "map"
        script.write_text(f"{version} {{ global: {symbol}; }};")
        return library(
            tmp_path,
            f"{where}/{soname}",
            f"void {symbol}(void) {{}}",
            f"-Wl,-soname,{soname}",
            f"-Wl,--version-script={script}",
        )

    libc = versioned("libc.so.6", "GLIBC_9.99", "later", "new")
    code = "extern void later(void); void f(void) { later(); }"
    needs = library(tmp_path, "needs.so", code, "-nostdlib", libc)
    exit_code, found = doctor(needs)
    assert exit_code == 1
    expect(found, "glibc", "fault", "needs GLIBC_9.99", "older system")
    new = versioned("libstdc++.so.6", "GLIBCXX_3.4.29", "later", "new")
    versioned("libstdc++.so.6", "GLIBCXX_3.4.1", "sooner", "old")
    needs = library(tmp_path, "cxx.so", code, new)
    exit_code, found = doctor(needs, LD_LIBRARY_PATH=str(tmp_path / "old"))
    assert exit_code == 1
    expect(found, "glibcxx", "fault", f"{tmp_path}/old/libstdc++.so.6 has 3.4.1", "LD_LIBRARY_PATH")


def test_cudart_of_another_major(doctor, tmp_path):
    (tmp_path / "old").mkdir()
    cudart = library(
        tmp_path, "old/libcudart.so.10", "void cudaFree(void) {}", "-Wl,-soname,libcudart.so.10"
    )
    ours = library(
        tmp_path, "ours.so", "extern void cudaFree(void); void f(void) { cudaFree(); }", cudart
    )
    code, found = doctor(ours)
    assert code == 1
    expect(found, "cudart-major", "fault", "needs libcudart.so.10", "kiln build")


def test_a_module_under_another_name(doctor, tmp_path):
    name = "add" + sysconfig.get_config_var("EXT_SUFFIX")
    code, found = doctor(library(tmp_path, name, "void PyInit_sub(void) {}"))
    assert code == 1
    expect(found, "module-init", "fault", "no PyInit_add", "TORCH_EXTENSION_NAME")
    assert doctor(library(tmp_path, name, "void PyInit_add(void) {}"))[0] == 0


def test_wheels_for_others(doctor, tmp_path):
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    for tag, reason in (
        ("cp36-cp36m-linux_" + os.uname().machine, "for cp36"),
        (f"py3-none-manylinux_2_17_{other}", f"for manylinux_2_17_{other}"),
        (f"py3-none-manylinux_2_99_{os.uname().machine}", "for glibc 2.99 and newer"),
    ):
        path = tmp_path / f"add-1-{tag}.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("add/__init__.py", "")
        code, found = doctor(path)
        assert code == 1
        expect(found, "wheel-tag", "fault", reason, "wheel")


def test_a_gpu_that_the_code_does_not_fit(doctor, command, surroundings, tmp_path):
    """A GPU made up of a device file, an nvidia-smi and an old driver, in a namespace of its
    own."""
    smi = 'case "$1" in *compute_cap*) echo 9.0;; *) echo 535.104.05;; esac'
    program(tmp_path, "nvidia-smi", smi)
    make = "mount -t tmpfs none /dev && touch /dev/nvidiactl /dev/null && chmod 666 /dev/null"
    unshare = ["unshare", "-r", "-m", "/bin/sh", "-c"]
    nvcc = shutil.which("nvcc")
    if (
        not nvcc
        or not shutil.which("unshare")
        or subprocess.run([*unshare, make], capture_output=True).returncode
    ):
        pytest.skip("no nvcc or no mount namespaces here")
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("a real driver is here")
    (tmp_path / "k.cu").write_text("__global__ void k(int* p) { *p = 1; }\n")
    subprocess.run(
        [nvcc, "-cubin", "-arch=sm_80", "k.cu", "-o", "k.cubin"], cwd=tmp_path, check=True
    )

    def ask(*words: str, **variables: str) -> dict[str, dict]:
        line = f'{make} && exec "$@"'
        full = [*unshare, line, "sh", str(command), "doctor", "--no-compile", "--json", *words]
        done = subprocess.run(
            full, env=surroundings | variables, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 1, done.stdout + done.stderr
        return {row["name"]: row for row in json.loads(done.stdout)["checks"]}

    expect(ask(), "driver", "fault", "does not find libcuda.so.1", "--gpus all")
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    found = ask("k.cubin", LD_LIBRARY_PATH=str(tmp_path))
    expect(found, "driver", "fault", "the driver is 535.104.05", "update the driver to 580")
    expect(
        found, "kernel-image", "fault", "contains sm_80; this GPU is sm_90", "kiln build --arch 9.0"
    )
    expect(
        found,
        "ptx-driver",
        "fault",
        "needs driver 580 or newer, this machine has 535.104.05",
        "update the driver to 580",
    )
    only_ptx = ["-fatbin", "-gencode=arch=compute_80,code=compute_80"]
    subprocess.run([nvcc, *only_ptx, "k.cu", "-o", "k.fatbin"], cwd=tmp_path, check=True)
    found = ask("k.fatbin", LD_LIBRARY_PATH=str(tmp_path))
    expect(
        found,
        "kernel-image",
        "warning",
        "no SASS for sm_90: the driver compiles its PTX",
        "kiln build --arch 9.0",
    )
    expect(
        found,
        "ptx-driver",
        "fault",
        "which driver 535.104.05 cannot compile",
        "update the driver to 580",
    )


def test_a_slow_project(doctor, tmp_path):
    project = tmp_path / "slow"
    (project / "build" / "temp.linux").mkdir(parents=True)
    gencodes = "".join(f"'-gencode=arch=compute_{n},code=sm_{n}', " for n in (75, 80, 86, 90))
    (project / "setup.py").write_text(
        "from torch.utils.cpp_extension import BuildExtension, CUDAExtension\n"
        f"CUDAExtension('a', ['a.cu'], extra_compile_args={{'nvcc': [{gencodes}'--threads', '16', "
        f"'-std=c++14']}})\n"
        "BuildExtension.with_options(use_ninja=False)\n"
    )
    (project / "a.cu").write_text(
        '#include <torch/extension.h>\nasm("wgmma.mma_async.sync.aligned");\n'
    )
    (project / "b.cpp").write_text("#include <torch/extension.h>\n// #include <torch/all.h>\n")
    (project / "build" / "temp.linux" / ".ninja_log").write_text(
        "# ninja log v5\n0\t8000\t1\tb.o\tx\n0\t90000\t1\ta.o\tx\n"
    )
    code, found = doctor(project)
    assert code == 1
    expect(found, "torch-headers", "warning", "a.cu includes torch/extension.h", "kiln/op.h")
    expect(found, "arch-variant", "fault", "a.cu uses wgmma", "9.0a")
    expect(found, "isolated-build", "warning", "No module named 'torch'", "--no-build-isolation")
    expect(found, "cxx-standard", "fault", "-std=c++14", "the project's flags")
    expect(found, "slow-archs", "warning", "4 architectures: sm_75", "TORCH_CUDA_ARCH_LIST")
    expect(found, "slow-serial", "warning", "use_ninja=False", "setup.py")
    expect(found, "slow-steps", "warning", "slowest: a.o", "split the source of a.o")
    expect(found, "slow-uncached", "warning", "", "kiln.CUDAExtension")
    assert found["job-threads"]["verdict"] in ("ok", "warning")


def test_a_program_that_builds_by_cpp_extension_load(doctor, tmp_path):
    project = tmp_path / "jit"
    project.mkdir()
    (project / "run.py").write_text(
        "from torch.utils.cpp_extension import load\n"
        'load(name="add", sources=["add.cu"], extra_cuda_cflags=["-O3", "-std=c++14"])\n'
    )
    (project / "add.cu").write_text("#include <torch/extension.h>\n")
    code, found = doctor(project)
    assert code == 1
    expect(found, "cxx-standard", "fault", "-std=c++14", "the project's flags")
    expect(found, "torch-headers", "warning", "add.cu includes torch/extension.h", "kiln/op.h")
    assert found["isolated-build"]["verdict"] in ("ok", "skip"), found["isolated-build"]


def test_each_of_the_thirty_was_injected(doctor):
    """Made-up machines have them all in tests/unit/doctor; here each is a real fault of a real
    run."""
    _, found = doctor()
    text = Path(__file__).read_text()
    real = set(re.findall(r'expect\([^"]*"([a-z0-9-]+)",\s+"(?:fault|warning)"', text))
    real |= set(re.findall(r'found\["([a-z0-9-]+)"\]\["verdict"\] == "fault"', text))
    assert [
        row["name"] for row in found.values() if row["number"] <= 30 and row["name"] not in real
    ] == []


def test_a_timed_compile(command, surroundings, tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    done = subprocess.run(
        [str(command), "doctor"],
        env=surroundings,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    line = next(line for line in done.stdout.splitlines() if "Timed compile" in line)
    assert "cold" in line and "cached" in line and not line.startswith("[x]"), done.stdout


def test_usage(command, surroundings, tmp_path):
    for words in (["nowhere.so"], ["nowhere/"], ["home"]):
        done = subprocess.run(
            [str(command), "doctor", "--no-compile", *words],
            env=surroundings,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2 and "why:" in done.stderr and "fix:" in done.stderr


def test_the_troubleshooting_page_is_made_of_the_checks(command):
    page = Path(__file__).parents[2] / "docs" / "guide" / "troubleshooting.md"
    made = subprocess.run(
        [str(command), "doctor", "--page"], capture_output=True, text=True, check=True
    ).stdout
    assert page.read_text() == made, "kiln doctor --page > docs/guide/troubleshooting.md"
