# SPDX-License-Identifier: Apache-2.0
"""What is right, when `kiln tune --reference torch.add` asks? The function's results for the same
arguments.

python -m kiln._processes.tune_reference REQUEST.json ANSWER.json
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Callable

from .._argument_text import arguments_of
from .._checks.arguments import Call
from .._checks.reference import Reference
from ..errors import KilnError
from .answer import answer_request


def function_named(name: str) -> Callable[..., Any]:
    """`torch.nn.functional.gelu`: the longest part that imports is the module."""
    words = name.split(".")
    for cut in range(len(words) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(words[:cut]))
        except ImportError:
            continue
        for word in words[cut:]:
            found = getattr(found, word, None)
        if callable(found):
            return found
    raise KilnError(
        f"cannot compare with {name}",
        "there is no such Python function",
        "as torch.nn.functional.gelu",
    )


def run(request: dict[str, Any]) -> dict[str, Any]:
    import numpy
    import torch

    function = function_named(request["name"])
    args, kwargs = arguments_of(request["arguments"], request["seed"], "cpu")
    # In f64 where that works, as kiln.test and kiln.bench do.
    call = Call(tuple(args), kwargs, frozenset(), None)
    files = []
    for result in Reference(function, request["seed"]).expected(call).results:
        if not isinstance(result, torch.Tensor):
            continue
        # numpy has no bf16: compared within the tolerance of the op's own dtype all the same.
        exact = (
            result.float()
            if result.is_floating_point() and result.dtype != torch.float64
            else result
        )
        files.append(f"result{len(files)}.npy")
        numpy.save(Path(request["folder"]) / files[-1], exact.detach().contiguous().numpy())
    if not files:
        raise KilnError(f"cannot compare with {request['name']}", "it gives no tensor")
    return {"files": files}


def main(request_path: str, answer_path: str) -> int:
    return answer_request(run, request_path, answer_path, "the reference failed", refused="usage")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
