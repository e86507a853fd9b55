# SPDX-License-Identifier: Apache-2.0
"""What is an op in Python? torch's own packet of overloads, with what an author adds to it:
reference, fake, backward.

`module.my_add is torch.ops.<name>.my_add`: the class is a subclass of torch's OpOverloadPacket
whose instances are in torch.ops. So torch.compile, torch.export and opcheck see nothing special.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Callable, Optional

from torch._ops import OpOverload, OpOverloadPacket

from ._fakes.rules import compile_rule, default_fake
from ._no_backward import allow_traced_gradients, refuse_traced_gradients
from ._overloads import callable_of
from ._saved_arguments import save_arguments, with_arguments
from ._torch import torch_module
from ._transforms import follow_transforms
from .abi import Library, OpRecord
from .errors import KilnError, LoadError, RuleError

# Attributes of an op; an overload of such a name could not be reached.
_OWN_NAMES = (
    "backward",
    "fake",
    "reference",
    "reference_function",
    "schema",
    "schemas",
    "setup_context",
)


def _caller_of() -> Optional[Callable[..., Any]]:
    """What lets an op take arrays that are not torch's. A wheel of ops has a copy of this file and
    not of that one: it takes torch's tensors."""
    try:
        from ._callers.arrays import caller_of
    except ModuleNotFoundError as error:
        if not (error.name or "").endswith("._callers"):
            raise
        return None
    return caller_of


class Op(OpOverloadPacket):
    """One op with its overloads. Call it; `help(op)` shows schema, text and source."""

    # tp_call finds this slot's descriptor and calls what it holds, the C++ function, with no Python
    # frame between. On 16-element CPU tensors: torch.add 1.60 us, this 1.95 us, torch's own packet
    # 2.25 us (torch 2.11, aarch64).
    __slots__ = ("__call__",)

    def __init__(self, packet: OpOverloadPacket) -> None:
        super().__init__(
            packet._qualified_op_name, packet.__name__, packet._op, packet._overload_names
        )
        self.__call__ = packet._op  # type: ignore[method-assign]
        self.__module__ = packet.__module__
        self._kiln_records: tuple[OpRecord, ...] = ()
        self._kiln_reference: Optional[Callable[..., Any]] = None
        self._kiln_own_fakes: set[str] = set()
        self._kiln_backward: dict[str, Callable[..., Any]] = {}
        self._kiln_setup: dict[str, Callable[..., Any]] = {}
        # (what, overload) -> the torch.library.Library whose end takes the registration back.
        self._kiln_registered: dict[tuple[str, str], Any] = {}

    def __repr__(self) -> str:
        return f"<kiln op {self}>"

    @property
    def schema(self) -> str:
        """The schema; of an op with several overloads, one per line."""
        return "\n".join(self.schemas)

    @property
    def schemas(self) -> tuple[str, ...]:
        return tuple(str(overload._schema) for overload in self._kiln_overloads())

    @property
    def reference_function(self) -> Optional[Callable[..., Any]]:
        return self._kiln_reference

    def reference(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: the same result in plain torch. kiln.test compares with it."""
        if not callable(function):
            raise TypeError(f"@{self}.reference wants a function, not {type(function).__name__}")
        self._kiln_reference = function
        return function

    def fake(
        self, function: Optional[Callable[..., Any]] = None, *, overload: Optional[str] = None
    ) -> Any:
        """Decorator: a function that replaces the fake rule, for one overload or for all; a reload
        keeps it."""
        if function is None:
            return lambda given: self.fake(given, overload=overload)
        for one in self._kiln_overloads(overload):
            self._kiln_own_fakes.add(one._overloadname)
            self._kiln_register_fake(one, function)
        return function

    def backward(
        self, function: Optional[Callable[..., Any]] = None, *, overload: Optional[str] = None
    ) -> Any:
        """Decorator: function(ctx, *grads) gives a gradient (or None) for each argument. Without a
        setup_context, the arguments are saved: ctx.saved_tensors has the tensors, ctx.arguments all
        of them, None in place of a tensor."""
        if function is None:
            return lambda given: self.backward(given, overload=overload)
        for one in self._kiln_overloads(overload):
            self._kiln_backward[one._overloadname] = function
            self._kiln_register_autograd(one)
        return function

    def setup_context(
        self, function: Optional[Callable[..., Any]] = None, *, overload: Optional[str] = None
    ) -> Any:
        """Decorator: function(ctx, inputs, output) saves what backward needs. Its order with
        @op.backward is free."""
        if function is None:
            return lambda given: self.setup_context(given, overload=overload)
        for one in self._kiln_overloads(overload):
            self._kiln_setup[one._overloadname] = function
            if one._overloadname in self._kiln_backward:
                self._kiln_register_autograd(one)
        return function

    def _kiln_overloads(self, name: Optional[str] = None) -> list[OpOverload]:
        names = self.overloads() if name is None else [name]
        return [getattr(self, one) for one in names]

    def _kiln_describe(self, records: Sequence[OpRecord], library: Library) -> None:
        """Takes what a library says of this op; at a reload, what the newest says."""
        shadowed = [record.overload for record in records if record.overload in _OWN_NAMES]
        if shadowed:
            raise LoadError(
                f"cannot load the op {self}",
                f"its overload '{shadowed[0]}' has the name of an attribute that every op has",
                f"choose a name other than {', '.join(_OWN_NAMES)}",
            )
        packet = _packet(self._qualified_op_name)
        self._op, self._overload_names = packet._op, packet._overload_names
        call = callable_of(self._kiln_overloads(), packet._op)
        if library.takes_arrays() and (caller_of := _caller_of()):
            call = caller_of(library, self.__name__, call)
        self.__call__ = call  # type: ignore[method-assign]
        self._kiln_records = tuple(records)
        self.__doc__ = _doc(self, records)
        self.__signature__ = signature_of(self._kiln_overloads())
        self._kiln_register_rules(records)

    def _kiln_register_rules(self, records: Sequence[OpRecord]) -> None:
        for record in records:
            overload = getattr(self, record.overload or "default")
            try:
                fake = (
                    compile_rule(record.fake, overload._schema)
                    if record.fake
                    else default_fake(overload._schema)
                )
            except RuleError as error:
                raise RuleError(
                    f"the fake rule of {self} is not valid ({record.file}:{record.line})",
                    error.why,
                    error.fix,
                ) from None
            if overload._overloadname not in self._kiln_own_fakes:
                self._kiln_register_fake(overload, fake)
            if overload._overloadname not in self._kiln_backward:
                self._kiln_refuse_gradients(overload)
            if ("transforms", overload._overloadname) not in self._kiln_registered:
                library = self._kiln_replace("transforms", overload)
                follow_transforms(overload, library, partial(self._kiln_rules, overload))

    def _kiln_register_fake(
        self, overload: OpOverload, function: Optional[Callable[..., Any]]
    ) -> None:
        """None: the op has no fake any more."""
        library = self._kiln_replace("fake", overload)
        if function is None:
            return
        torch_module().library.register_fake(overload._name, function, lib=library)

    def _kiln_refuse_gradients(self, overload: OpOverload) -> None:
        """Its calls raise when a gradient is asked for."""
        self._kiln_replace("autograd", overload)
        refuse_traced_gradients(overload)

    def _kiln_rules(
        self, overload: OpOverload
    ) -> Optional[tuple[Callable[..., Any], Callable[..., Any]]]:
        name = overload._overloadname
        if name not in self._kiln_backward:
            return None
        if name in self._kiln_setup:
            return self._kiln_backward[name], self._kiln_setup[name]
        return with_arguments(self._kiln_backward[name]), save_arguments

    def _kiln_register_autograd(self, overload: OpOverload) -> None:
        if overload._schema.is_mutable:
            raise KilnError(
                f"cannot give {overload} a backward",
                "it writes to its arguments, and torch differentiates only ops that do not",
                "make an op that returns a new tensor",
            )
        rules = self._kiln_rules(overload)
        assert rules is not None
        allow_traced_gradients(overload)
        library = self._kiln_replace("autograd", overload)
        torch_module().library.register_autograd(
            overload._name, rules[0], setup_context=rules[1], lib=library
        )

    def _kiln_replace(self, what: str, overload: OpOverload) -> Any:
        """A fresh torch.library.Library for one registration, after the end of the one it
        replaces."""
        # What the overload remembers of earlier dispatches: a graph traced before knows of no
        # autograd, for one.
        overload._dispatch_cache.clear()
        key = (what, overload._overloadname)
        if key in self._kiln_registered:
            self._kiln_registered.pop(key)._destroy()
        namespace = self._qualified_op_name.split("::")[0]
        self._kiln_registered[key] = library = torch_module().library.Library(namespace, "FRAGMENT")
        return library


def op_named(namespace: str, name: str) -> Op:
    """The one Op of that name in this process, made now if need be and put in the place of torch's
    own packet."""
    torch = torch_module()
    place = getattr(torch.ops, namespace)
    present = getattr(place, name)
    if isinstance(present, Op):
        return present
    op = Op(present)
    setattr(place, name, op)
    return op


def ops_of(library: Library) -> dict[str, Op]:
    """The ops of a library that is registered with torch, each described by what the library says
    of it."""
    names = list(dict.fromkeys(record.name for record in library.ops))
    ops = {name: op_named(library.namespace, name) for name in names}
    # torch warns of gradients that would be wrong in silence, before the op's own error says that
    # there are none.
    pattern = f"{library.namespace}::.*an autograd kernel was not registered"
    warnings.filterwarnings("ignore", pattern, UserWarning)
    for name, op in ops.items():
        op._kiln_describe([record for record in library.ops if record.name == name], library)
    return ops


def signature_of(overloads: Sequence[OpOverload]) -> inspect.Signature:
    """The parameters of the only overload, or (*args, **kwargs) when there are several."""
    if len(overloads) != 1:
        kinds = inspect.Parameter
        return inspect.Signature(
            [kinds("args", kinds.VAR_POSITIONAL), kinds("kwargs", kinds.VAR_KEYWORD)]
        )
    schema = overloads[0]._schema
    parameters = [
        inspect.Parameter(
            argument.name,
            inspect.Parameter.KEYWORD_ONLY
            if argument.kwarg_only
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=argument.default_value
            if argument.has_default_value()
            else inspect.Parameter.empty,
            annotation=str(argument.real_type),
        )
        for argument in schema.arguments
    ]
    returns = ", ".join(str(result.real_type) for result in schema.returns)
    return inspect.Signature(
        parameters, return_annotation=f"({returns})" if len(schema.returns) != 1 else returns
    )


def _packet(qualified_name: str) -> OpOverloadPacket:
    """torch's view of the op as it is now: a reloaded library may have added overloads."""
    from torch import _ops

    operation, names = _ops._get_packet(
        qualified_name, "torch.ops." + qualified_name.split("::")[0]
    )
    return OpOverloadPacket(qualified_name, qualified_name.split("::")[1], operation, names)


def _doc(op: Op, records: Sequence[OpRecord]) -> str:
    parts = []
    for record in records:
        text = f"{str(op).split('.')[0]}::{record.schema}"
        parts.append(
            "\n\n".join(
                part for part in (text, record.doc, f"Source: {record.file}:{record.line}") if part
            )
        )
    return "\n\n".join(parts)
