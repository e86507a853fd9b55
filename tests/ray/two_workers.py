#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `kiln tune --ray` work on a real cluster of two workers? Starts one on this machine, with
Ray's own daemons, one core each.

    make test-ray            (PYTHON names one that has ray; the stage is build/release/stage)

Every variant is built once, by both workers between them, one that crashes is passed over, all
outcomes are in one journal, and a killed run goes on; workers with GPUs of two models (a stand-in
for the lane says so) are refused. Exit code 0 or 1; 0 with "skipped" where ray is not installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STAGE = Path(os.environ.get("KILN_STAGE_DIR") or ROOT / "build" / "release" / "stage")


def check(what: str, holds: bool) -> int:
    print(f"{'ok  ' if holds else 'FAIL'} {what}", flush=True)
    return 0 if holds else 1


def tune(
    folder: Path, address: str, *words: str, device: str = "engine", **env: str
) -> tuple[subprocess.CompletedProcess, dict]:
    line = [
        str(STAGE / "kiln/bin/kiln"), "tune", str(folder / "tunable.cu"), "shift", "randn:f32:300",
        "by=2", *(["--device", device] if device else []), "--ray", address, "--limit", "20",
        "--journal", str(folder / "journal.jsonl"), "--json", *words,
    ]  # fmt: skip
    done = subprocess.run(
        line, capture_output=True, text=True, check=False, env={**os.environ, **env}
    )
    return done, json.loads(done.stdout) if done.stdout.strip() else {}


# A kiln whose lanes, and they alone, say that each is a GPU of another model.
OTHER_GPUS = """\
#!/bin/sh
[ "$1 $2" = "tune --measuring" ] || exec {kiln} "$@"
name=B; mkdir {folder}/first 2>/dev/null && name=A
read line
echo '{{"device": {{"kind": "cuda", "name": "GPU '$name'", "compute": "9.0"}}}}'
cat >/dev/null
"""


def other_gpus(folder: Path) -> str:
    """The path of such a kiln."""
    path = folder / "kiln-of-other-gpus"
    path.write_text(OTHER_GPUS.format(kiln=STAGE / "kiln/bin/kiln", folder=folder))
    path.chmod(0o755)
    return str(path)


def main() -> int:
    try:
        from ray.cluster_utils import Cluster
    except ImportError:
        print("skipped: ray is not installed (pip install ray)")
        return 0
    os.environ["PYTHONPATH"] = f"{STAGE}:{os.environ.get('PYTHONPATH', '')}"
    os.environ["KILN_PYTHON"] = sys.executable
    failed = 0
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        shutil.copy(ROOT / "tests/python/sources/tunable.cu", folder)
        few, partial = tune(folder, cluster.address, "--vary", "BLOCK=32,64,96,128,160,192",
                            "--vary", "MODE=0,4", "--where", "MODE == 0 || BLOCK == 64",
                            "--trials", "3")  # fmt: skip
        failed += check(
            f"three trials: {few.stderr.strip()[-300:]}",
            few.returncode == 0 and len(partial["outcomes"]) == 3,
        )
        done, result = tune(folder, cluster.address, "--vary", "BLOCK=32,64,96,128,160,192",
                            "--vary", "MODE=0,4", "--where",
                            "MODE == 0 || BLOCK == 64")  # fmt: skip
        failed += check("goes on after the first three", "resuming: 3 outcomes" in done.stderr)
        outcomes = result.get("outcomes", [])
        fates = {tuple(o["defines"]): o["fate"] for o in outcomes}
        failed += check(
            f"all seven have their fate once: {fates}", len(outcomes) == len(fates) == 7
        )
        crashed = [defines for defines, fate in fates.items() if fate != "checked"]
        failed += check(
            "the one that aborts is the only one that crashed",
            crashed == [("BLOCK=64", "MODE=4")],
        )
        builders = {o["facts"].get("built_by") for o in outcomes}
        failed += check(f"both workers built: {builders}", len(builders) == 2)
        lanes = {o["facts"].get("lane") for o in outcomes if o["fate"] == "checked"}
        failed += check(f"both workers checked: lanes {lanes}", lanes == {0, 1})
        lines = (folder / "journal.jsonl").read_text().splitlines()
        failed += check("one journal has all of them", len(lines) == 8)
        mixed, _ = tune(
            folder,
            cluster.address,
            "--vary",
            "BLOCK=32",
            "--fresh",
            device="",
            KILN_BIN=other_gpus(folder),
        )
        words = mixed.stderr.strip()
        both = "GPU A" in words and "GPU B" in words and "cannot be compared" in words
        failed += check(
            f"two models of GPU are refused: {words[-300:]}", mixed.returncode == 3 and both
        )
        wrong, _ = tune(folder, "10.255.255.1:1", "--vary", "BLOCK=32")
        failed += check(
            f"no cluster at an address: {wrong.stderr.strip()[-300:]}", wrong.returncode == 3
        )
    cluster.shutdown()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
