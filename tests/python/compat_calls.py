# SPDX-License-Identifier: Apache-2.0
"""Which calls must give the same through kiln's compat headers and through torch's own? Each is an
expression over `e`, the module of the source, `o`, torch.ops.<source>, and `d`, the device of
tensors that kernels read.

compat_calls.py SOURCE LIBRARY HEADERS prints what each gave, as JSON: the value, or the exception's
type and text. tools/compat-equal builds both ways and compares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

F = "torch.arange(12.0).view(3, 4)"

CALLS: dict[str, list[str]] = {
    "torch_add.cu": [
        *(
            f"e.my_add(torch.randn({size}, device=d).to(torch.{dtype}), torch.randn({size}, "
            f"device=d).to(torch.{dtype}))"
            for size in ("0", "1", "1000", "33, 65")
            for dtype in ("float32", "float64", "float16", "bfloat16")
        ),
        "(lambda x: (e.scale_rows_(x, factor=3), x))(torch.randn(4, 6, device=d).t()[1:5])",
        "(lambda x: (e.scale_rows_(x), x))(torch.randn(4, 6, device=d))",
        "e.facts(torch.randn(4, 6))",
        "e.halves(torch.randn(4, 6), dim=1)",
        "e.twice(4), e.twice('ab'), e.answer, e.__doc__, e.__name__",
        "e.my_add.__doc__, e.halves.__doc__, e.mixed.__doc__, e.twice.__doc__, e.refuse.__doc__",
        "sorted(name for name in dir(e) if not name.startswith('__'))",
        "e.mixed(torch.randn(2, 6), shape=[3, 4])",
        "e.mixed(torch.randn(2, 6), None, (12,), negate=True)",
        "e.mixed(torch.randn(2, 6), torch.randn(6), [2, 6], 2, False, 'sum')",
        "e.mixed(torch.randn(2, 6), bias=torch.randn(6), shape=[2, 6], reduce='mean')",
        f"e.indexed({F})",
        *(
            f"e.options_of(torch.zeros(1), torch.{t})"
            for t in ("float32", "int64", "bool", "complex64", "uint8")
        ),
        # Refusals: by TORCH_CHECK, of a dtype, of an index, of arguments.
        "e.my_add(torch.zeros(2), torch.zeros(3))",
        "e.my_add(torch.zeros(2, 2).t(), torch.zeros(2, 2))",
        *(
            f"e.my_add(torch.zeros(2, dtype=torch.{t}), torch.zeros(2, dtype=torch.{t}))"
            for t in ("int32", "bool", "complex64")
        ),
        "e.my_add(torch.zeros(2), torch.zeros(2, dtype=torch.float64))",
        *(
            f"e.as_float(torch.zeros(2, dtype=torch.{t}))"
            for t in ("int64", "float16", "float32", "bool")
        ),
        "e.scale_rows_(torch.zeros(2))",
        "e.size_of(torch.zeros(2, 3), -1), e.size_of(torch.zeros(2, 3), 1)",
        "e.size_of(torch.zeros(2, 3), 5)",
        "e.size_of(torch.zeros(2, 3), -3)",
        "e.size_of(torch.zeros(()), 0)",
        "e.mixed(torch.zeros(4), shape=[3])",
        "e.mixed(torch.zeros(4), shape=[4], reduce='max')",
        "e.mixed(torch.zeros(4), torch.zeros(3), shape=[4])",
        "e.halves(torch.zeros(4), 3)",
        *(
            f"e.refuse({how!r})"
            for how in ("index", "value", "type", "not implemented", "bare", "std", "x")
        ),
        "e.my_add(1, 2)",
        "e.my_add(torch.zeros(1))",
        "e.my_add()",
        "e.my_add(torch.zeros(1), torch.zeros(1), torch.zeros(1))",
        "e.size_of(torch.zeros(1), 1.5)",
        "e.size_of(torch.zeros(1), None)",
        "e.scale_rows_(torch.zeros(1, 1), fctor=2)",
        "e.twice(2**70)",
        "e.twice([1])",
        "e.mixed(torch.zeros(4), shape=['a'])",
        "e.refuse(3)",
    ],
    "torch_ops.cpp": [
        f"o.muladd({F}, {F}, 2.5)",
        f"o.muladd({F}.t(), {F}.t())",
        f"o.muladd({F}, {F}[:2])",
        f"o.muladd({F}.double(), {F}.double())",
        f"o.muladd({F})",
        f"o.muladd({F}, {F}, 'x')",
        f"(lambda x: (o.add_one_(x), x))({F})",
        f"o.both({F}, 3)",
        f"o.pick([{F}, {F} + 1], 1)",
        f"o.pick([{F}], 4, {F} * 2)",
        f"o.pick([{F}], 4)",
        f"o.pick([], 0, {F})",
        *(
            f"o.named({F} - 5, {how!r}, {twice})"
            for how in ("sin", "neg", "relu")
            for twice in (True, False)
        ),
        "str(o.muladd.default._schema), str(o.pick.default._schema), "
        "str(o.add_one_.default._schema)",
        f"e.corner({F})",
        "e.corner(torch.zeros(3))",
        "e.corner(torch.zeros(3, 3, dtype=torch.float64))",
        "e.item_of(torch.tensor(1.5)), e.item_of(torch.tensor([7]))",
        "e.item_of(torch.zeros(2))",
        "e.shapes([torch.zeros(2, 3), torch.zeros(())]), e.shapes(list=[])",
        "e.shapes(torch.zeros(2, 3))",
        "e.shapes(['a'])",
        f"e.said({F}.t()), e.said(torch.zeros(0, dtype=torch.bool)), e.said(torch.zeros(()))",
        f"e.arithmetic({F}, {F} - 6)",
        "e.arithmetic(torch.zeros(2, 3), torch.zeros(4))",
        *(
            f"e.made([2, 3], torch.{t})"
            for t in ("float32", "float16", "int8", "int64", "complex128")
        ),
        "e.made([2, -3], torch.float32)",
        "e.made([2], 'float32')",
        *(
            f"e.numbers(torch.arange(-3, 5, dtype=torch.{t}))"
            for t in ("int64", "int32", "int8", "float32", "float64")
        ),
        "e.numbers(torch.arange(3, dtype=torch.uint8))",
        "e.at_index(torch.arange(5), 2), e.at_index(torch.arange(5), -1)",
        "e.at_index(torch.arange(5), 5)",
        "e.at_index(torch.zeros(()), 0)",
        f"e.viewed({F}), e.viewed({F}).stride(), e.viewed({F}).storage_offset()",
        "e.viewed(torch.zeros(3))",
        "e.halved(3), e.halved(), e.halved(None), e.halved(x=5.0)",
        "e.halved('a')",
        "e.swapped((1, 'a')), e.swapped([2, 'b'])",
        "e.swapped((1,))",
        "e.swapped.__doc__, e.halved.__doc__, e.shapes.__doc__, e.said.__doc__, e.made.__doc__",
    ],
}


def described(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        data = value.detach().cpu().contiguous().flatten()
        values = data.view(torch.uint8).tolist() if data.numel() else []
        return [
            "tensor",
            str(value.dtype),
            list(value.shape),
            list(value.stride()),
            value.device.type,
            values,
        ]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(described, value)]
    return [type(value).__name__, repr(value)]


def outcome(call: str, names: dict[str, Any]) -> Any:
    import torch

    torch.manual_seed(0)
    try:
        return described(eval(call, names))
    except Exception as error:
        # torch adds the C++ frames behind the text; their addresses differ from run to run.
        return ["raised", type(error).__name__, str(error).split("\nException raised from")[0]]


def main() -> int:
    source, library, headers = sys.argv[1:4]
    import kiln
    import torch
    from kiln.extension import load_extension

    name = Path(source).stem
    module = load_extension(Path(library), name, True, headers)
    names = {"e": module, "o": getattr(torch.ops, name), "torch": torch, "d": kiln.device()}
    print(json.dumps({call: outcome(call, names) for call in CALLS[source]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
