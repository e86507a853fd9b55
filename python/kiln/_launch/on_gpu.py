# SPDX-License-Identifier: Apache-2.0
"""How does PTX run on a GPU? Through the CUDA driver, on the stream that the caller's library
uses."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import KilnError, SetupError
from .on_engine import Configuration

_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6  # CUjit_option
_MAX_DYNAMIC_SHARED = 8  # CUfunction_attribute
_LOG_BYTES = 16 << 10
_PLAIN_SHARED_BYTES = 48 << 10


@functools.lru_cache(maxsize=1)
def _driver() -> Any:
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise SetupError(
            "cannot run a kernel on the GPU",
            str(error),
            "install NVIDIA's driver, or pass CPU tensors: they run on the engine",
        ) from None
    _check(library, library.cuInit(0), "cannot start the CUDA driver")
    return library


def _check(library: Any, code: int, what: str, why: str = "") -> None:
    if code == 0:
        return
    text = ctypes.c_char_p()
    library.cuGetErrorString(code, ctypes.byref(text))
    said = (text.value or b"unknown error").decode()
    raise KilnError(what, f"CUDA error {code}: {said}" + (f"\n{why}" if why else ""))


class GpuModule:
    """PTX that the driver has compiled for one GPU, as long as the process lives."""

    def __init__(self, text: str, gpu: int) -> None:
        self._gpu = gpu
        driver = self._driver = _driver()
        device = ctypes.c_int()
        _check(driver, driver.cuDeviceGet(ctypes.byref(device), gpu), f"cannot use GPU {gpu}")
        self._context = ctypes.c_void_p()
        # The primary context is the one in which torch and CuPy have their memory.
        _check(
            driver,
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), device),
            f"cannot use GPU {gpu}",
        )
        self._module = ctypes.c_void_p()
        self._functions: dict[str, ctypes.c_void_p] = {}
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        with self._current():
            code = driver.cuModuleLoadDataEx(
                ctypes.byref(self._module), text.encode() + b"\0", 2, options, values
            )
        _check(
            driver, code, "the driver cannot compile this PTX", log.value.decode(errors="replace")
        )

    @contextmanager
    def _current(self) -> Iterator[None]:
        _check(self._driver, self._driver.cuCtxPushCurrent_v2(self._context), "no CUDA context")
        try:
            yield
        finally:
            self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def launch(self, kernel: str, configuration: Configuration, values: Sequence[bytes]) -> None:
        """Launches a kernel on the current stream; as in CUDA, it may end later."""
        buffers = [ctypes.create_string_buffer(value, max(len(value), 1)) for value in values]
        arguments = (ctypes.c_void_p * max(len(buffers), 1))(*map(ctypes.addressof, buffers))
        stream = ctypes.c_void_p(_stream(self._gpu))
        with self._current():
            function = self._function(kernel, configuration.shared_bytes)
            code = self._driver.cuLaunchKernel(
                function,
                *map(ctypes.c_uint, (*configuration.grid, *configuration.block)),
                ctypes.c_uint(configuration.shared_bytes),
                stream,
                arguments,
                None,
            )
        _check(self._driver, code, f"cannot launch {kernel} on GPU {self._gpu}")

    def _function(self, kernel: str, shared_bytes: int) -> ctypes.c_void_p:
        function = self._functions.get(kernel)
        if function is None:
            function = ctypes.c_void_p()
            _check(
                self._driver,
                self._driver.cuModuleGetFunction(
                    ctypes.byref(function), self._module, kernel.encode()
                ),
                f"cannot find {kernel}",
            )
            self._functions[kernel] = function
        if shared_bytes > _PLAIN_SHARED_BYTES:
            _check(
                self._driver,
                self._driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared_bytes),
                f"cannot launch {kernel} with {shared_bytes} bytes of shared memory",
            )
        return function


def _stream(gpu: int) -> int:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return int(torch.cuda.current_stream(gpu).cuda_stream)
    cupy = sys.modules.get("cupy")
    return int(cupy.cuda.get_current_stream().ptr) if cupy is not None else 0
