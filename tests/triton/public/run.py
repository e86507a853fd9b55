# SPDX-License-Identifier: Apache-2.0
"""Do public Triton kernels run on the engine, and agree with their references and with a GPU?

    python tests/triton/public/run.py SOURCES [--only WORDS] [--targets sm_80,sm_90] [--out FOLDER]
    python tests/triton/public/run.py SOURCES --device cuda --out GPU
    python tests/triton/public/run.py SOURCES --page docs/results/triton.md --out FOLDER [--gpu GPU]

SOURCES: a folder with a checkout of each repository of rule.md under OWNER+NAME. Each case runs in
a process of its own. What it computed is kept in --out; --page compares that with the GPU's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def all_cases() -> list[str]:
    """The tutorials, then the drawn list in its order."""
    import tutorials  # noqa: F401
    from case import CASES

    drawn = json.loads((HERE / "list.json").read_text())["kernels"]
    return list(CASES) + [f"{one['repository']} {one['path']} {one['name']}" for one in drawn]


def file_of(out: Path, case: str, target: str) -> Path:
    return out / (re.sub(r"[^\w.]+", "-", f"{case} {target}") + ".pt")


def watch_launches(seen: set[str]) -> None:
    """Which kernels a case launched: one that never reaches its kernel has tried nothing."""
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def watched(self: Any, *arguments: Any, **named: Any) -> Any:
        seen.add(self.__name__)
        return run(self, *arguments, **named)

    JITFunction.run = watched


def run_one(options: argparse.Namespace, name: str, target: str) -> int:
    import torch

    engine = options.device == "engine"
    if engine:
        import kiln.triton

        kiln.triton.enable(target)
    import drawn_cases  # noqa: F401
    import tutorials  # noqa: F401
    from case import CASES, Run, Skipped
    from device_lines import change_imports_below

    repository, _path, kernel = name.split(" ")
    run = Run(options.sources / repository.replace("/", "+"), "cpu" if engine else "cuda")
    if engine:
        change_imports_below(run.checkout)
    watch_launches(run.launched)
    torch.manual_seed(0)
    begin, error, skipped = time.time(), None, None
    try:
        if name not in CASES:
            raise NotImplementedError("no case is written for it")
        CASES[name](run)
        if kernel not in run.launched:
            error = f"{kernel} was not launched, only {sorted(run.launched)}"
    except Skipped as reason:
        skipped = str(reason)
    except BaseException as failed:  # noqa: BLE001  whatever it is goes into the table
        traceback.print_exc()
        error = f"{type(failed).__name__}: {' '.join(str(failed).split())[:400]}"
    wrong = [one.error for one in run.compared.values() if one.error]
    if not error and not skipped and not run.compared:
        error = "nothing was compared"
    kept = {
        "case": name, "target": target, "error": error, "wrong": wrong, "skipped": skipped,
        "seconds": time.time() - begin, "launched": sorted(run.launched),
        "compared": {key: vars(one) for key, one in run.compared.items()},
    }  # fmt: skip
    torch.save(kept, file_of(options.out, name, target))
    return 1 if error or wrong else 0


def run_all(options: argparse.Namespace) -> int:
    options.out.mkdir(parents=True, exist_ok=True)
    targets = options.targets.split(",") if options.device == "engine" else ["cuda"]
    words = options.only.split(",") if options.only else [""]
    chosen = [name for name in all_cases() if any(word in name for word in words)]
    work = [(name, target) for name in chosen for target in targets]
    with ThreadPoolExecutor(options.jobs) as pool:
        bad = sum(pool.map(lambda one: run_apart(options, *one), work))
    return 1 if bad else 0


def run_apart(options: argparse.Namespace, name: str, target: str) -> int:
    import torch

    kept = file_of(options.out, name, target)
    kept.unlink(missing_ok=True)
    words = [sys.executable, __file__, str(options.sources), "--one", name, target]
    words += ["--out", str(options.out), "--device", options.device]
    environment = dict(os.environ)
    if options.device == "engine":
        environment["KILN_DEVICE"] = "engine"
        environment["CUDA_VISIBLE_DEVICES"] = ""
    begin = time.time()
    log = kept.with_suffix(".log")
    try:
        with log.open("w") as text:
            code = subprocess.run(
                words, stdout=text, stderr=text, env=environment, timeout=options.limit
            ).returncode
        state = "passed" if code == 0 else f"FAILED ({log})"
    except subprocess.TimeoutExpired:
        code, state = 1, f"FAILED: longer than {options.limit:.0f} s"
    if not kept.exists():
        torch.save({"case": name, "target": target, "error": state, "wrong": [], "skipped": None,
                    "seconds": 0, "launched": [], "compared": {}}, kept)  # fmt: skip
    print(f"{state}  {name} {target} {time.time() - begin:.0f} s", flush=True)
    return 1 if code else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--device", choices=["engine", "cuda"], default="engine")
    parser.add_argument("--targets", default="sm_80,sm_90")
    parser.add_argument("--out", type=Path, default=Path("build/triton-public"))
    parser.add_argument("--jobs", type=int, default=1, help="cases at the same time")
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--gpu", type=Path)
    options = parser.parse_args()
    if options.one:
        return run_one(options, *options.one)
    if options.page:
        import page

        return page.write(options.page, options.out, options.gpu, all_cases())
    return run_all(options)


if __name__ == "__main__":
    sys.exit(main())
