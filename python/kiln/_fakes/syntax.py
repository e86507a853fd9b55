# SPDX-License-Identifier: Apache-2.0
"""What does a fake rule say? Its text becomes tokens, then a tree. Nothing here knows torch.

The grammar is in docs/reference/fake-rules.md. Every node keeps its position, so that a fault found
later (an unknown name, a rank that does not fit) can still point into the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, NoReturn, Optional, Union

from ..errors import RuleError

# Name in a rule -> attribute of torch.
DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "f8e5m2": "float8_e5m2", "f8e4m3": "float8_e4m3fn",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "bool": "bool", "c32": "complex32", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
# torch's own numbers, as kiln/abi.h has them: how a default value of a dtype parameter is written
# in a schema.
DTYPE_NUMBERS = {
    0: "u8", 1: "i8", 2: "i16", 3: "i32", 4: "i64", 5: "f16", 6: "f32", 7: "f64", 8: "c32",
    9: "c64", 10: "c128", 11: "bool", 15: "bf16", 23: "f8e5m2", 24: "f8e4m3", 27: "u16", 28: "u32",
    29: "u64",
}  # fmt: skip
CALLS_OF_INTS = {"min": (2, None), "max": (2, None), "ceil_div": (2, 2), "len": (1, 1)}

_TOKEN = re.compile(r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<mark>//|[-+*%()\[\],.:@=]))")


@dataclass(frozen=True)
class Token:
    kind: str  # "number", "name", "mark" or "end"
    text: str
    at: int


@dataclass(frozen=True)
class Name:
    """A parameter, or an element of a list parameter: `a`, `xs[0]`."""

    name: str
    index: Optional[Expr]
    at: int


@dataclass(frozen=True)
class Number:
    value: int
    at: int


@dataclass(frozen=True)
class Size:
    """`a.shape[i]`; with no index `a.numel` and `a.ndim`."""

    tensor: Name
    what: str  # "shape", "numel", "ndim"
    index: Optional[Expr]
    at: int


@dataclass(frozen=True)
class Arithmetic:
    operator: str  # + - * // % min max ceil_div len neg
    operands: tuple[Expr, ...]
    at: int


Expr = Union[Number, Name, Size, Arithmetic]


@dataclass(frozen=True)
class Splat:
    """`*a.shape`, `*a.shape[1:-1]`, `*sizes`."""

    source: Name
    of_shape: bool
    start: Optional[Expr]
    stop: Optional[Expr]
    at: int


@dataclass(frozen=True)
class Dtype:
    kind: str  # "fixed", "of" (a.dtype), "operand" (a), "parameter", "promote", "float_of"
    name: str
    operands: tuple[Union[Name, Dtype], ...]
    at: int


@dataclass(frozen=True)
class Result:
    kind: str  # "like", "broadcast", "shape"
    tensors: tuple[Name, ...]
    dtype: Optional[Dtype]
    dims: tuple[Union[Expr, Splat], ...]
    device: Optional[Name]
    at: int


def fault(rule: str, at: int, why: str, fix: str = "") -> RuleError:
    """An error with the rule under its reason and a caret under the place."""
    return RuleError("the fake rule is not valid", f"{why}\n{rule}\n{' ' * at}^", fix)


def tokenize(rule: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while True:
        match = _TOKEN.match(rule, at)
        if match is None:
            rest = len(rule) - len(rule[at:].lstrip())
            if rest < len(rule):
                raise fault(rule, rest, f"the character {rule[rest]!r} has no meaning in a rule")
            return [*tokens, Token("end", "the end", len(rule))]
        kind = match.lastgroup or ""
        tokens.append(Token(kind, match.group(kind), match.start(kind)))
        at = match.end()


def parse(rule: str) -> tuple[Result, ...]:
    """The results of the op in their order; none for a rule that says `none`."""
    return _Parser(rule).rule()


class _Parser:
    def __init__(self, rule: str) -> None:
        self.text, self.tokens, self.next = rule, tokenize(rule), 0

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def fail(self, why: str, at: Optional[int] = None) -> NoReturn:
        raise fault(
            self.text,
            self.token.at if at is None else at,
            why,
            "kiln docs fake-rules has the grammar",
        )

    def peek(self, text: str, ahead: int = 0) -> bool:
        index = min(self.next + ahead, len(self.tokens) - 1)
        return self.tokens[index].kind != "end" and self.tokens[index].text == text

    def accept(self, text: str) -> bool:
        if not self.peek(text):
            return False
        self.next += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"'{text}' was expected here, got {self.shown()}")

    def expect_name(self, what: str) -> Token:
        if self.token.kind != "name":
            self.fail(f"{what} was expected here, got {self.shown()}")
        self.next += 1
        return self.tokens[self.next - 1]

    def shown(self) -> str:
        return self.token.text if self.token.kind == "end" else f"'{self.token.text}'"

    # rule = "none" | result { "," result }
    def rule(self) -> tuple[Result, ...]:
        if self.token.kind == "end":
            self.fail("the rule is empty")
        if self.peek("none") and self.tokens[self.next + 1].kind == "end":
            return ()
        results = [self.result()]
        while self.accept(","):
            results.append(self.result())
        if self.token.kind != "end":
            self.fail(f"',' or the end was expected here, got {self.shown()}")
        return tuple(results)

    # result = ( like | broadcast | dtype "[" dims "]" ) [ "@" tensor "." "device" | "@"
    # device-parameter ]
    def result(self) -> Result:
        at = self.token.at
        kind, dims = "shape", ()
        tensors: tuple[Name, ...] = ()
        dtype: Optional[Dtype] = None
        if self.peek("like") and self.peek("(", 1):
            kind, (tensors, dtype) = "like", self.shaped_by(1)
        elif self.peek("broadcast") and self.peek("(", 1):
            kind, (tensors, dtype) = "broadcast", self.shaped_by(None)
        else:
            dtype = self.dtype()
            self.expect("[")
            dims = self.sequence("]", self.dim)
        return Result(kind, tensors, dtype, dims, self.device() if self.accept("@") else None, at)

    def shaped_by(self, most: Optional[int]) -> tuple[tuple[Name, ...], Optional[Dtype]]:
        self.next += 2
        tensors = [self.parameter()]
        dtype = None
        while self.accept(","):
            if self.peek("dtype") and self.peek("=", 1):
                self.next += 2
                dtype = self.dtype()
                break
            if most is not None and len(tensors) == most:
                self.fail("'dtype=' was expected here: like() takes one tensor")
            tensors.append(self.parameter())
        self.expect(")")
        return tuple(tensors), dtype

    def sequence(self, end: str, item: Callable[[], Any]) -> tuple[Any, ...]:
        items = []
        while not self.peek(end):
            items.append(item())
            if not self.accept(","):
                break
        self.expect(end)
        return tuple(items)

    # parameter = name [ "[" expr "]" ]
    def parameter(self) -> Name:
        token = self.expect_name("the name of a parameter")
        # xs[0] is an element of a list; the bracket after a dtype name never gets here.
        index = None
        if self.accept("["):
            index = self.expr()
            self.expect("]")
        return Name(token.text, index, token.at)

    def device(self) -> Name:
        name = self.parameter()
        if self.accept(".") and self.expect_name("'device'").text != "device":
            self.fail("only '.device' can follow here", self.tokens[self.next - 1].at)
        return name

    # dtype = "f32" ... | parameter ".dtype" | parameter | "promote" "(" ... ")" | "float_of" "("
    # dtype ")"
    def dtype(self) -> Dtype:
        token = self.token
        if token.kind != "name":
            self.fail(
                f"a result was expected here (like, broadcast, or a dtype and sizes), "
                f"got {self.shown()}"
            )
        if token.text in ("promote", "float_of") and self.peek("(", 1):
            self.next += 2
            operands = self.sequence(")", self.dtype_operand)
            if not operands or (token.text == "float_of" and len(operands) != 1):
                self.fail(
                    f"{token.text}() needs "
                    f"{'one operand' if token.text == 'float_of' else 'operands'}",
                    token.at,
                )
            return Dtype(token.text, "", operands, token.at)
        if token.text in DTYPES and not self.peek(".", 1):
            self.next += 1
            return Dtype("fixed", token.text, (), token.at)
        return self.dtype_operand(of_parameter=True)

    def dtype_operand(self, of_parameter: bool = False) -> Dtype:
        """`a`, `a.dtype`, `xs[0].dtype`; inside promote() and float_of() every dtype as well."""
        token = self.token
        if not of_parameter and (token.text in DTYPES or token.text in ("promote", "float_of")):
            return self.dtype()
        name = self.expect_name("the name of a parameter")
        index = None
        if self.peek("[") and (not of_parameter or self.bracket_precedes_dot()):
            self.next += 1
            index = self.expr()
            self.expect("]")
        operand = Name(name.text, index, name.at)
        if self.accept("."):
            if self.expect_name("'dtype'").text != "dtype":
                self.fail("only '.dtype' can follow here", self.tokens[self.next - 1].at)
            return Dtype("of", "", (operand,), name.at)
        return Dtype("parameter" if of_parameter else "operand", name.text, (operand,), name.at)

    def bracket_precedes_dot(self) -> bool:
        """Tells `xs[0].dtype[n]` (an element of a list) from `dtype[n]` (a dtype parameter and a
        size)."""
        depth = 0
        for index in range(self.next, len(self.tokens) - 1):
            depth += {"[": 1, "]": -1}.get(self.tokens[index].text, 0)
            if depth == 0:
                return self.tokens[index + 1].text == "."
        return False

    # dim = expr | "*" name ".shape" [ "[" [expr] ":" [expr] "]" ] | "*" name
    def dim(self) -> Union[Expr, Splat]:
        at = self.token.at
        if not self.accept("*"):
            return self.expr()
        token = self.expect_name("the name of a parameter")
        index = None
        if self.accept("["):
            index = self.expr()
            self.expect("]")
        source = Name(token.text, index, token.at)
        if not self.accept("."):
            return Splat(source, False, None, None, at)
        if self.expect_name("'shape'").text != "shape":
            self.fail("only '.shape' can be spread with '*'", self.tokens[self.next - 1].at)
        start = stop = None
        if self.accept("["):
            start = None if self.peek(":") else self.expr()
            self.expect(":")
            stop = None if self.peek("]") else self.expr()
            self.expect("]")
        return Splat(source, True, start, stop, at)

    # expr = term { ("+" | "-") term };  term = factor { ("*" | "//" | "%") factor }
    def expr(self) -> Expr:
        return self.binary(("+", "-"), lambda: self.binary(("*", "//", "%"), self.factor))

    def binary(self, operators: tuple[str, ...], operand: Callable[[], Expr]) -> Expr:
        left = operand()
        while self.token.kind == "mark" and self.token.text in operators:
            operator = self.token
            self.next += 1
            left = Arithmetic(operator.text, (left, operand()), operator.at)
        return left

    def factor(self) -> Expr:
        token = self.token
        if token.kind == "number":
            self.next += 1
            return Number(int(token.text), token.at)
        if self.accept("-"):
            return Arithmetic("neg", (self.factor(),), token.at)
        if self.accept("("):
            inner = self.expr()
            self.expect(")")
            return inner
        if token.text in CALLS_OF_INTS and self.peek("(", 1):
            return self.call(token)
        if token.kind != "name":
            self.fail(f"a size was expected here, got {self.shown()}")
        return self.size(self.parameter(), token.at)

    def call(self, name: Token) -> Expr:
        self.next += 2
        operands = self.sequence(")", self.parameter if name.text == "len" else self.expr)
        least, most = CALLS_OF_INTS[name.text]
        if len(operands) < least or (most is not None and len(operands) > most):
            self.fail(
                f"{name.text}() takes {'at least ' if most is None else ''}{least}, not "
                f"{len(operands)}",
                name.at,
            )
        return Arithmetic(name.text, operands, name.at)

    def size(self, tensor: Name, at: int) -> Expr:
        if not self.accept("."):
            return tensor
        what = self.expect_name("'shape', 'ndim' or 'numel'")
        if what.text not in ("shape", "ndim", "numel"):
            self.fail(f"a tensor has shape, ndim and numel in a rule, not '{what.text}'", what.at)
        if what.text != "shape":
            return Size(tensor, what.text, None, at)
        self.expect("[")
        index = self.expr()
        self.expect("]")
        return Size(tensor, "shape", index, at)
