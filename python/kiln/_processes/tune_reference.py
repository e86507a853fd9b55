# SPDX-License-Identifier: Apache-2.0
"""What is right, when `kiln tune --against torch.add` asks? The results of that function, or of an
expression over the op's parameters, for the same arguments.

python -m kiln._processes.tune_reference REQUEST.json ANSWER.json
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .._against import parameters_of_op, peer_named
from .._argument_text import arguments_of
from .._checks.arguments import Call
from .._checks.reference import Reference
from ..errors import KilnError
from .answer import answer_request


def run(request: dict[str, Any]) -> dict[str, Any]:
    import numpy
    import torch

    from ..loader import load
    from ..modules import library_of

    library, op = request.get("library", ""), request["op"].split(".")[0]
    signature = None
    if library:
        module = load(library)
        args, kwargs = arguments_of(
            request["arguments"], request["seed"], "cpu", library_of(module), request["op"]
        )
        overload = Call.of(getattr(module, op), tuple(args), kwargs).overload
        signature = parameters_of_op(getattr(module, op), overload)
    else:
        args, kwargs = arguments_of(request["arguments"], request["seed"], "cpu")
    function = peer_named(request["name"], signature)
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
