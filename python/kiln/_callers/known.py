# SPDX-License-Identifier: Apache-2.0
"""Which op does a callable of libkiln_callers.so stand for?"""

from __future__ import annotations

from typing import Any

from ..abi import Library, OpRecord

# By the object that each callable is bound to; a route's callable gets it as its first argument.
OPS: dict[Any, tuple[Library, OpRecord]] = {}
