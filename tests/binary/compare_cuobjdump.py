#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the images and resources of `kiln inspect` agree with cuobjdump and ptxas?

    compare_cuobjdump.py --kiln KILN --builds [--quick]   images of every form of build, byte for
                                                          byte; spills
    compare_cuobjdump.py --kiln KILN --resources FILE...  registers, stack, shared memory, constants
                                                          of every kernel
                         [--sample sm_90a]                of the images of one architecture alone
                         [--torch]                        FILE is the installed libtorch_cuda.so
    compare_cuobjdump.py --kiln KILN --cost FILE          time and memory of overview and kernel
                                                          table

cuobjdump comes from PATH, or from `pip install nvidia-cuda-cuobjdump`.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

SOURCE = """
__device__ __forceinline__ float series(float x, int k) {
  float s = 0;
  for (int i = 0; i < k; ++i) s += __sinf(x * i);
  return s;
}
__device__ __noinline__ float square_up(float x) { return x * x + 1; }
__constant__ float table[64];
__global__ void __launch_bounds__(256, 2) mixed(const float* a, float* b, int n) {
  __shared__ float tile[300];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? a[i] : 0;
  __syncthreads();
  if (i < n) b[i] = series(tile[255 - threadIdx.x], n) + table[i & 63] + square_up(a[i]);
}
template <int N> __global__ void spills(float* p) {
  float v[N];
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = p[i * 32 + threadIdx.x];
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = v[i] * v[(i * 7) % N] + p[i];
#pragma unroll
  for (int i = 0; i < N; ++i) p[i * 32 + threadIdx.x] = v[i];
}
template __global__ void spills<40>(float*);
template __global__ void spills<120>(float*);
"""


def find_cuobjdump() -> str | None:
    if found := shutil.which("cuobjdump"):
        return found
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or [] if spec else []:
        for path in sorted(Path(folder).glob("*/bin/cuobjdump")):
            return str(path)
    return None


def run(*words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", cwd=cwd)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def kiln_json(kiln: str, *words: str) -> dict:
    done = subprocess.run([kiln, "inspect", "--json", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"kiln inspect {' '.join(words)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def cuobjdump_images(cuobjdump: str, fatbin: Path, folder: Path) -> dict[str, list[bytes]]:
    """Of one fat binary, by kind and architecture: cuobjdump gives two images of a library the same
    name."""
    folder.mkdir()
    for option in ("-xelf", "-xptx"):
        subprocess.run([cuobjdump, option, "all", str(fatbin)], cwd=folder, capture_output=True)
    out = defaultdict(list)
    for path in sorted(folder.iterdir()):
        arch = re.search(r"\.(sm_\w+)\.(cubin|ptx)$", path.name)
        out[f"{arch.group(1)} {arch.group(2)}"].append(path.read_bytes())
    return out


def compare_build(kiln: str, cuobjdump: str, built: Path, folder: Path) -> tuple[int, list[str]]:
    """How many images were compared, and what differs."""
    run(kiln, "inspect", str(built), "--overview", "--extract", str(folder / "kiln"))
    answer = kiln_json(kiln, str(built), "--overview")["files"][0]
    files = sorted((folder / "kiln").iterdir())
    whole = built.read_bytes()
    wrong, compared = [], 0
    listed = run(cuobjdump, "-lelf", "-lptx", str(built))
    counts = len(re.findall(r"^(?:ELF|PTX) file", listed, re.M))
    wanted = sum(image["kind"] in ("sass", "ptx") for image in answer["images"])
    if counts != wanted:
        wrong.append(f"{counts} images by cuobjdump, {wanted} by kiln")
    by_container = defaultdict(list)
    for image, path in zip(answer["images"], files):
        by_container[image["container"]].append((image, path))
    if sum(g["bytes"] for g in answer["groups"]) != len(whole):
        wrong.append("the pieces do not add up to the file's size")
    for number, members in by_container.items():
        begin = whole.rfind(b"\x50\xed\x55\xba", 0, members[0][0]["offset"])
        size = 16 + int.from_bytes(whole[begin + 8 : begin + 16], "little")
        fatbin = folder / f"{number}.fatbin"
        fatbin.write_bytes(whole[begin : begin + size])
        theirs = cuobjdump_images(cuobjdump, fatbin, folder / f"cuobjdump{number}")
        for image, path in members:
            if image["kind"] not in ("sass", "ptx"):
                continue
            suffix = "cubin" if image["kind"] == "sass" else "ptx"
            arch = image["arch"].replace("compute_", "sm_")
            compared += 1
            if path.read_bytes() not in theirs[f"{arch} {suffix}"]:
                wrong.append(f"{path.name} of container {number} differs")
    return compared, wrong


def spills_of_ptxas(text: str) -> dict[tuple[str, str], tuple[int, int]]:
    out = {}
    for match in re.finditer(
        r"Compiling entry function '(\S+)' for '(\S+)'\n.*?Function properties for \1\n"
        r"\s+\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
        text,
        re.S,
    ):
        out[(match.group(1), match.group(2))] = (int(match.group(3)), int(match.group(4)))
    return out


def builds(kiln: str, cuobjdump: str, quick: bool) -> int:
    modes = ["default", "none", "size", "speed", "balance"]
    archs = [
        ["-gencode", "arch=compute_90,code=[sm_90,compute_90]"],
        ["-gencode", "arch=compute_80,code=sm_80", "-gencode",
        "arch=compute_90a,code=[sm_90a,compute_90a]",
         "-gencode", "arch=compute_120,code=sm_120"],
    ]  # fmt: skip
    extras = [[], ["-rdc=true"], ["-lineinfo"], ["-G"]]
    if quick:
        cases = [
            ("default", archs[0], ["-lineinfo"]),
            ("size", archs[1], ["-rdc=true"]),
            ("speed", archs[0], []),
            ("none", archs[0], ["-G"]),
        ]
    else:
        cases = list(itertools.product(modes, archs, extras))
    compared, wrong, spilled = 0, [], 0
    with tempfile.TemporaryDirectory() as top:
        source = Path(top) / "mixed.cu"
        source.write_text(SOURCE)
        for number, (mode, arch, extra) in enumerate(cases):
            folder = Path(top) / str(number)
            folder.mkdir()
            built = folder / ("mixed.o" if number % 2 else "mixed.so")
            form = ["-c"] if number % 2 else ["-shared", "-Xcompiler", "-fPIC"]
            compress = [] if mode == "default" else [f"--compress-mode={mode}"]
            text = run(
                "nvcc",
                "-Xptxas",
                "-v",
                "-maxrregcount",
                "40",
                *compress,
                *arch,
                *extra,
                *form,
                str(source),
                "-o",
                str(built),
            )
            count, differences = compare_build(kiln, cuobjdump, built, folder)
            compared += count
            name = f"{mode} {' '.join(arch)} {' '.join(extra)} {built.name}"
            wrong += [f"{name}: {line}" for line in differences]
            wanted = spills_of_ptxas(text)
            for kernel in kiln_json(kiln, str(built), "--kernels")["files"][0]["kernels"]:
                seen = (kernel["spill_store_bytes"], kernel["spill_load_bytes"])
                expected = wanted.get((kernel["symbol"], kernel["arch"]))
                if expected is not None and "-G" not in extra:
                    spilled += 1
                    if seen != expected:
                        wrong.append(
                            f"{name}: spills of {kernel['symbol']} {kernel['arch']}: {seen}, ptxas "
                            f"{expected}"
                        )
    for line in wrong:
        print(line)
    print(
        f"{len(cases)} builds, {compared} images byte for byte, spills of {spilled} kernels: "
        f"{len(wrong)} differences"
    )
    return 1 if wrong or compared < len(cases) or not spilled else 0


def usage_of(kiln: str, cuobjdump: str, path: Path, sample: str) -> str:
    if not sample:
        return run(cuobjdump, "-res-usage", str(path))
    with tempfile.TemporaryDirectory() as folder:
        run(kiln, "inspect", str(path), "--overview", "--arch", sample, "--extract", folder)
        return "".join(
            run(cuobjdump, "-res-usage", str(cubin)) for cubin in sorted(Path(folder).iterdir())
        )


def resources(kiln: str, cuobjdump: str, paths: list[Path], sample: str) -> int:
    wrong = total = 0
    for path in paths:
        wanted, name, arch = defaultdict(list), "", sample
        for line in usage_of(kiln, cuobjdump, path, sample).splitlines():
            if line.startswith("arch = "):
                arch = line.split()[2]
            elif line.startswith(" Function "):
                name = line[len(" Function ") : -1]
            elif line.startswith("  REG:"):
                usage = dict(word.split(":") for word in line.split())
                wanted[(arch, name)].append(
                    tuple(int(usage[k]) for k in ("REG", "STACK", "SHARED", "CONSTANT[0]"))
                )
        seen = defaultdict(list)
        for one in kiln_json(kiln, str(path), "--kernels", *(["--arch", sample] if sample else []))[
            "files"
        ][0]["kernels"]:
            shared = one["shared_bytes"] + one["shared_reserved_bytes"]
            seen[(one["arch"], one["symbol"])].append(
                (one["registers"], one["stack_bytes"], shared, one["constant_bytes"])
            )
        total += sum(map(len, wanted.values()))
        for key in wanted.keys() | seen.keys():
            if sorted(wanted[key]) != sorted(seen[key]):
                wrong += 1
                print(f"{path.name}: {key}: cuobjdump {wanted[key]}, kiln {seen[key]}")
    print(f"{total} kernels: {wrong} differ from cuobjdump -res-usage")
    return 1 if wrong or not total else 0


def cost(kiln: str, path: Path) -> int:
    begun = time.monotonic()
    subprocess.run([kiln, "inspect", str(path)], stdout=subprocess.DEVNULL, check=True)
    seconds = time.monotonic() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(
        f"{path.name}: {seconds:.2f} s, {cpu:.2f} s of CPU, {used.ru_maxrss / 1e6:.2f} GB at most"
    )
    return 0


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--kiln", required=True)
    arguments.add_argument("--builds", action="store_true")
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--resources", nargs="+", type=Path, default=[])
    arguments.add_argument("--sample", default="", metavar="ARCH")
    arguments.add_argument(
        "--torch", action="store_true", help="--resources of the libtorch_cuda.so that is installed"
    )
    arguments.add_argument("--cost", type=Path)
    given = arguments.parse_args()
    if given.cost:
        return cost(given.kiln, given.cost)
    cuobjdump = find_cuobjdump()
    if not cuobjdump or (given.builds and not shutil.which("nvcc")):
        print("skipped: no cuobjdump" if not cuobjdump else "skipped: no nvcc")
        return 77
    if given.torch:
        spec = importlib.util.find_spec("torch")
        library = (
            Path(spec.origin).parent / "lib/libtorch_cuda.so" if spec and spec.origin else None
        )
        if not library or not library.is_file():
            print("skipped: no torch with CUDA")
            return 77
        given.resources.append(library)
    code = builds(given.kiln, cuobjdump, given.quick) if given.builds else 0
    return (
        resources(given.kiln, cuobjdump, given.resources, given.sample) if given.resources else 0
    ) or code


if __name__ == "__main__":
    sys.exit(main())
