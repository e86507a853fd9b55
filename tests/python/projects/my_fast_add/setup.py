# SPDX-License-Identifier: Apache-2.0
import glob
import os

import torch
from setuptools import find_packages, setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CUDAExtension, include_paths

if CUDA_HOME is None:
    raise RuntimeError("my_fast_add needs the CUDA toolkit")

here = os.path.dirname(os.path.abspath(__file__))
nvcc_flags = ["-O3", "--use_fast_math", "-lineinfo", "-Xptxas", "-v"]
nvcc_flags += ["-gencode", "arch=compute_80,code=sm_80"]
nvcc_flags += ["-gencode", "arch=compute_80,code=compute_80"]
if os.environ.get("MY_DEBUG") == "1":
    nvcc_flags += ["-g"]

setup(
    name="my_fast_add",
    version="0.2.0+torch" + ".".join(torch.__version__.split(".")[:2]),
    packages=find_packages(include=["my_fast_add"]),
    ext_modules=[
        CUDAExtension(
            "my_fast_add._C",
            sorted(glob.glob("csrc/*.cu")),
            include_dirs=[os.path.join(here, "csrc"), *include_paths()],
            define_macros=[("MY_THREADS", "128")],
            extra_compile_args={"cxx": ["-O3", "-fopenmp"], "nvcc": nvcc_flags},
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
    zip_safe=False,
)
