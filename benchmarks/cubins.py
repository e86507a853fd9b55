# SPDX-License-Identifier: Apache-2.0
"""Which machine code does nvcc make of a source? Bytes and registers of each kernel, without a
disassembler."""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Code:
    sass: bytes
    registers: int


def text_sections(cubin: bytes) -> dict[str, bytes]:
    """The machine code of each kernel: sections .text.KERNEL of a 64-bit little-endian ELF file."""
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a cubin")
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    found = {}
    for name, _, _, _, offset, length in headers:
        begin = headers[names][4] + name
        text = cubin[begin : cubin.index(b"\0", begin)].decode()
        if text.startswith(".text."):
            found[text.removeprefix(".text.")] = cubin[offset : offset + length]
    return found


def registers(ptxas_log: str) -> dict[str, int]:
    """Of `ptxas -v`, by kernel."""
    pattern = (
        r"Compiling entry function '(\S+)' for '\S+'(?:(?!Compiling)[\s\S])*?Used (\d+) registers"
    )
    return {name: int(count) for name, count in re.findall(pattern, ptxas_log)}


def compiled(nvcc: str, source: Path, arch: str, flags: list[str]) -> dict[str, Code]:
    """By kernel. arch: "90a". -lineinfo, as kiln builds."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "code.cubin"
        line = [
            nvcc,
            "-std=c++17",
            "-lineinfo",
            "-Xptxas",
            "-v",
            f"-arch=sm_{arch}",
            "-cubin",
            *flags,
        ]
        done = subprocess.run([*line, str(source), "-o", str(out)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"nvcc cannot compile {source}:\n{done.stdout}{done.stderr}")
        used = registers(done.stdout + done.stderr)
        return {
            name: Code(code, used[name]) for name, code in text_sections(out.read_bytes()).items()
        }
