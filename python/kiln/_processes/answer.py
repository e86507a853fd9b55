# SPDX-License-Identifier: Apache-2.0
"""How does a process that the command started answer it? With one JSON file, which is there whole
or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

from ..errors import KilnError, UsageError


def answer_request(
    run: Callable[[Any], Any],
    request_path: str,
    answer_path: str,
    failed: str,
    refused: str = "work",
    why: Callable[[Exception], str] = lambda error: f"{type(error).__name__}: {error}",
) -> int:
    """Writes what run(request) gives. failed: what is said of an exception; refused: whose fault a
    KilnError is."""
    try:
        answer = run(json.loads(Path(request_path).read_text()))
    except KilnError as error:
        fault = "usage" if isinstance(error, UsageError) else refused
        answer = {"error": {"what": error.what, "why": error.why, "fix": error.fix, "fault": fault}}
    except Exception as error:
        answer = {"error": {"what": failed, "why": why(error), "fault": "work"}}
    whole = Path(answer_path + ".part")
    whole.write_text(json.dumps(answer))
    whole.rename(answer_path)
    return 0
