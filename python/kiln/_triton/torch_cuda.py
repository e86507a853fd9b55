# SPDX-License-Identifier: Apache-2.0
"""What does torch.cuda answer where the engine takes the place of the GPU? Wrappers of Triton
kernels ask it for the device's capability and size, and step onto a tensor's device. Answers are
those of the target that Triton compiles for. `torch.cuda.is_available()` stays as it is: there is
no memory on a GPU."""

from __future__ import annotations

from typing import Any, Callable

from .target import Target


class Properties:
    """As torch.cuda.get_device_properties returns them."""

    def __init__(self, target: Target) -> None:
        known = target.properties
        self.major, self.minor = target.capability
        self.name = f"kiln engine (sm_{target.arch})"
        self.multi_processor_count = known["multiprocessor_count"]
        self.shared_memory_per_block = 48 << 10
        self.shared_memory_per_block_optin = known["max_shared_mem"]
        self.shared_memory_per_multiprocessor = known["max_shared_mem"] + 1024
        self.regs_per_multiprocessor = known["max_num_regs"]
        self.max_threads_per_multi_processor = 1536 if target.arch in (86, 89) else 2048
        self.max_threads_per_block = 1024
        self.warp_size = known["warpSize"]
        self.L2_cache_size = 50 << 20
        self.total_memory = 80 << 30


class NoDevice:
    """In place of torch.cuda.device: there is nothing to step onto."""

    def __init__(self, _device: Any = None) -> None: ...

    def __enter__(self) -> NoDevice:
        return self

    def __exit__(self, *_: Any) -> None: ...


class OneStream:
    """In place of a torch.cuda.Stream: a launch has ended when it returns."""

    cuda_stream = 0

    def synchronize(self) -> None: ...

    def wait_stream(self, _other: Any) -> None: ...


def about_the_target(target: Callable[[], Target]) -> dict[str, Callable[..., Any]]:
    """What asks which GPU it is."""
    return {
        "get_device_capability": lambda _device=None: target().capability,
        "get_device_properties": lambda _device=None: Properties(target()),
        "get_device_name": lambda _device=None: Properties(target()).name,
    }


def without_a_gpu() -> dict[str, Any]:
    """What needs no answer where a launch has ended when it returns."""
    stream = OneStream()
    return {
        "current_device": lambda: 0,
        "current_stream": lambda _device=None: stream,
        "device": NoDevice,
        "device_of": NoDevice,
        "set_device": lambda _device: None,
        "synchronize": lambda _device=None: None,
    }
