# SPDX-License-Identifier: Apache-2.0
"""Does the ready library do the same in this Python's torch? use_sample.py LIBRARY prints JSON:
versions and results.

First as torch alone loads it, then through the package.
"""

import json
import os
import platform
import sys

os.environ.setdefault("KILN_DEVICE", "engine")

import torch


def results(ops) -> dict:
    base = torch.arange(1000, dtype=torch.float32)
    found = {}
    for dtype in (torch.float32, torch.float64, torch.int64):
        x = (base - 500).to(dtype)
        y = base.to(dtype)
        out = ops.axpy(x, y, 3.0)
        assert torch.equal(out, 3 * x + y), dtype
        found[f"axpy {dtype}"] = out.double().sum().item()
    found["defaults"] = ops.axpy(base, base, repeat=2).sum().item()
    changed = base.clone()
    ops.increment(changed)
    found["in place"] = changed.sum().item()
    found["empty"] = list(ops.axpy(base[:0], base[:0]).shape)
    found["refusal"] = refusal(lambda: ops.axpy(base, base[:3]))
    leaf = torch.ones(3, requires_grad=True)
    found["no backward"] = refusal(lambda: ops.axpy(leaf, torch.ones(3)).sum().backward())
    found["write to a recorded tensor"] = refusal(lambda: ops.increment(leaf * 1))
    with torch.no_grad():
        found["no gradient"] = ops.axpy(leaf, leaf).requires_grad
    return found


def refusal(call) -> str:
    try:
        call()
        return "none"
    except RuntimeError as error:
        return str(error).splitlines()[0]


def list_result(ops) -> str:
    """A list crosses the shim from torch 2.10; before, the package says so."""
    try:
        return f"works: {ops.first_of([torch.ones(3), torch.zeros(2)]).sum().item()}"
    except RuntimeError as error:
        return f"refused: {' '.join(str(error).split())}"


def main() -> None:
    library = sys.argv[1]
    torch.ops.load_library(library)
    alone = results(torch.ops.sample)

    import kiln

    module = kiln.load(library)
    assert results(module) == alone
    lists = list_result(module)
    has_lists = tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 10)
    assert lists.startswith("works" if has_lists else "refused"), lists
    assert has_lists or "since torch 2.10" in lists, (
        f"the refusal must name the torch that it needs: {lists}"
    )
    assert alone["no backward"] == "error: sample::axpy has no backward", alone
    assert (
        alone["write to a recorded tensor"] == "error: sample::increment cannot be differentiated"
    ), alone
    traced = torch.compile(lambda x: module.axpy(x, x), backend="aot_eager", fullgraph=True)
    assert torch.equal(traced(torch.ones(3)), module.axpy(torch.ones(3), torch.ones(3)))
    told = refusal(lambda: traced(torch.ones(3, requires_grad=True)).sum().backward())
    assert told != "none", "a compiled op without a backward gave a gradient"
    torch.library.opcheck(
        module.axpy.default,
        (torch.randn(8), torch.randn(8), 1.5),
        test_utils=("test_schema", "test_faketensor"),
    )
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "python": platform.python_version(),
                "results": alone,
                "lists": lists,
            }
        )
    )


if __name__ == "__main__":
    main()
