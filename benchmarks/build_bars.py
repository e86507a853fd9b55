# SPDX-License-Identifier: Apache-2.0
"""How fast is a build, from an edit to a callable op, beside nvcc and beside the classic advice?

    python benchmarks/build_bars.py [--write FOLDER] [--repetitions 5] [--classic] [--kiln PATH]

Every row is a ratio within one run. --classic measures the folklore about torch.utils.cpp_extension again (all architectures,
ninja, a pinned architecture, jobs, ccache): minutes each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from classic_builds import classic_rows
from sampling import in_turns, machine, ratio, seconds_of

ROOT = Path(__file__).resolve().parents[1]
ARCH = "9.0"
GENCODE = ["-gencode", "arch=compute_90,code=[sm_90,compute_90]", "-O3", "-std=c++20", "-lineinfo"]
FIVE = "7.5;8.0;8.6;8.9;9.0+PTX"

PLAIN = """#include <kiln/op.h>
template <class T>
__global__ void scale_kernel(const T* a, T* out, long long n) {
  long long i = kiln::global_thread();
  if (i < n) out[i] = a[i] * T(2); /*edit*/
}
kiln::Tensor scale(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  scale_kernel<float><<<kiln::blocks_for(out.numel(), 256), 256, 0, kiln::stream(a)>>>(
      a.data<const float>(), out.data<float>(), out.numel());
  return out;
}
KILN_OP(scale, "a").fake("like(a)");
"""
BARE = """__global__ void scale_kernel(const float* a, float* out, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * 2.0f; /*edit*/
}
extern "C" int scale(const float* a, float* out, long long n) {
  scale_kernel<<<(n + 255) / 256, 256>>>(a, out, n);
  return cudaGetLastError();
}
"""
CUB_KERNEL = """#include <cub/block/block_reduce.cuh>
__global__ void sum_kernel(const float* a, float* out, long long n) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage room;
  float x = threadIdx.x < n ? a[threadIdx.x] : 0.0f;
  float sum = Reduce(room).Sum(x);
  if (threadIdx.x == 0) out[0] = sum * 1.0f; /*edit*/
}
"""
CUB = CUB_KERNEL + """#include <kiln/op.h>
kiln::Tensor total(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  sum_kernel<<<1, 256, 0, kiln::stream(a)>>>(a.data<const float>(), out.data<float>(), a.numel());
  return out;
}
KILN_OP(total, "a").fake("like(a)");
"""
CUB_BARE = CUB_KERNEL + """
extern "C" int total(const float* a, float* out, long long n) {
  sum_kernel<<<1, 256>>>(a, out, n);
  return cudaGetLastError();
}
"""


def edited(text: str, number: int) -> str:
    """Another body of the kernel on the same line."""
    return text.replace("/*edit*/", f"/*edit*/ if (n < -{number + 1}) out[0] = {number}.0f;")


class Bench:
    def __init__(self, kiln: Path, folder: Path):
        self.kiln, self.folder, self.edits = kiln, folder, 0

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_CACHE", "NVCC", "TORCH_CUDA")) and k != "MAX_JOBS"}
        return kept | {"XDG_CACHE_HOME": str(self.folder / "cache")} | more

    def source(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def build(self, source: Path, *more: str, arch: str = ARCH, **env: str) -> tuple[float, dict]:
        begin = time.perf_counter()
        done = subprocess.run(
            [str(self.kiln), "build", str(source), "--arch", arch, "--json", *more], env=self.environment(**env),
            capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - begin
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return seconds, json.loads(done.stdout)

    def cold(self, source: Path, arch: str = ARCH) -> float:
        """From nothing: no build folder, no cache; what the compilers said about themselves is known."""
        for name in ("lone", "store"):
            shutil.rmtree(self.folder / "cache/kiln" / name, ignore_errors=True)
        return self.build(source, arch=arch)[0]

    def nvcc(self, source: Path, *flags: str) -> float:
        return seconds_of(["nvcc", "-shared", "-Xcompiler", "-fPIC", *(flags or GENCODE), str(source), "-o", str(self.folder / "x.so")])

    def edit(self, source: Path, text: str, lane: str) -> float:
        self.edits += 1
        source.write_text(edited(text, self.edits))
        seconds, told = self.build(source)
        if told["lane"] != lane:
            return float("nan")
        return seconds

    def hit(self, source: Path, **env: str) -> float:
        shutil.rmtree(self.folder / "cache/kiln/lone", ignore_errors=True)
        if env:
            shutil.rmtree(self.folder / "cache/kiln/store", ignore_errors=True)
        seconds, told = self.build(source, **env)
        if any(step["cache"] == "made" for step in told["steps"]):
            raise RuntimeError(f"a miss: {told['steps']}")
        return seconds


IN_PROCESS = """
import json, sys, time, pathlib, torch, kiln
source, text, count = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text(), int(sys.argv[3])
def edited(n):
    return text.replace("/*edit*/", f"/*edit*/ if (n < -{n + 1}) out[0] = {n}.0f;")
x = torch.ones(1024, device=kiln.device())
source.write_text(edited(1)); module = kiln.load(source, arch=sys.argv[4]); module.scale(x)
times = []
for n in range(2, count + 4):
    source.write_text(edited(n))
    begin = time.perf_counter(); module.reload(); module.scale(x); times.append(time.perf_counter() - begin)
print(json.dumps(times))
"""


def in_process(bench: Bench, repetitions: int) -> list[float]:
    """Edit to the op's answer in a running Python; the first edits show NVRTC to be right and are not counted."""
    source, text = bench.folder / "live.cu", bench.source("live.txt", PLAIN)
    env = bench.environment(PYTHONPATH=str(bench.kiln.parents[2]), KILN_BIN=str(bench.kiln))
    done = subprocess.run(
        [sys.executable, "-c", IN_PROCESS, str(source), str(text), str(repetitions), ARCH], env=env, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)[2:]


def nvrtc_seconds(bench: Bench, source: Path) -> float:
    """What --explain tells of NVRTC alone in the last edit."""
    bench.edits += 1
    source.write_text(edited(PLAIN, bench.edits))
    _, told = bench.build(source, "--explain")
    steps = [s for s in told["explain"]["steps"] if s["kind"] == "slice"]
    return steps[0]["seconds"] if steps else float("nan")


def measure(bench: Bench, repetitions: int) -> list[list[str]]:
    rows: list[list[str]] = []

    def row(what: str, seconds: float, beside: str, value: float | None, bar: str) -> None:
        shown = "" if value is None else f"{value:.2f}"
        rows.append([what, f"{seconds * 1e3:.0f} ms", beside, shown, bar])
        print("| " + " | ".join(rows[-1]) + " |", flush=True)

    plain, bare = bench.source("plain.cu", PLAIN), bench.source("bare.cu", BARE)
    times = in_turns({"kiln": lambda: bench.cold(plain), "nvcc": lambda: bench.nvcc(bare)}, repetitions)
    row("full lane, from nothing", median(times["kiln"]), "nvcc -shared", ratio(times["kiln"], times["nvcc"]), "0.85 on 4 cores")
    nvcc = median(times["nvcc"])

    bench.cold(plain)
    bench.edit(plain, PLAIN, "device")
    slices = [s for s in (bench.edit(plain, PLAIN, "slice") for _ in range(repetitions)) if s == s]
    own = nvrtc_seconds(bench, plain)
    if slices:
        row("edit lane, NVRTC slice", median(slices), "NVRTC alone + 60 ms", median(slices) / (own + 0.06), "1.00")
    device = bench.source("device.cu", PLAIN.replace("scale", "other") + "// __NVCC__\n#ifdef __NVCC__\n#endif\n")
    bench.build(device)
    chain = [bench.edit(device, device.read_text().replace("scale", "other"), "device") for _ in range(repetitions + 1)][1:]
    row("edit lane, device chain", median(chain), "nvcc -shared", median(chain) / nvcc, "0.45")
    try:
        live = in_process(bench, repetitions)
        row("edit to the op's answer in a running Python", median(live), "nvcc -shared", median(live) / nvcc, "150 ms")
    except RuntimeError as error:
        print(f"no Python row: {str(error).strip().splitlines()[-1]}")

    five = in_turns({"five": lambda: bench.cold(plain, FIVE), "one": lambda: bench.cold(plain)}, repetitions)
    row("five architectures + PTX", median(five["five"]), "one architecture", ratio(five["five"], five["one"]), "1.80 on 8 cores")

    cub, cub_bare = bench.source("total.cu", CUB), bench.source("total_bare.cu", CUB_BARE)
    few = max(2, repetitions // 2)
    heavy = in_turns({"kiln": lambda: bench.cold(cub), "nvcc": lambda: bench.nvcc(cub_bare)}, few, discard=0)
    row("cub, full lane", median(heavy["kiln"]), "nvcc -shared", ratio(heavy["kiln"], heavy["nvcc"]), "0.85 on 4 cores")
    chain = [bench.edit(cub, CUB, "device") for _ in range(few)]
    row("cub, edit lane", median(chain), "nvcc -shared", median(chain) / median(heavy["nvcc"]), "0.45")

    bench.build(plain)
    row("nothing changed", min(bench.build(plain)[0] for _ in range(10)), "", None, "40 ms")
    row("hit after rm -rf build", median(bench.hit(plain) for _ in range(repetitions)), "", None, "150 ms")
    with redis(bench.folder) as place:
        if place:
            env = {"KILN_CACHE_REMOTE": place, "KILN_CACHE_SECRET": "a secret of the benchmark"}
            shutil.rmtree(bench.folder / "cache/kiln/store", ignore_errors=True)
            shutil.rmtree(bench.folder / "cache/kiln/lone", ignore_errors=True)
            bench.build(plain, **env)
            row("hit from Redis", median(bench.hit(plain, **env) for _ in range(repetitions)), "", None, "250 ms")
        else:
            print("no redis-server: no row for it")
    return rows


class redis:  # noqa: N801
    """A server of its own while it lasts; None where there is none."""

    def __init__(self, folder: Path):
        self.folder, self.server = folder, None

    def __enter__(self) -> str | None:
        program = shutil.which("redis-server")
        if not program:
            return None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.server = subprocess.Popen(
            [program, "--port", str(port), "--save", "", "--dir", str(self.folder)], stdout=subprocess.DEVNULL
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        return f"redis://127.0.0.1:{port}"

    def __exit__(self, *_: object) -> None:
        if self.server:
            self.server.kill()
            self.server.wait()


def table(rows: list[list[str]]) -> str:
    head = ["| what | time | beside | ratio | bar |", "|---|---|---|---|---|"]
    return "\n".join(head + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="What builds cost, beside nvcc.")
    parser.add_argument("--kiln", type=Path, default=ROOT / "build/release/stage/kiln/bin/kiln")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--classic", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kiln-bars-") as folder:
        bench = Bench(given.kiln.resolve(), Path(folder))
        rows = measure(bench, given.repetitions)
        classic = classic_rows(Path(folder), bench) if given.classic else []
    facts = machine()
    text = "# Build times\n\nWritten by `benchmarks/build_bars.py`. Every ratio is of one run.\n\n" + table(rows)
    if classic:
        text += "\n## The classic advice\n\n| what | seconds | folklore |\n|---|---|---|\n"
        text += "".join(f"| {what} | {seconds} | {folklore} |\n" for what, seconds, folklore in classic)
    text += "\n| machine | |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in facts.items())
    print(text)
    if given.write:
        given.write.mkdir(parents=True, exist_ok=True)
        (given.write / "build.md").write_text(text)
        (given.write / "build.json").write_text(json.dumps({"rows": rows, "classic": classic, "machine": facts}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
