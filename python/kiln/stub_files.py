# SPDX-License-Identifier: Apache-2.0
"""How does an editor know the ops of a loaded module? By a stub, a .pyi with their signatures.

    python -m kiln.stub_files add.cu -o add.pyi

A module that kiln.load made has no source that a type checker could read. With the stub next to the
script it can be named:

    if TYPE_CHECKING:
        import add
    else:
        add = kiln.load("add.cu")
"""

from __future__ import annotations

import argparse
import re
import sys
import types
from pathlib import Path
from typing import Any, Optional

from .errors import KilnError

_HEADER = """# Signatures of the ops in {name}; kiln.stubs(module) writes this file.
from typing import Optional, Sequence, Union, overload

import torch
from kiln import Op
"""
# Type of a torch schema -> what a caller may pass.
_TAKES = {
    "Tensor": "torch.Tensor",
    "int": "int",
    "SymInt": "int",
    "float": "float",
    "number": "float",
    "bool": "bool",
    "str": "str",
    "ScalarType": "torch.dtype",
    "Device": "Union[torch.device, str]",
}


def stubs(module: types.ModuleType, path: Any = None) -> str:
    """The text of a .pyi for the ops of a module that kiln.load returned; also written to `path`,
    if one is given."""
    from .op import Op

    ops = {name: op for name, op in sorted(vars(module).items()) if isinstance(op, Op)}
    if not ops:
        raise KilnError(
            f"cannot write stubs for {module.__name__}",
            "it has no ops of kiln's own: its functions come from PYBIND11_MODULE or TORCH_LIBRARY",
            "pybind11-stubgen writes stubs for PYBIND11_MODULE",
        )
    text = _HEADER.format(name=module.__name__)
    for name, op in ops.items():
        text += "\n" + _op_text(name, op)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _op_text(name: str, op: Any) -> str:
    """A class with the op's own call, since an op also has reference, fake, backward."""
    schemas = [overload._schema for overload in op._kiln_overloads()]
    kind = "_" + "".join(part.capitalize() for part in name.split("_"))
    lines = [f"class {kind}(Op):"]
    for schema in schemas:
        if len(schemas) > 1:
            lines.append("    @overload")
        lines.append(f"    def __call__({_parameters(schema)}) -> {_result(schema)}: ...  "
                     "# type: ignore[override]")  # fmt: skip
    return "\n".join(lines) + f"\n\n{name}: {kind}\n"


def _parameters(schema: Any) -> str:
    texts = ["self"]
    keyword_only = False
    for argument in schema.arguments:
        if argument.kwarg_only and not keyword_only:
            keyword_only = True
            texts.append("*")
        default = " = ..." if argument.has_default_value() else ""
        texts.append(
            f"{argument.name}: {_annotation(str(argument.real_type), taken=True)}{default}"
        )
    return ", ".join(texts)


def _result(schema: Any) -> str:
    kinds = [_annotation(str(result.real_type), taken=False) for result in schema.returns]
    if not kinds:
        return "None"
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def _annotation(kind: str, taken: bool) -> str:
    """torch writes Optional[List[int]]."""
    inner = re.fullmatch(r"(Optional|List)\[(.*)\]", kind)
    if inner is None:
        return _TAKES.get(kind, "object")
    below = _annotation(inner[2], taken)
    if inner[1] == "Optional":
        return f"Optional[{below}]"
    return f"{'Sequence' if taken else 'list'}[{below}]"


def main(words: Optional[list[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kiln.stub_files", description="Write a .pyi with the signatures of ops."
    )
    parser.add_argument("target", help="a .cu file, a project folder, or a built library")
    parser.add_argument("-o", metavar="FILE", help="write there (default: stdout)")
    given = parser.parse_args(words)
    from .loader import load

    try:
        text = stubs(load(given.target), given.o)
    except KilnError as error:
        print(error, file=sys.stderr)
        return 1
    if given.o is None:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
