# SPDX-License-Identifier: Apache-2.0
"""What does Triton ask of a device? Here the device is the engine, and its tensors are CPU
tensors."""

from __future__ import annotations

import os
import time
from typing import Any, Callable

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from .._launch.on_engine import EngineModule
from .._launch.ptx_text import read_ptx
from .dialect import for_engine
from .launcher import EngineLauncher, Loaded
from .target import Target, default_target


_REGISTERS = 32


class EngineDriver(DriverBase):
    """Triton's driver for the engine. Compiled kernels are PTX: no ptxas, no libcuda."""

    def __init__(self) -> None:
        super().__init__()
        self.target: Target = default_target()
        self.utils = Utils(self)
        self.launcher_cls = EngineLauncher

    @classmethod
    def is_active(cls) -> bool:
        return os.environ.get("KILN_DEVICE") == "engine"

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.target.arch, 32)

    def get_current_device(self) -> int:
        """Triton keeps what it has compiled by this number: one per target, none of a GPU."""
        return -self.target.arch

    def set_current_device(self, _device: Any) -> None:
        """There is one."""

    def get_current_stream(self, _device: Any = None) -> int:
        return 0

    def get_device_capability(self, _device: Any = None) -> tuple[int, int]:
        return self.target.capability

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return Interface(self)

    def map_python_to_cpp_type(self, ty: str) -> str:
        from triton.backends.nvidia.driver import ty_to_cpp

        return ty_to_cpp(ty)

    def get_benchmarker(self) -> Callable[..., Any]:
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        return torch.empty(1, dtype=torch.int32)

    def clear_cache(self, _cache: Any) -> None:
        """Times of the engine are not those of a GPU, whatever is in its caches."""

    def assemble_tensormap_to_arg(self, _tensormaps: Any, arguments: Any) -> Any:
        return arguments


class Utils:
    """What Triton's compiled helper does for a GPU."""

    def __init__(self, driver: EngineDriver) -> None:
        self._driver = driver

    def get_device_properties(self, _device: Any = None) -> dict[str, int]:
        return self._driver.target.properties

    def load_binary(
        self, name: str, binary: bytes, _shared: int, _device: Any
    ) -> tuple[EngineModule, Loaded, int, int, int]:
        """Module, function, registers, spills and threads per block. The engine has no register
        file: it reports 32 per thread, as its cudaFuncGetAttributes does, for scripts compute
        occupancy from them."""
        text = for_engine(binary.decode() if isinstance(binary, bytes) else binary)
        module = EngineModule(text, read_ptx(text, name).arch)
        return module, Loaded(module, name), _REGISTERS, 0, 1024

    def unload_module(self, _module: Any) -> None:
        """The engine forgets it with the last reference."""

    def set_printf_fifo_size(self, _size: int) -> None:
        """print() of the engine writes at once."""


class Event:
    """A time of the CPU, for triton.testing.do_bench."""

    def __init__(self, enable_timing: bool = False) -> None:
        self._at = 0.0

    def record(self, *_stream: Any) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        return max((end._at - self._at) * 1e3, 1e-6)

    def synchronize(self) -> None:
        """A launch has ended when it returns."""


class Interface:
    """The part of torch.cuda that Triton uses."""

    Event = Event

    def __init__(self, driver: EngineDriver) -> None:
        self._driver = driver

    def synchronize(self, *_device: Any) -> None:
        """A launch has ended when it returns."""

    def current_device(self) -> int:
        return self._driver.get_current_device()

    def is_available(self) -> bool:
        return True
