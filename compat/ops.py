# SPDX-License-Identifier: Apache-2.0
"""How do rows of ops.txt become members and functions of at::? `ops.py OPS FOLDER SOURCE [PREFIX]`
writes FOLDER/PREFIXmethods.h, FOLDER/PREFIXfunctions.h and SOURCE, in which every op is one call of
the dispatcher by name, FOLDER/PREFIXnames.txt, and FOLDER/PREFIXsymint.h, the ops by their other
name."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

# Written by hand in kiln/compat/tensor.h.
BY_HAND = {"contiguous", "empty_like", "to", "item", "_to_copy", "record_stream"}
HAND_OVERLOADS = {"index_put_.tensor_index"}
OPTIONS = ("dtype", "layout", "device", "pin_memory")
# Of the options by the default of their dtype: other options without a dtype mean torch's default
# dtype, not long.
OPTIONS_DEFAULT = {"None": "{}", "long": "kLong", "4": "kLong"}
# torch's headers leave these defaults out (cpp_no_default_args): with them, a call with fewer
# arguments would fit two overloads.
NO_DEFAULT = {
    "arange.start_out": "step", "arange.start_step": "step", "range.out": "step",
    "all.dims_out": "dim", "any.dims_out": "dim", "clamp": "min", "clamp_": "min",
    "clamp.out": "min", "clip": "min", "clip_": "min", "clip.out": "min",
    "conv1d.padding": "bias stride padding", "conv2d.padding": "bias stride padding",
    "conv3d.padding": "bias stride padding", "linalg_matrix_rank.atol_rtol_float": "atol rtol",
    "linalg_matrix_rank.atol_rtol_float_out": "atol rtol",
    "linalg_pinv.atol_rtol_float": "atol rtol", "linalg_pinv.atol_rtol_float_out": "atol rtol",
    "std.out": "unbiased", "var.out": "unbiased",
    "stft": "hop_length win_length window normalized",
}  # fmt: skip
# Beside int[]: an int would rather become a bool. torch has these overloads, too.
ALSO_INT = ("std", "std_mean", "var", "var_mean")

TYPES = {
    "Tensor": "const Tensor&", "Tensor?": "const std::optional<Tensor>&", "Scalar": "const Scalar&",
    "Scalar?": "const std::optional<Scalar>&", "int": "int64_t", "SymInt": "int64_t",
    "int?": "const std::optional<int64_t>&", "SymInt?": "const std::optional<int64_t>&",
    "float": "double", "float?": "const std::optional<double>&", "bool": "bool",
    "bool?": "const std::optional<bool>&", "str": "const char*",
    "str?": "const std::optional<const char*>&", "int[]": "IntArrayRef",
    "int[]?": "OptionalIntArrayRef", "float[]?": "std::optional<ArrayRef<double>>",
    "float[]": "ArrayRef<double>", "ScalarType": "ScalarType",
    "ScalarType?": "const std::optional<ScalarType>&", "Layout?": "const std::optional<Layout>&",
    "Device?": "const std::optional<Device>&", "MemoryFormat": "MemoryFormat",
    "MemoryFormat?": "const std::optional<MemoryFormat>&", "Tensor[]": "TensorList",
    "Tensor?[]": "ArrayRef<std::optional<Tensor>>", "Generator?": "const std::optional<Generator>&",
    "bool[]": "ArrayRef<bool>",
}  # fmt: skip
RETURNS = {"Tensor": "Tensor", "Tensor[]": "std::vector<Tensor>", "Scalar": "Scalar",
           "bool": "bool", "int": "int64_t", "SymInt": "int64_t", "float": "double",
           "": "void"}  # fmt: skip


@dataclass
class Argument:
    type: str
    name: str
    default: Optional[str]
    keyword: bool
    written: bool


@dataclass
class Op:
    name: str
    overload: str
    arguments: list[Argument]
    result: str
    method: bool
    function: bool

    @property
    def out(self) -> list[Argument]:
        return [a for a in self.arguments if a.written and a.keyword]

    @property
    def in_place(self) -> bool:
        return not self.out and any(a.written for a in self.arguments)


def split(text: str) -> list[str]:
    parts, depth, part, quoted = [], 0, "", False
    for c in text:
        quoted ^= c == '"' or c == "'"
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0 and not quoted:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [*parts, part.strip()] if part.strip() else parts


def plain(type_name: str) -> str:
    return re.sub(r"\[\d+\]", "[]", re.sub(r"\([^)]*\)", "", type_name)).replace("SymInt[", "int[")


def read(row: str) -> Op:
    marks, schema = row.split(" ", 1)
    head, result = (
        schema.rsplit(" -> ", 1)
        if not schema.endswith(")") or " -> (" not in schema
        else schema.rsplit(" -> (", 1)
    )
    result = result[:-1] if " -> (" in schema else result
    name, rest = head.split("(", 1)
    base, _, overload = name.partition(".")
    arguments, keyword = [], False
    for part in split(rest.rsplit(")", 1)[0]):
        if part == "*":
            keyword = True
            continue
        match = re.match(r"(\S+(?: -> \*\))?\S*) (\w+)(?:=(.*))?$", part)
        assert match, part
        arguments.append(Argument(plain(match[1]), match[2], match[3], keyword, "!" in match[1]))
    results = (
        [plain(re.sub(r" \w+$", "", r)) for r in split(result)]
        if result.strip() not in ("()", "")
        else []
    )
    absent = NO_DEFAULT.get(name, "").split()
    for argument in arguments:
        if argument.name in absent:
            argument.default = None
    many = f"std::tuple<{', '.join(RETURNS[r] for r in results)}>" if len(results) > 1 else None
    return Op(
        base,
        overload,
        arguments,
        many or RETURNS[results[0] if results else ""],
        "m" in marks,
        "f" in marks,
    )


def default_of(a: Argument) -> str:
    d = a.default
    if d is None:
        return ""
    if d == "None":
        # `= {}` would make the compiler instantiate each std::optional where the op is declared.
        inner = re.fullmatch(r"const std::optional<(.*)>&", TYPES[a.type])
        return f" = kiln_detail::none<{inner[1]}>()" if inner else " = {}"
    if d in ("True", "False"):
        return f" = {d.lower()}"
    if d == "contiguous_format":
        return " = MemoryFormat::Contiguous"
    if d in ("Mean", "None_", "Sum"):
        return " = 1"
    if d == "long":
        return " = kLong"
    if d.startswith("["):
        return f" = {{{d[1:-1]}}}"
    if d.startswith("'"):
        d = '"' + d[1:-1] + '"'
    return f" = {d}"


def cpp_type(a: Argument) -> str:
    return "Tensor&" if a.written and a.type != "Tensor[]" else TYPES[a.type]


def grouped(op: Op) -> list[Argument]:
    """The parameters as C++ has them: the four options are one, results come first, generators are
    left out."""
    names = [a.name for a in op.arguments]
    options = all(o in names for o in OPTIONS)
    out = []
    for a in op.arguments:
        if options and a.name in OPTIONS:
            if a.name == "dtype":
                out.append(
                    Argument("options", "options", OPTIONS_DEFAULT.get(a.default), True, False)
                )
        elif a.type != "Generator?" and not (a.written and a.keyword):
            out.append(a)
    return out


def word(name: str) -> str:
    return name + "_" if name in ("from", "default", "self_") else name


def parameter(a: Argument, defaults: bool) -> str:
    if a.type == "options":
        default = f" = {a.default}" if defaults and a.default else ""
        return f"const TensorOptions& options{default}"
    return f"{cpp_type(a)} {word(a.name)}{default_of(a) if defaults else ''}"


def result_type(op: Op) -> str:
    if any(a.written and a.type == "Tensor[]" for a in op.arguments):
        return "void"
    if op.out:
        return (
            "Tensor&" if len(op.out) == 1 else f"std::tuple<{', '.join(['Tensor&'] * len(op.out))}>"
        )
    return "Tensor&" if op.in_place else op.result


def cpp_name(op: Op) -> str:
    return op.name + "_out" if op.out else op.name


def arguments_of(op: Op, self_name: str) -> str:
    given = []
    options = all(o in [a.name for a in op.arguments] for o in OPTIONS)
    for a in op.arguments:
        value = word(a.name)
        if a.name == "self":
            value = self_name
        if options and a.name in OPTIONS:
            value = f"option_{a.name}(options)"
            if a.default in ("long", "4"):
                value = "option_dtype_or_default(options)"
        if options and a.name == "memory_format":
            value = "format_of(options, memory_format)"
        if a.type == "Generator?":
            continue
        given.append(f'named("{a.name}", {value})' if a.keyword else f"plain({value})")
    return ", ".join(given)


def is_factory(op: Op) -> bool:
    """What torch:: has next to at::, because its options may ask for a gradient."""
    names = [a.name for a in op.arguments]
    return op.function and not op.out and all(o in names for o in OPTIONS) and op.name != "to"


def body(op: Op, self_name: str) -> str:
    call = f'Call call("{op.name}", "{op.overload}", {{{arguments_of(op, self_name)}}});'
    if result_type(op) == "void" and (op.out or op.in_place):
        written = [self_name if a.name == "self" else a.name for a in op.arguments if a.written]
        return f"{call} " + " ".join(f"refresh({one});" for one in written)
    if op.out:
        names = [a.name for a in op.out]
        again = " ".join(f"refresh({n});" for n in names)
        back = names[0] if len(names) == 1 else f"std::tie({', '.join(names)})"
        return f"{call} {again} return {back};"
    if op.in_place:
        target = next(a.name for a in op.arguments if a.written)
        target = self_name if target == "self" else target
        return f"{call} refresh({target}); return const_cast<Tensor&>({target});"
    return call if op.result == "void" else f"{call} return call.result<{op.result}>();"


def add_int_overloads(methods: list[str], functions: list[str], definitions: list[str]) -> None:
    for name in ALSO_INT:
        tuple_ = "std::tuple<Tensor, Tensor>" if name.endswith("_mean") else "Tensor"
        functions.append(f"{tuple_} {name}(const Tensor& self, int dim);")
        definitions.append(
            f"{tuple_} {name}(const Tensor& self, int dim) "
            f"{{ return {name}(self, IntArrayRef(dim)); }}"
        )
        if not name.endswith("_mean"):
            methods.append(f"  Tensor {name}(int dim) const;")
            definitions.append(
                f"Tensor Tensor::{name}(int dim) const {{ return {name}(IntArrayRef(dim)); }}"
            )


def main() -> None:
    rows, folder, source = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    prefix = sys.argv[4] if len(sys.argv) > 4 else ""
    methods, functions, definitions, seen, names = [], [], [], set(), set()
    factories, made = [], []
    ops = [read(row) for row in rows.read_text().splitlines() if row and not row.startswith("#")]
    # torch:: must have all overloads of a name, or hides those of at::.
    also = {cpp_name(op) for op in ops if is_factory(op)}
    for op in ops:
        if op.name in BY_HAND:
            continue
        parameters = grouped(op)
        names.add(cpp_name(op))
        if op.function:
            outs = [f"{cpp_type(a)} {a.name}" for a in op.out]
            declared = ", ".join(outs + [parameter(a, True) for a in parameters])
            defined = ", ".join(outs + [parameter(a, False) for a in parameters])
            key = (cpp_name(op), defined)
            if key not in seen:
                seen.add(key)
                functions.append(f"{result_type(op)} {cpp_name(op)}({declared});")
                definitions.append(
                    f"{result_type(op)} {cpp_name(op)}({defined}) {{ {body(op, 'self')} }}"
                )
                if is_factory(op) or cpp_name(op) in also:
                    of_torch = [parameter(a, True).replace(" kiln_detail::", " at::kiln_detail::")
                                for a in parameters]  # fmt: skip
                    factories.append(f"Tensor {cpp_name(op)}({', '.join(outs + of_torch)});")
                    passed = ", ".join(
                        "without_grad(options)" if a.name == "options" else word(a.name)
                        for a in parameters
                    )
                    call = f"at::{cpp_name(op)}({passed})"
                    value = f"with_grad({call}, options)" if is_factory(op) else call
                    made.append(f"Tensor {cpp_name(op)}({defined}) {{ return {value}; }}")
        if op.method and any(a.name == "self" for a in parameters):
            own = [a for a in parameters if a.name != "self"]
            declared = ", ".join(parameter(a, True) for a in own)
            defined = ", ".join(parameter(a, False) for a in own)
            if (f"Tensor::{op.name}", defined) in seen:
                continue
            seen.add((f"Tensor::{op.name}", defined))
            methods.append(f"  {result_type(op)} {op.name}({declared}) const;")
            definitions.append(
                f"{result_type(op)} Tensor::{op.name}({defined}) const {{ {body(op, '(*this)')} }}"
            )
    if not prefix:
        add_int_overloads(methods, functions, definitions)
    folder.mkdir(parents=True, exist_ok=True)
    head = "// SPDX-License-Identifier: Apache-2.0\n// Made by compat/ops.py from compat/ops.txt.\n"
    write(folder / f"{prefix}methods.h", head + "\n".join(methods) + "\n")
    write(folder / f"{prefix}functions.h", head + "\n".join(functions) + "\n")
    write(folder / f"{prefix}factories.h", head + "\n".join(factories) + "\n")
    write(folder / f"{prefix}names.txt", "\n".join(sorted(names)) + "\n")
    symint = [
        f"#define {name}_symint {name}"
        for name in sorted(names | (BY_HAND if not prefix else set()))
    ]
    write(folder / f"{prefix}symint.h", head + "#pragma once\n" + "\n".join(symint) + "\n")
    more = "#include <kiln/compat/more_ops.h>\n" if prefix else ""
    write(
        source,
        head
        + more
        + '#include "op_call.h"\n\nnamespace at {\ninline namespace kc {\n'
        + "using namespace kiln_detail;\n"
        "\n"
        + "\n".join(definitions)
        + "\n\n}  // namespace kc\n}  // namespace at\n\n"
        + "namespace torch {\ninline namespace kc {\nusing namespace at::kiln_detail;\n\n"
        + "\n".join(made)
        + "\n\n}  // namespace kc\n}  // namespace torch\n",
    )


def write(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


main()
