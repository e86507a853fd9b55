# SPDX-License-Identifier: Apache-2.0
"""What did a probe give, and which differences have a reason? `compare.py LIBRARY STAGE` runs the
probes whose numbers it reads as JSON, one line of JSON for each."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

ALLOWED = Path(__file__).with_name("allowed.txt")


def plain(outcome: list[str]) -> list[str]:
    """Without what differs from build to build: frames of the C++ stack, addresses, and the
    operators' namespaces of a message of the compiler's."""
    text = [
        re.sub(r"\nException raised from.*|\nC\+\+ CapturedTraceback:.*", "", one, flags=re.DOTALL)
        for one in outcome
    ]
    text = [re.sub(r"0x[0-9a-f]{6,}", "0x", one) for one in text]
    # TORCH_CHECK_EQ's date and place.
    text = [re.sub(r"\[F\d{4} [\d:.]+ [^\]]*\] ", "", one).rstrip() for one in text]
    return [re.sub(r"at \"[^\"]*\":\d+", 'at "FILE":LINE', one) for one in text]


def allowed_texts() -> list[tuple[re.Pattern[str], str]]:
    """Rows `REGEX of the probe => REASON`."""
    rows = [line.split(" => ", 1) for line in ALLOWED.read_text().splitlines()
            if " => " in line and not line.startswith("#")]  # fmt: skip
    return [(re.compile(pattern), reason) for pattern, reason in rows]


def reason_of(
    probe: str,
    ours: list[str],
    torchs: list[str],
    allowed: list[tuple[re.Pattern[str], str]],
) -> str | None:
    """Texts of errors may differ, calls that kiln's headers refuse (the source is then built with
    torch's), and calls that raise with one of the two alone."""
    if ours[0] != "refused" and "raised" not in (ours[0], torchs[0]):
        return None
    return next((reason for pattern, reason in allowed if pattern.search(probe)), None)


def main() -> int:
    library, stage = sys.argv[1:3]
    sys.path.insert(0, stage)
    import importlib.machinery
    import importlib.util

    import torch

    # A function that no library has ends the process at its call, not at the import.
    sys.setdlopenflags(os.RTLD_LAZY)
    loader = importlib.machinery.ExtensionFileLoader("probes", library)
    spec = importlib.util.spec_from_file_location("probes", library, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    for number in json.load(sys.stdin):
        torch.manual_seed(0)
        try:
            outcome = ["gave", module.run(number)]
        except BaseException as error:
            outcome = ["raised", type(error).__name__, str(error)]
        print(json.dumps([number, *outcome]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
