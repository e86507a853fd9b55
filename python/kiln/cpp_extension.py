# SPDX-License-Identifier: Apache-2.0
"""Which names does a setup.py import from torch.utils.cpp_extension? All of them are here under the
same names: kiln's own where kiln has one, else torch's.

    from kiln.cpp_extension import CUDA_HOME, BuildExtension, CUDAExtension
"""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from typing import Any

from .inline import load_inline
from .loader import load
from .setup_py import BuildExtension, CppExtension, CUDAExtension

# Those that `from kiln import ...` finds too: what torch lists and what projects on GitHub import.
TORCHS_NAMES = (
    "CLIB_EXT", "CLIB_PREFIX", "COMMON_HIP_FLAGS", "COMMON_MSVC_FLAGS", "COMMON_NVCC_FLAGS",
    "CUDA_GCC_VERSIONS", "CUDA_HOME", "CUDNN_HOME", "EXEC_EXT", "HIP_HOME", "IS_HIP_EXTENSION",
    "IS_LINUX", "IS_MACOS", "IS_WINDOWS", "LIB_EXT", "MINIMUM_GCC_VERSION", "ROCM_HOME",
    "ROCM_VERSION", "SHARED_FLAG", "SYCL_HOME", "SyclExtension", "TORCH_LIB_PATH",
    "check_compiler_is_gcc", "check_compiler_ok_for_platform", "get_cxx_compiler",
    "get_compiler_abi_compatibility_and_version", "get_default_build_root", "include_paths",
    "is_ninja_available", "library_paths", "verify_ninja_availability",
)  # fmt: skip

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "load", "load_inline"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'kiln.cpp_extension' has no attribute '{name}'")
    torchs = importlib.import_module("torch.utils.cpp_extension")
    value = getattr(torchs, name)
    return value or _cuda_home() if name == "CUDA_HOME" else value


def _cuda_home() -> str | None:
    """torch built for CPUs says None, and projects then leave their kernels out."""
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc")
    return os.environ.get("CUDA_HOME") or (str(Path(nvcc).resolve().parents[1]) if nvcc else None)
