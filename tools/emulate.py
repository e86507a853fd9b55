# SPDX-License-Identifier: Apache-2.0
"""How does a program for the other CPU run here, with the programs it starts? By qemu-user, told to
the kernel in a namespace of its own.

What it starts may be of this CPU (nvcc, ninja), which runs natively, or of the other one again. The
namespace ends with the program: nothing of this machine is changed. Needs Linux 6.7, where
binfmt_misc belongs to a user namespace.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

MACHINES = {"x86_64": 0x3E, "aarch64": 0xB7}  # e_machine
# Of an ELF header: class, byte order, a program or library, the CPU. binfmt_misc reads the escapes.
IDENT = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
PLACE = "/proc/sys/fs/binfmt_misc"


def run_emulated(
    cpu: str, sysroot: Path, words: list[str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess:
    """As subprocess.run; sysroot is where the program's loader and libc are."""
    qemu = shutil.which(f"qemu-{cpu}-static") or shutil.which(f"qemu-{cpu}")
    rule = rf":kiln-{cpu}:M::{IDENT}\x{MACHINES[cpu]:02x}\x00:{MASK}:{qemu}:F"
    script = (
        f'mount -t binfmt_misc none {PLACE} && printf "%s" "$0" > {PLACE}/register && exec "$@"'
    )
    line = ["unshare", "-r", "-m", "/bin/sh", "-c", script, rule, *words]
    # qemu's default x86 CPU is older than x86-64-v2, the engine's baseline.
    variables = environment | {"QEMU_LD_PREFIX": str(sysroot), "QEMU_CPU": "max"}
    return subprocess.run(line, cwd=folder, env=variables, capture_output=True, text=True)


def why_not(cpu: str, sysroot: Path) -> str:
    """Why a program for that CPU cannot be run here, or nothing."""
    if not (shutil.which(f"qemu-{cpu}-static") or shutil.which(f"qemu-{cpu}")):
        return f"no qemu-{cpu} is here (apt-get install qemu-user-static)"
    if shutil.which("unshare") is None:
        return "unshare is not here"
    done = run_emulated(cpu, sysroot, ["true"], Path("/"), {"PATH": "/usr/bin:/bin"})
    return (
        "" if done.returncode == 0 else f"no binfmt_misc in a namespace here: {done.stderr.strip()}"
    )
