# SPDX-License-Identifier: Apache-2.0
"""Which of many cases of one kind run in `make test`? Each of them compiles something, and 18
minutes are for everything; `make test-python-long` runs the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def a_sample(values: Iterable[Any], every: int) -> list[Any]:
    """One in `every` as it is, the others for the long run. By place, not by cost or by what has
    failed: nobody chooses."""
    return [
        value if index % every == 0 else pytest.param(value, marks=pytest.mark.long)
        for index, value in enumerate(values)
    ]
