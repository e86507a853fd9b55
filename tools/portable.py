# SPDX-License-Identifier: Apache-2.0
"""How is kiln built for older systems and for the other CPU? With this machine's g++ and an older
Debian's glibc.

A library asks for the newest versions of glibc's functions that were there when it was linked. So
it is linked with the glibc of RELEASE, unpacked into build/sysroot/<CPU>; what this machine runs is
not touched.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

from debian import fail, unpack

ROOT = Path(__file__).resolve().parents[1]
OLD = "bullseye"  # glibc 2.31
LIBRARIES = "bookworm"  # of C++ libraries nothing is newer than g++ 12
PACKAGES = {
    OLD: [
        "libc6",
        "libc6-dev",
        "linux-libc-dev",
        "libgcc-s1",
        "libstdc++6",
    ],  # the last for what kiln builds there
    LIBRARIES: [
        *(
            "libfmt9",
            "libfmt-dev",
            "nlohmann-json3-dev",
            "libcli11-dev",
            "libtomlplusplus-dev",
            "libasmjit-dev",
        ),
        *("libzstd-dev", "liblz4-dev", "zlib1g-dev"),
    ],
}
# What the package holds.
TARGETS = [
    "kiln",
    "kiln_engine_so",
    "kiln_measure_so",
    "kiln_runtime",
    "kiln_compat",
    "kiln_headers",
    "kiln_compat_headers",
    "kiln_templates",
]


def sysroot_of(cpu: str) -> Path:
    return with_headers(unpack(ROOT / "build/sysroot" / cpu, cpu, PACKAGES), cpu)


def test_root_of(cpu: str) -> Path:
    """Where tests for that CPU find their libraries: all of one release, which GoogleTest needs."""
    names = [*PACKAGES[OLD], *PACKAGES[LIBRARIES], "libgtest-dev", "libgmock-dev", "googletest"]
    folder = unpack(ROOT / "build/sysroot" / f"tests-{cpu}", cpu, {LIBRARIES: names})
    return with_headers(folder, cpu)


def with_headers(folder: Path, cpu: str) -> Path:
    # The compiler's own headers, where it looks for them below a sysroot.
    places = [f"usr/{cpu}-linux-gnu/include/c++"]
    if cpu == platform.machine():
        places = ["usr/include/c++", f"usr/include/{cpu}-linux-gnu/c++"]
    for place in places:
        if not (folder / place).exists() and (Path("/") / place).exists():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).symlink_to(Path("/") / place)
    return folder


def require_compiler(cpu: str) -> None:
    compiler = f"{cpu}-linux-gnu-g++"
    if shutil.which(compiler) is None:
        package = f"g++-{cpu.replace('_', '-')}-linux-gnu"
        fail(f"cannot build for {cpu}", f"{compiler} is not here", f"apt-get install {package}")


def build_for(cpu: str) -> Path:
    """The stage of a build for that CPU."""
    require_compiler(cpu)
    sysroot = sysroot_of(cpu)
    build = ROOT / "build" / f"portable-{cpu}"
    options = {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "cmake/sysroot.cmake",
        "CMAKE_BUILD_TYPE": "Release",
        "KILN_CPU": cpu,
        "KILN_SYSROOT": sysroot,
        "KILN_TESTS": "OFF",
    }
    words = [f"-D{name}={value}" for name, value in options.items()]
    jobs = os.environ.get("MAX_JOBS", str(os.cpu_count() or 2))
    for command in (
        ["cmake", "-G", "Ninja", "-S", ROOT, "-B", build, *words],
        ["cmake", "--build", build, "--parallel", jobs, "--target", *TARGETS],
    ):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            fail(
                f"cannot build kiln for {cpu}",
                (done.stdout + done.stderr)[-4000:].strip(),
                f"the log is above; the build folder: {build}",
            )
    return build / "stage"
