# SPDX-License-Identifier: Apache-2.0
"""What does `kiln bench --against torch.add` run? This: the op of a built library compared with
Python's functions.

python -m kiln._processes.bench REQUEST.json ANSWER.json
"""

from __future__ import annotations

import sys
import time
from typing import Any

from .._argument_text import arguments_of
from ..errors import KilnError
from .answer import answer_request


def run(request: dict[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    import torch

    imported = time.perf_counter()
    from ..benchmark import bench
    from ..loader import load
    from ..modules import library_of
    from ..place import device

    module = load(request["library"])
    loaded = time.perf_counter()
    name = request["op"].split(".")[0]
    op = getattr(module, name, None)
    if op is None:
        raise KilnError(
            f"{request['library']} has no op '{name}'",
            "its ops are " + ", ".join(sorted(vars(module))),
        )
    where = device()
    library = library_of(module)
    args, kwargs = arguments_of(
        request["arguments"], request["seed"], where, library, request["op"]
    )
    options = dict(request["options"])
    result = bench(
        op, *args, against=list(request["against"]), bytes=request["bytes"], flops=request["flops"],
        name=name, options=options, **kwargs,
    )  # fmt: skip
    value = result.json
    value["start"] = {"import_s": imported - began, "load_s": loaded - imported}
    value["versions"]["torch"] = torch.__version__
    return value


def main(request_path: str, answer_path: str) -> int:
    return answer_request(run, request_path, answer_path, "the benchmark failed")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
