# SPDX-License-Identifier: Apache-2.0
from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="my_add",
    version="0.1.0",
    packages=find_packages(include=["my_add"]),
    ext_modules=[
        CUDAExtension(
            name="my_add._C",
            sources=["csrc/bindings.cpp", "csrc/add.cu"],
            extra_compile_args={"cxx": ["-O3", "-std=c++17"], "nvcc": ["-O3", "-std=c++17"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
    install_requires=["torch"],
)
