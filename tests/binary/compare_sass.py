#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do kiln's table of opcodes and its line tables agree with nvdisasm?

    compare_sass.py --kiln KILN                     kernels compiled here, with inlined calls, for
                                                    several architectures
    compare_sass.py --kiln KILN --cubin FILE...     the opcodes of any cubins

nvdisasm comes from PATH, or from `pip install nvidia-cuda-nvdisasm`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = """
__device__ __forceinline__ float inner(float x) { return __sinf(x) * 3; }
__device__ __forceinline__ float middle(float x, int k) {
  float s = 0;
  for (int i = 0; i < k; ++i) s += inner(x * i);
  return s;
}
__global__ void outer(const float* a, float* b, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = a[i];
  __syncthreads();
  if (i < n) b[i] = middle(tile[255 - threadIdx.x], n) + inner(a[0]);
}
template <class T> __global__ void sum(T* p, int n) {
  T s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += p[i];
  atomicAdd(p + n, s);
}
template __global__ void sum<double>(double*, int);
template __global__ void sum<int>(int*, int);
"""


def find_nvdisasm() -> str | None:
    if found := shutil.which("nvdisasm"):
        return found
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or [] if spec else []:
        for path in sorted(Path(folder).glob("*/bin/nvdisasm")):
            return str(path)
    return None


def run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def frames_of_nvdisasm(text: str) -> dict[tuple[str, int], list[int]]:
    """(section, address) -> line and the lines it was inlined at, innermost first."""
    out: dict[tuple[str, int], list[int]] = {}
    section, frames, fresh = "", [], True
    for line in text.splitlines():
        if match := re.match(r"\s*\.section\s+(\S+?),", line):
            section, frames = match.group(1), []
        elif match := re.match(r'\s*//## File "[^"]*", line (\d+)( inlined at)?', line):
            frames = [*([] if fresh else frames), int(match.group(1))]
            fresh = False
        elif match := re.match(r"\s*/\*([0-9a-f]{4,})\*/", line):
            out[(section, int(match.group(1), 16))] = frames
            fresh = True
    return out


def compare_text(kiln: str, nvdisasm: str, cubin: Path, text: str) -> list[str]:
    """With a disassembler kiln shows its instructions, each with its live registers."""
    wanted, section = {}, ""
    for line in text.splitlines():
        if match := re.match(r"\s*\.section\s+(\S+?),", line):
            section = match.group(1)
        elif match := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+([^;]*?)\s*;", line):
            wanted[(section, int(match.group(1), 16))] = " ".join(match.group(2).split())
    folder = str(Path(nvdisasm).parent)
    answer = json.loads(
        run(
            "env",
            "-i",
            f"PATH={folder}:/usr/bin:/bin",
            kiln,
            "inspect",
            str(cubin),
            "--sass",
            "--json",
        )
    )
    wrong = []
    for kernel in answer["files"][0]["sass"]:
        if not kernel["disassembled"]:
            wrong.append(f"{cubin.name} {kernel['symbol']}: not disassembled")
        for line in kernel["lines"]:
            seen = " ".join(line["text"].split())
            other = wanted.get((".text." + kernel["symbol"], line["address"]))
            # nvdisasm numbers the labels of a whole file or of one function.
            if re.sub(r"\.L_x?_?\d+", ".L", seen) != re.sub(r"\.L_x?_?\d+", ".L", other or ""):
                wrong.append(
                    f"{cubin.name} {kernel['symbol']} {line['address']:#x}: {seen}, nvdisasm "
                    f"{other}"
                )
            if "live" not in line:
                wrong.append(
                    f"{cubin.name} {kernel['symbol']} {line['address']:#x}: no live registers"
                )
    return wrong


def compare(kiln: str, nvdisasm: str, cubin: Path, lines: bool) -> tuple[int, list[str]]:
    text = run(nvdisasm, "-c", "-hex", "-ndf", *(["-gi"] if lines else []), str(cubin))
    pattern = re.compile(
        r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)[^;]*;\s+/\* 0x([0-9a-f]{16}) "
        r"\*/"
    )
    # Without a disassembler kiln shows what its own table says.
    answer = json.loads(
        run(
            "env",
            "-i",
            "PATH=/nowhere",
            "CUDA_HOME=/nowhere",
            kiln,
            "inspect",
            str(cubin),
            "--sass",
            "--json",
        )
    )
    ours, frames = {}, {}
    for kernel in answer["files"][0]["sass"]:
        for line in kernel["lines"]:
            ours[(".text." + kernel["symbol"], line["address"])] = (line["text"], line["words"][0])
            frames[(".text." + kernel["symbol"], line["address"])] = [
                f["line"] for f in line.get("source", [])
            ]
    wrong, compared, section = [], 0, ""
    for line in text.splitlines():
        if match := re.match(r"\s*\.section\s+(\S+?),", line):
            section = match.group(1)
        match = pattern.search(line)
        key = (section, int(match.group(1), 16)) if match else None
        if not match or key not in ours:
            continue
        compared += 1
        mnemonic, word = ours[key]
        alike = {mnemonic, match.group(2)} <= {"RED", "REDG"} or {mnemonic, match.group(2)} <= {
            "UTCHMMA",
            "UTCQMMA",
            "UTCIMMA",
            "UTCMXQMMA",
            "UTCOMMA",
        }
        if (mnemonic != match.group(2) and not alike) or word != "0x" + match.group(3):
            wrong.append(
                f"{cubin.name} {key}: {mnemonic} {word}, nvdisasm {match.group(2)} "
                f"0x{match.group(3)}"
            )
    wrong += compare_text(kiln, nvdisasm, cubin, text)
    if lines:
        for key, wanted in frames_of_nvdisasm(text).items():
            if key in frames and wanted != frames[key]:
                wrong.append(f"{cubin.name} {key}: lines {frames[key]}, nvdisasm {wanted}")
    return compared, wrong


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--kiln", required=True)
    arguments.add_argument("--cubin", nargs="*", type=Path, default=[])
    given = arguments.parse_args()
    nvdisasm = find_nvdisasm()
    if not nvdisasm or not (given.cubin or shutil.which("nvcc")):
        print("skipped: no nvdisasm" if not nvdisasm else "skipped: no nvcc")
        return 77
    total, wrong = 0, []
    with tempfile.TemporaryDirectory() as top:
        cubins = list(given.cubin)
        if not cubins:
            source = Path(top) / "outer.cu"
            source.write_text(SOURCE)
            for arch in ("sm_80", "sm_90", "sm_120"):
                cubins.append(Path(top) / f"{arch}.cubin")
                run(
                    "nvcc",
                    "-lineinfo",
                    f"-arch={arch}",
                    "-cubin",
                    str(source),
                    "-o",
                    str(cubins[-1]),
                )
        for cubin in cubins:
            count, differences = compare(given.kiln, nvdisasm, cubin, not given.cubin)
            total += count
            wrong += differences
    for line in wrong[:40]:
        print(line)
    print(f"{len(cubins)} cubins, {total} instructions: {len(wrong)} differ from nvdisasm")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
