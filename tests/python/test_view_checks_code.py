# SPDX-License-Identifier: Apache-2.0
"""Are the index checks of kiln::View free on a GPU? Their machine code is that of the comments of
earlier versions."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from of_many import a_sample

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import cubins
import view_checks

# The address of the data is one operand more than the comments had. Here it tips a choice of the
# compiler's, towards the code without checks.
AS_WITHOUT_CHECKS = {"transpose_kernel"}


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")
@pytest.mark.parametrize("arch", a_sample(view_checks.ARCHS, 3))
def test_the_code_is_that_of_the_comment_form(arch):
    seen = 0
    for source in view_checks.view_sources():
        forms = view_checks.code_of(source, arch)
        assert forms["check"].keys() == forms["comment"].keys() == forms["none"].keys()
        for kernel, code in forms["check"].items():
            name = view_checks.plain_name(kernel)
            form = "none" if name in AS_WITHOUT_CHECKS else "comment"
            assert code == forms[form][kernel], f"{name} of {source.name}, sm_{arch}"
            seen += 1
    assert seen >= 12


def test_registers_are_read_by_kernel():
    log = """ptxas info    : Compiling entry function '_Z1av' for 'sm_90'
ptxas info    : Function properties for _Z1av
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
ptxas info    : Compiling entry function '_Z1bv' for 'sm_90'
ptxas info    : Used 8 registers
"""
    assert cubins.registers(log) == {"_Z1av": 12, "_Z1bv": 8}


def test_names_of_kernels():
    assert view_checks.plain_name("_Z10add_kernelN4kiln4ViewIKfLi1EEE") == "add_kernel"
    assert (
        view_checks.plain_name("_Z11NAME_kernelIdEvN4kiln4ViewIKT_Li1EEE") == "NAME_kernel<double>"
    )
    assert view_checks.plain_name("plain") == "plain"
