# SPDX-License-Identifier: Apache-2.0
"""Which function does `--against TEXT` mean? A name (`torch.add`), which is called with the op's
arguments, or an expression over the op's parameter names (`torch.softmax(x, -1)`).

An expression becomes a lambda with the op's own parameters and defaults, so that it is called as
the op is and costs what a function written by hand would cost.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import inspect
import re
from collections.abc import Sequence
from typing import Any, Callable, Optional

from .errors import KilnError, UsageError

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
# What an expression may use without an import.
_SHORT = {"F": "torch.nn.functional", "np": "numpy"}
_EXAMPLES = (
    "write a function (torch.add), or an expression over the op's parameters: torch.softmax(x, -1)"
)


def peer_named(text: str, signature: Optional[inspect.Signature]) -> Callable[..., Any]:
    """What `text` means for an op with these parameters. Raises KilnError."""
    if _NAME.fullmatch(text.strip()):
        return named(text.strip())
    return _Expression(text, signature).function()


def named(text: str) -> Callable[..., Any]:
    """The callable "torch.add", "torch.nn.functional.gelu" or "package.module.function" means: the
    longest part that imports is the module."""
    parts = text.split(".")
    for split in range(len(parts) - 1, 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:split]))
        except ImportError:
            continue
        for part in parts[split:]:
            value = getattr(value, part, None)
        if callable(value):
            return value
        break
    raise UsageError(
        f"cannot compare with '{text}'",
        "no module has a function of this name",
        "write it as Python imports it (torch.add, package.module.function), or as an expression: "
        "torch.softmax(x, -1)",
    )


class _Expression:
    def __init__(self, text: str, signature: Optional[inspect.Signature]) -> None:
        self.text = text
        self.parameters = list(signature.parameters.values()) if signature else []
        self.names = [
            one.name
            for one in self.parameters
            if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]

    def function(self) -> Callable[..., Any]:
        tree = self.parsed()
        free = _free_names(tree)
        scope = self.scope(free)
        if not any(name in self.names for name in free):
            return self.callable_value(tree, scope)
        called = self.as_lambda(tree, scope)

        @functools.wraps(called)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return called(*args, **kwargs)
            except KilnError:
                raise
            except Exception as error:
                raise self.failed(error) from error

        return run

    def fault(self, why: str, fix: str) -> UsageError:
        return UsageError(f"cannot compare with '{self.text}'", why, fix)

    def failed(self, error: Exception) -> KilnError:
        return KilnError(
            f"cannot compare with '{self.text}'",
            f"it raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
            f"check the expression; its names are {self.known()}",
        )

    def known(self) -> str:
        return ", ".join(self.names) or "none"

    def parsed(self) -> ast.Expression:
        try:
            return ast.parse(self.text.strip(), mode="eval")
        except SyntaxError as error:
            raise self.fault(f"not a Python expression: {error.msg}", _EXAMPLES) from None
        except ValueError as error:  # a zero byte
            raise self.fault(f"not a Python expression: {error}", _EXAMPLES) from None

    def scope(self, free: Sequence[str]) -> dict[str, Any]:
        """The modules that the expression names."""
        import builtins

        scope: dict[str, Any] = {}
        for name in free:
            if name in self.names or hasattr(builtins, name):
                continue
            try:
                scope[name] = importlib.import_module(_SHORT.get(name, name))
            except ImportError:
                near = difflib.get_close_matches(name, [*self.names, "torch"], 1)
                raise self.fault(
                    f"'{name}' is not a parameter of the op, nor a module",
                    f"the parameters are {self.known()}"
                    + (f"; did you mean {near[0]}?" if near else ""),
                ) from None
        return scope

    def callable_value(self, tree: ast.Expression, scope: dict[str, Any]) -> Callable[..., Any]:
        """`lambda x: ...`, `functools.partial(torch.softmax, dim=-1)`: a function already."""
        try:
            value = eval(compile(tree, "--against", "eval"), scope)  # the user's own text
        except Exception as error:
            raise self.failed(error) from error
        if callable(value):
            return value
        raise self.fault(
            f"it uses none of the op's parameters, and {type(value).__name__} is not a function",
            f"the parameters are {self.known()}; {_EXAMPLES}",
        )

    def as_lambda(self, tree: ast.Expression, scope: dict[str, Any]) -> Callable[..., Any]:
        """The expression below the op's parameter list."""
        head = ", ".join(self.parameter_texts(scope))
        whole = ast.parse(f"lambda {head}: None", mode="eval")
        assert isinstance(whole.body, ast.Lambda)
        whole.body.body = tree.body
        function = eval(compile(whole, "--against", "eval"), scope)  # the user's own text
        function.__name__ = self.text
        return function

    def parameter_texts(self, scope: dict[str, Any]) -> list[str]:
        texts: list[str] = []
        keyword_only = False
        for one in self.parameters:
            if one.kind is one.KEYWORD_ONLY and not keyword_only:
                keyword_only = True
                texts.append("*")
            default = ""
            if one.default is not one.empty:
                scope[f"_default_{one.name}"] = one.default
                default = f"=_default_{one.name}"
            mark = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
            keyword_only |= one.kind is one.VAR_POSITIONAL
            texts.append(f"{mark}{one.name}{default}")
        return texts


def _free_names(tree: ast.AST) -> list[str]:
    """Names that the expression takes from outside: not those that a lambda or a comprehension in
    it binds. Over-approximates what is bound: a name bound anywhere counts as bound there."""
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    found = dict.fromkeys(
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound
    )
    return list(found)


def parameters_of_op(function: Callable[..., Any], overload: Any) -> Optional[inspect.Signature]:
    """Of the overload that takes the arguments, or of a plain function; None where Python does not
    know them."""
    from .op import signature_of

    if overload is not None:
        return signature_of([overload])
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
