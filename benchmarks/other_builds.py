# SPDX-License-Identifier: Apache-2.0
"""How long do other tools take to build the add kernel? other_builds.py WAY FOLDER prints the
seconds of the call alone."""

import sys
import time
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "add"


def torch_load(folder: str) -> float:
    from torch.utils import cpp_extension

    start = time.perf_counter()
    cpp_extension.load(
        name="bars_add", sources=[str(SOURCES / "add_torch.cu")], build_directory=folder
    )
    return time.perf_counter() - start


def torch_load_inline(folder: str) -> float:
    from torch.utils import cpp_extension

    start = time.perf_counter()
    cpp_extension.load_inline(
        name="bars_add",
        cpp_sources="",
        cuda_sources=(SOURCES / "add_torch_stable.cu").read_text(),
        is_python_module=False,
        no_implicit_headers=True,
        extra_include_paths=[str(SOURCES)],
        build_directory=folder,
    )
    return time.perf_counter() - start


def tvm_ffi(folder: str) -> float:
    import torch  # noqa: F401  (its libraries hold the libcudart that the built module needs)
    import tvm_ffi.cpp

    start = time.perf_counter()
    tvm_ffi.cpp.load_inline(
        name="bars_add",
        cuda_sources=(SOURCES / "add_tvm_ffi.cu").read_text(),
        functions=["add"],
        extra_include_paths=[str(SOURCES)],
        build_directory=folder,
    )
    return time.perf_counter() - start


if __name__ == "__main__":
    print(
        {"torch_load": torch_load, "torch_load_inline": torch_load_inline, "tvm_ffi": tvm_ffi}[
            sys.argv[1]
        ](sys.argv[2])
    )
