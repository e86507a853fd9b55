# SPDX-License-Identifier: Apache-2.0
"""What must accompany a figure so that a later one can be compared with it? Machine, versions,
date."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path
from typing import Any

from .._version import __version__


def machine_facts(torch: Any) -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "kiln": __version__,
        "machine": {
            "host": platform.node(),
            "cpu": _cpu_name(),
            "cores": os.cpu_count(),
            "architecture": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "load": round(os.getloadavg()[0], 2),
        },
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "torch_cuda": torch.version.cuda,
        },
    }


def _cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    for label in ("model name", "CPU part"):
        for line in lines:
            if line.startswith(label):
                return line.split(":", 1)[1].strip()
    return platform.machine()
