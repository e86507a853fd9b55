# SPDX-License-Identifier: Apache-2.0
"""kiln: custom CUDA kernels for PyTorch, from a .cu file to torch.ops in about a second.

    import torch, kiln
    add = kiln.load("add.cu")
    x = torch.randn(1 << 20, device=kiln.device())
    add.my_add(x, x)

Nothing heavy is imported before it is used: `import kiln` does not import torch.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .errors import BuildError, KilnError, LoadError, Mismatch, RuleError, SetupError

if TYPE_CHECKING:
    from . import lanes
    from ._checks.timed import Untrusted
    from .benchmark import Bench, bench
    from .counting import Counters, counters
    from .inline import load_inline
    from .loader import load
    from .op import Op
    from .patching import patch_torch
    from .place import device
    from .profiling import Profile, profile
    from .ptx_module import PtxKernel, PtxModule, ptx
    from .setup_py import BuildExtension, CppExtension, CUDAExtension
    from .stub_files import stubs
    from .testing import Report, test

if os.environ.get("KILN_TRITON") == "1":
    importlib.import_module("._triton.startup", __name__).install()

# For CMake: find_package(kiln) looks there.
cmake_prefix_path = __path__[0]

_LAZY = {
    "bench": "benchmark",
    "Bench": "benchmark",
    "Untrusted": "_checks.timed",
    "counters": "counting",
    "Counters": "counting",
    "load": "loader",
    "load_inline": "inline",
    "Op": "op",
    "device": "place",
    "test": "testing",
    "Report": "testing",
    "patch_torch": "patching",
    "profile": "profiling",
    "ptx": "ptx_module",
    "PtxKernel": "ptx_module",
    "PtxModule": "ptx_module",
    "stubs": "stub_files",
    "Profile": "profiling",
    "BuildExtension": "setup_py",
    "CppExtension": "setup_py",
    "CUDAExtension": "setup_py",
}

__all__ = [
    "Bench",
    "BuildError",
    "BuildExtension",
    "CUDAExtension",
    "Counters",
    "CppExtension",
    "KilnError",
    "LoadError",
    "Mismatch",
    "Op",
    "Profile",
    "PtxKernel",
    "PtxModule",
    "Report",
    "RuleError",
    "SetupError",
    "Untrusted",
    "__version__",
    "bench",
    "cmake_prefix_path",
    "counters",
    "device",
    "lanes",
    "load",
    "load_inline",
    "patch_torch",
    "profile",
    "ptx",
    "stubs",
    "test",
]


def __getattr__(name: str) -> Any:
    if name == "lanes":  # a module of its own name
        return importlib.import_module(".lanes", __name__)
    if name not in _LAZY:
        # CUDA_HOME, include_paths and the like: a setup.py imports them beside BuildExtension.
        if name.isidentifier() and not name.startswith("_"):
            extension = importlib.import_module(".cpp_extension", __name__)
            if name in extension.TORCHS_NAMES:
                return getattr(extension, name)
        raise AttributeError(f"module 'kiln' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """%load_ext kiln: the magics %kiln and %%kiln of notebooks."""
    importlib.import_module("._notebook.magics", __name__).register(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
