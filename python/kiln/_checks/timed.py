# SPDX-License-Identifier: Apache-2.0
"""Is what is about to be timed right, and is it done each time? A wrong op has no speed.

Every call here looks like a timed one: the same function, on the same stream, with nothing that
tells it apart. Between calls contents change at the same addresses, and addresses change.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from .._torch import torch_module
from ..errors import KilnError
from .arguments import Call
from .compare import Tolerance, compare
from .contents import fingerprint, overlaps_itself, renew
from .poison import poisoned
from .reference import rounded, widened


class Untrusted(KilnError):
    """A benchmark whose figure would mean nothing: wrong results, or a trick. `trap` names it;
    `result` is what was measured, if anything was."""

    def __init__(
        self, trap: str, what: str, why: str, fix: str = "", result: Optional[dict[str, Any]] = None
    ) -> None:
        super().__init__(what, why, fix)
        self.trap, self.result = trap, result


def results_of(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Checked:
    """One contender with what it should give."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        call: Call,
        reference: Callable[..., Any],
        tolerance: Tolerance,
    ) -> None:
        self.name, self.function, self.call, self.reference, self.tolerance = (
            name,
            function,
            call,
            reference,
            tolerance,
        )
        self.mutates = bool(call.written())
        self._wanted: Optional[list[Any]] = None
        self._watched = 0
        self._earlier: set[Any] = set()  # fingerprints of what the op has returned
        self._as_if = ""  # ", as if computed in bfloat16"
        self._given = _addresses(call)  # that the op has met

    def expected(self, call: Call) -> list[Any]:
        """The reference's results, computed in f64 and rounded to the dtype that it gives by
        itself."""
        own = self._outputs(self.reference, call.copy())
        wide = widened(call.copy())
        if wide is None:
            return own
        try:
            exact = self._outputs(self.reference, wide)
        except Exception:  # a reference that takes no f64
            return own
        return rounded(exact, own)[0]

    def run(self) -> str:
        """Raises Untrusted; else says what was looked at."""
        notes = [self._once("wrong result", self.call)]
        changed = 0
        rounds = 6 if sum(t.numel() for t in self.call.tensors()) < 1 << 26 else 3
        for step in range(rounds):
            other = self._with_new_contents()
            if step % 2 == 0:
                self._once("replay by shape", other, "for new contents at new addresses")
            else:
                changed += self._at_same_address(other)
        notes.append(
            "inputs unchanged"
            if not self.mutates
            else "writes to its arguments, as its schema says"
        )
        notes.append("every element written")
        if changed:
            notes.append(f"{rounds + 2} calls checked with changing contents and addresses")
        return ", ".join(notes)

    def watch(self, seen: list[Any]) -> None:
        """Is the result of a timed call still right? At the first, second, fourth, eighth ... of
        these looks contents are changed under the op as well: it may have waited for a moment in
        which nobody looks. Each costs a run of the reference."""
        torch = torch_module()
        if self.mutates:
            return
        if self._wanted is None:
            self._wanted = self.expected(self.call)
        for one, right in zip(seen, self._wanted):
            if isinstance(one, torch.Tensor) and not torch.equal(one, right):
                try:
                    compare([one], [right], self.tolerance)
                except AssertionError as error:
                    raise Untrusted(
                        "batch-and-skip",
                        f"{self.name} gave a wrong result while it was timed",
                        str(error),
                        "the op does not do its work in every call",
                    ) from None
        self._watched += 1
        if self._watched & (self._watched - 1) == 0:
            self.look_again()

    def look_again(self) -> None:
        """After the last timed call too: nothing that is timed comes later than the last look."""
        if not self.mutates and self.function is not self.reference:
            self._at_same_address(self._with_new_contents())

    def _with_new_contents(self) -> Call:
        other = self.call.copy()
        for tensor in other.tensors():
            renew(tensor)
        return other

    def _outputs(self, function: Callable[..., Any], call: Call) -> list[Any]:
        value = function(*call.args, **call.kwargs)
        found = [] if value is None else results_of(value)
        returned = {one.data_ptr() for one in found if hasattr(one, "data_ptr")}
        return found + [one for one in call.written() if one.data_ptr() not in returned]

    def _once(self, trap: str, call: Call, when: str = "", own_memory: bool = True) -> str:
        """One call on fresh memory full of junk, its result taken at once."""
        torch = torch_module()
        wanted = self.expected(call)
        used = self._elsewhere(call) if own_memory else call
        before = used.bytes()
        with poisoned(call.device, "junk"):
            live = self._outputs(self.function, used)
            # In the order of the stream: what comes later than this is too late.
            seen = [one.clone() if isinstance(one, torch.Tensor) else one for one in live]
        _synchronize(call.device)
        try:
            used.check_bytes(before)
        except AssertionError as error:
            self.mutates = self._reference_mutates(call)
            if not self.mutates:
                raise Untrusted(
                    "input mutated",
                    f"{self.name} writes to an input",
                    str(error),
                    "declare the argument as Tensor& (mutable), or write to a new tensor",
                ) from None
        mark = fingerprint(seen)
        is_earlier = mark in self._earlier
        self._earlier.add(mark)
        try:
            return "equal to the reference (" + compare(seen, wanted, self.tolerance) + ")"
        except AssertionError as error:
            if self._is_right(live, wanted):
                raise Untrusted(
                    "late asynchronous write",
                    f"{self.name} writes its result after it has ended",
                    f"the result was right only when the whole device was idle: {error}",
                    "let the current stream wait for the other one before the op returns",
                ) from None
            kind = "" if is_earlier else self._kind_of_error(seen, wanted, call)
            if trap == "wrong result":
                trap = kind or trap
            elif kind == "precision dropped":
                trap = kind  # a result of these contents, only not a precise one
            elif self._is_right(self._outputs(self.function, _refilled(used, call)), wanted):
                trap = "batch-and-skip"  # the next call does the work that this one left out
            elif own_memory and self._is_right(
                self._outputs(self.function, self._elsewhere(call, used)), wanted
            ):
                trap = "replay by pointer"  # memory was used again: only its address was known
            raise Untrusted(
                trap,
                f"{self.name} gives a wrong result{' ' + when if when else ''}",
                f"{trap}{self._as_if}: {error}",
                "kiln.test(op, ...) shows where; rtol= and atol= if the difference is meant",
            ) from None

    def _elsewhere(self, call: Call, *held: Call) -> Call:
        """A copy at addresses that the op has not met. An allocator likes to give back the memory
        that was freed last, so a copy that lies there is held until another one is found; large
        ones would fill the device, and are taken as they come."""
        small = sum(tensor.untyped_storage().nbytes() for tensor in call.tensors()) < 1 << 27
        copies = list(held)
        for _ in range(8 if small else 1):
            copies.append(call.copy())
            if self._given.isdisjoint(_addresses(copies[-1])):
                break
        self._given |= _addresses(copies[-1])
        return copies[-1]

    def _kind_of_error(self, seen: list[Any], wanted: list[Any], call: Call) -> str:
        kind = _kind_of_error(seen, wanted)
        narrow = self._as_computed_in(seen, call) if kind in ("", "precision dropped") else ""
        if narrow:
            self._as_if = f", as if computed in {narrow}"
        return "precision dropped" if narrow else kind

    def _as_computed_in(self, seen: list[Any], call: Call) -> str:
        """The dtype in which the reference gives what is seen; "" for none. Inputs are rounded to
        it, and the reference computes in it, or where it cannot, with its own sums."""
        torch = torch_module()
        if not all(isinstance(one, torch.Tensor) and one.dtype.is_floating_point for one in seen):
            return ""
        finest = min(torch.finfo(one.dtype).eps for one in seen)
        for name, dtype, eps in (
            ("tf32", None, 2.0**-10),
            ("float16", torch.float16, 2.0**-10),
            ("bfloat16", torch.bfloat16, 2.0**-7),
        ):
            if eps <= finest:
                continue
            for stays in (True, False):

                def rounded(
                    tensor: Any, _written: bool, dtype: Any = dtype, stays: bool = stays
                ) -> Any:
                    if tensor.dtype not in _narrow():
                        return tensor
                    if dtype is None:
                        return _in_tf32(tensor)
                    return tensor.to(dtype) if stays else tensor.to(dtype).to(tensor.dtype)

                try:
                    as_if = [
                        one.to(have.dtype)
                        for one, have in zip(
                            self._outputs(self.reference, call.copy().map(rounded)), seen
                        )
                    ]
                    compare(seen, as_if, Tolerance(eps / 4, None))
                except Exception:  # a reference that does not take this dtype, or another result
                    continue
                return name
        return ""

    def _is_right(self, seen: list[Any], wanted: list[Any]) -> bool:
        try:
            compare(seen, wanted, self.tolerance)
        except AssertionError:
            return False
        return True

    def _at_same_address(self, rolled: Call) -> int:
        """New contents where the old ones were: an op that knows the address must not give the old
        result."""
        if self.mutates:
            return 0
        mine, saved = self.call.tensors(), self.call.copy().tensors()
        if any(overlaps_itself(tensor) for tensor in mine):
            return 0
        for tensor, new in zip(mine, rolled.tensors()):
            tensor.detach().copy_(new.detach())
        try:
            self._once(
                "replay by pointer",
                self.call,
                "for new contents at the same addresses",
                own_memory=False,
            )
        finally:
            for tensor, old in zip(mine, saved):
                tensor.detach().copy_(old.detach())
        return 1

    def _reference_mutates(self, call: Call) -> bool:
        used = call.copy()
        before = used.bytes()
        self.reference(*used.args, **used.kwargs)
        try:
            used.check_bytes(before)
        except AssertionError:
            return True
        return False


def _addresses(call: Call) -> set[int]:
    return {tensor.data_ptr() for tensor in call.tensors() if tensor.numel() > 0}


def _refilled(used: Call, call: Call) -> Call:
    """With the contents that it had before the op wrote to it."""
    if used is not call and not any(overlaps_itself(tensor) for tensor in used.tensors()):
        for tensor, before in zip(used.tensors(), call.tensors()):
            tensor.detach().copy_(before.detach())
    return used


def _narrow() -> tuple[Any, ...]:
    torch = torch_module()
    return (torch.float32, torch.float16, torch.bfloat16)


def _synchronize(device: Any) -> None:
    if device is not None and device.type == "cuda":
        torch_module().cuda.synchronize()


def _kind_of_error(seen: list[Any], wanted: list[Any]) -> str:
    """The trap that a first wrong result looks like; "" for a plain error."""
    torch = torch_module()
    for one, right in zip(seen, wanted):
        if (
            not (isinstance(one, torch.Tensor) and isinstance(right, torch.Tensor))
            or one.shape != right.shape
        ):
            return ""
        if one.numel() == 0 or not one.dtype.is_floating_point:
            continue
        got, want = one.double(), right.double()
        if (got.isnan() & ~want.isnan()).any():
            return (
                "output not written"
                if (got.isnan() & ~want.isnan()).float().mean() < 1
                else "NaN as wildcard"
            )
        if not got.any() and want.any():
            return "zeros within tolerance"
        scale = want.square().mean().sqrt()
        error = (got - want).abs() / (want.abs() + scale)
        # Where large operands cancel, an error of 2^-9 of them is more than 1 % of the result:
        # rare, and never large.
        if scale > 0 and error.max() <= 0.05 and (error > 0.01).double().mean() < 1e-3:
            return "precision dropped"
    return ""


def _in_tf32(tensor: Any) -> Any:
    """With 10 bits of fraction, the rest rounded to even."""
    torch = torch_module()
    bits = tensor.float().contiguous().view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)
