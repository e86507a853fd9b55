# SPDX-License-Identifier: Apache-2.0
"""Where does Triton have to act otherwise for the engine? Three places: what is compiled, which
driver a call gets, and how the autotuner chooses. Where there is no GPU, torch.cuda answers too.

Triton has a driver for the whole process, but a process may hold CPU and CUDA tensors: the driver
is chosen per call, by where the arguments are.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Iterator
from typing import Any, Callable, Optional

from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import compiler as triton_compiler
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime import driver as drivers
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITFunction

from ..errors import KilnError
from .driver import EngineDriver
from .refusals import refusal
from .torch_cuda import about_the_target, without_a_gpu

_thread = threading.local()


def on_engine() -> bool:
    return isinstance(drivers.active, EngineDriver)


@contextlib.contextmanager
def _driver_for(choose: Optional[EngineDriver]) -> Iterator[None]:
    """`choose` is active inside; None: what was active stays."""
    if choose is None or on_engine():
        yield
        return
    before = drivers.active
    drivers.set_active(choose)
    try:
        yield
    finally:
        drivers.set_active(before)


def _is_on_cpu(arguments: Any) -> bool:
    """Does any argument lie on the CPU? A launch without tensors stays with the GPU."""
    return any(
        getattr(getattr(getattr(one, "base", one), "device", None), "type", "") == "cpu"
        for one in arguments
    )


class Patches:
    """What was put in, and how it goes out again."""

    def __init__(self, driver: EngineDriver) -> None:
        self._driver = driver
        self._undo: list[Callable[[], None]] = []
        self._has_gpu = False

    def apply(self, has_gpu: bool) -> None:
        self._has_gpu = has_gpu
        if not has_gpu:
            drivers.set_active(self._driver)
            # None: Triton chooses again when it is asked next.
            self._undo.append(lambda: drivers.set_active(None))
            self._answer_for_torch()
        self._replace(CUDABackend, "add_stages", self._add_stages)
        self._replace(CUDABackend, "hash", self._hash)
        self._replace(CUDABackend, "__init__", self._init)
        self._replace(JITFunction, "run", self._routed)
        self._replace(Autotuner, "run", self._autotuner_run)
        self._replace(Autotuner, "_bench", self._bench)

    def _answer_for_torch(self) -> None:
        import torch

        answers = about_the_target(lambda: self._driver.target)
        if not torch.cuda.is_available():
            answers |= without_a_gpu()
        for name, answer in answers.items():
            self._set(torch.cuda, name, answer)

    def remove(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def _replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        old = owner.__dict__[name]
        self._set(owner, name, functools.wraps(old)(wrap(old)))

    def _set(self, owner: Any, name: str, new: Any) -> None:
        old = owner.__dict__[name]
        setattr(owner, name, new)
        self._undo.append(lambda: setattr(owner, name, old))

    @staticmethod
    def _init(old: Any) -> Any:
        def init(self: Any, target: Any) -> None:
            old(self, target)
            if on_engine():
                self.binary_ext = "ptx"

        return init

    @staticmethod
    def _add_stages(old: Any) -> Any:
        def add_stages(self: Any, stages: Any, *arguments: Any) -> None:
            old(self, stages, *arguments)
            if on_engine():
                stages.pop("cubin", None)

        return add_stages

    @staticmethod
    def _hash(old: Any) -> Any:
        """Part of the key of Triton's cache: what was compiled for the engine has no cubin, and
        must never be found for a GPU."""

        def hashed(self: Any) -> str:
            return f"kiln-ptx-{self.target.arch}" if on_engine() else old(self)

        return hashed

    def _routed(self, old: Any) -> Any:
        def run(function: Any, *arguments: Any, **named: Any) -> Any:
            chosen = self._for(arguments, named)
            with _driver_for(chosen):
                try:
                    kernel = old(function, *arguments, **named)
                except (TypeError, OverflowError, RuntimeError) as error:
                    # On the engine: what a GPU's driver refuses is between it and Triton.
                    why = refusal(function, arguments, named) if on_engine() else None
                    if why is None or isinstance(error, KilnError):
                        raise
                    raise why from None
                # What a warm-up compiled is loaded when it is first used, by the driver of then.
                if chosen is not None and isinstance(kernel, triton_compiler.CompiledKernel):
                    kernel._init_handles()
                return kernel

        return run

    def _for(self, arguments: Any, named: Any) -> Optional[EngineDriver]:
        if not self._has_gpu:
            return None
        return self._driver if _is_on_cpu((*arguments, *named.values())) else None

    def _autotuner_run(self, old: Any) -> Any:
        def run(tuner: Any, *arguments: Any, **named: Any) -> Any:
            with _driver_for(self._for(arguments, named)):
                _thread.chosen = None
                try:
                    return old(tuner, *arguments, **named)
                except OutOfResources:
                    # Chosen for other strides, under the same key, and too large for these.
                    if not on_engine() or _thread.chosen is not None or not tuner.cache:
                        raise
                    tuner.cache.clear()
                return old(tuner, *arguments, **named)

        return run

    @staticmethod
    def _bench(old: Any) -> Any:
        """The first configuration that compiles and fits is chosen: times on the CPU say nothing
        about a GPU, and running all of them would take as long as it takes."""

        def bench(tuner: Any, *arguments: Any, config: Any, **named: Any) -> Any:
            if not on_engine():
                return old(tuner, *arguments, config=config, **named)
            never = [float("inf")] * 3
            chosen = getattr(_thread, "chosen", None)
            if chosen is not None:
                # Triton keeps times by configuration, and a list may have the same one twice.
                return [0.0] * 3 if config == chosen else never
            if not _is_valid(tuner, arguments, {**named, **config.all_kwargs()}, config.pre_hook):
                return never
            _thread.chosen = config
            print(
                f"kiln: {tuner.base_fn.__name__} runs with the first valid of its "
                f"{len(tuner.configs)} configurations: {config}",
                file=sys.stderr,
            )
            return [0.0] * 3

        return bench


def _is_valid(tuner: Any, arguments: Any, named: dict[str, Any], before: Any) -> bool:
    try:
        if before is not None:  # may give a tensor descriptor the shape of its block
            before({**tuner.nargs, **named})
        kernel = tuner.fn.run(*arguments, **{**named, "warmup": True})
        if isinstance(kernel, triton_compiler.CompiledKernel):
            _ = kernel.run  # raises OutOfResources where it does not fit; a second time not
            return kernel.module is not None
    except (OutOfResources, CompileTimeAssertionFailure, PTXASError):
        return False
    return True
