# SPDX-License-Identifier: Apache-2.0
"""How does PTX text run on a GPU without anything to install? Through libcuda alone, by ctypes."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from multiprocessing.connection import Connection

ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class GpuError(Exception):
    pass


class Attribute(ctypes.Structure):
    _fields_ = [("id", c_int), ("pad", ctypes.c_char * 4), ("value", c_uint * 16)]


class Config(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", c_uint),
    ]


class Gpu:
    def __init__(self) -> None:
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise GpuError(f"no libcuda here: {error}") from error
        self.call("cuInit", 0)
        device, context, version = c_int(), c_void_p(), c_int()
        self.call("cuDeviceGet", byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuDriverGetVersion", byref(version))
        major, minor = c_int(), c_int()
        self.call("cuDeviceGetAttribute", byref(major), 75, device)
        self.call("cuDeviceGetAttribute", byref(minor), 76, device)
        self.arch = major.value * 10 + minor.value
        # The newest PTX that a driver of this version reads.
        self.ptx_version = (
            "9.0" if version.value >= 13000 else f"8.{min(version.value % 1000 // 10, 8) or 0}"
        )

    def call(self, name: str, *arguments: object) -> None:
        code = getattr(self.cuda, name)(*arguments)
        if code:
            text = c_char_p()
            self.cuda.cuGetErrorName(code, byref(text))
            raise GpuError(f"{name}: {(text.value or b'?').decode()}")

    def module(self, text: str) -> c_void_p:
        log = ctypes.create_string_buffer(8192)
        keys = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), 8192)
        module = c_void_p()
        try:
            self.call("cuModuleLoadDataEx", byref(module), text.encode(), 2, keys, values)
        except GpuError as error:
            raise GpuError(f"{error}: {log.value.decode(errors='replace')[:600]}") from error
        return module

    def run(
        self,
        text: str,
        memory: bytes,
        block: int,
        grid: int = 1,
        cluster: int = 1,
        tensor: list[int] | None = None,
    ) -> bytes:
        """The memory after kernel `k` of this text has run on it."""
        module = self.module(text)
        try:
            return self.launch(module, memory, block, grid, cluster, tensor)
        finally:
            self.cuda.cuModuleUnload(module)

    def launch(
        self,
        module: c_void_p,
        memory: bytes,
        block: int,
        grid: int,
        cluster: int,
        tensor: list[int] | None,
    ) -> bytes:
        function, at = c_void_p(), c_uint64()
        self.call("cuModuleGetFunction", byref(function), module, b"k")
        self.call("cuMemAlloc_v2", byref(at), c_size_t(max(len(memory), 1)))
        try:
            self.call("cuMemcpyHtoD_v2", at, bytes(memory), c_size_t(len(memory)))
            arguments = (c_void_p * 3)(ctypes.addressof(at), None, None)
            if tensor:
                tensor_map = self.tensor_map(at.value, tensor)
                arguments[1] = ctypes.addressof(tensor_map)
            config = Config((c_uint * 3)(grid, 1, 1), (c_uint * 3)(block, 1, 1), 0, None, None, 0)
            attribute = Attribute(CLUSTER_DIMENSION)
            attribute.value[0], attribute.value[1], attribute.value[2] = cluster, 1, 1
            if cluster > 1:
                config.attributes, config.count = ctypes.pointer(attribute), 1
            self.call("cuLaunchKernelEx", byref(config), function, arguments, None)
            self.call("cuCtxSynchronize")
            out = ctypes.create_string_buffer(len(memory))
            self.call("cuMemcpyDtoH_v2", out, at, c_size_t(len(memory)))
            return out.raw
        finally:
            self.cuda.cuMemFree_v2(at)

    def tensor_map(self, base: int, numbers: list[int]) -> ctypes.Array:
        rest = iter(numbers)
        kind, rank, offset = next(rest), next(rest), next(rest)
        sizes = (c_uint64 * 5)(*[next(rest) for _ in range(rank)])
        strides = (c_uint64 * 5)(*[next(rest) for _ in range(rank - 1)])
        box = (c_uint * 5)(*[next(rest) for _ in range(rank)])
        steps = (c_uint * 5)(*[next(rest) for _ in range(rank)])
        swizzle, fill = next(rest), next(rest)
        room = ctypes.create_string_buffer(256)
        aligned = (ctypes.c_char * 128).from_buffer(room, -ctypes.addressof(room) % 64)
        address = c_void_p(base + offset)
        self.call(
            "cuTensorMapEncodeTiled",
            aligned,
            kind,
            rank,
            address,
            sizes,
            strides,
            box,
            steps,
            0,
            swizzle,
            0,
            fill,
        )
        return aligned


def serve(channel: Connection) -> None:
    """Answers jobs until one fails: what killed a context would fail every later one."""
    try:
        gpu = Gpu()
        channel.send(gpu.ptx_version)
        while True:
            channel.send(gpu.run(*channel.recv()))
    except GpuError as error:
        channel.send(error)
    except EOFError:
        pass
