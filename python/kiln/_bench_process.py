# SPDX-License-Identifier: Apache-2.0
"""What does `kiln bench --against torch.add` run? This: the op of a built library beside Python's functions.

python -m kiln._bench_process REQUEST.json ANSWER.json
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from ._answer import answer_request
from .errors import KilnError


def arguments_of(texts: list[str], seed: int, device: str) -> tuple[list[Any], dict[str, Any]]:
    """The command's arguments as Python values: tensors of the host's grammar, numbers, words."""
    from . import _measure

    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    tensors = 0
    for text in texts:
        name, _, rest = text.partition("=")
        keyword = name if rest and name.isidentifier() and name not in ("full", "arange", "randint") else ""
        value: Any = rest if keyword else text
        if ":" in value or value.endswith(".npy"):
            value = _measure.tensor(value, seed, tensors, device)
            tensors += 1
        else:
            value = _plain(value)
        if keyword:
            kwargs[keyword] = value
        else:
            args.append(value)
    return args, kwargs


def _plain(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text in words:
        return words[text]
    if text.startswith("["):
        return json.loads(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def run(request: dict[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    import torch

    imported = time.perf_counter()
    from .benchmark import bench
    from .loader import load
    from .place import device

    module = load(request["library"])
    loaded = time.perf_counter()
    name = request["op"].split(".")[0]
    op = getattr(module, name, None)
    if op is None:
        raise KilnError(f"{request['library']} has no op '{name}'", "its ops are " + ", ".join(sorted(vars(module))))
    where = device()
    args, kwargs = arguments_of(request["arguments"], request["seed"], where)
    options = dict(request["options"])
    result = bench(
        op, *args, against=list(request["against"]), bytes=request["bytes"], flops=request["flops"], name=name,
        options=options, **kwargs,
    )  # fmt: skip
    value = result.json
    value["start"] = {"import_s": imported - began, "load_s": loaded - imported}
    value["versions"]["torch"] = torch.__version__
    return value


def main(request_path: str, answer_path: str) -> int:
    return answer_request(run, request_path, answer_path, "the benchmark failed")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
