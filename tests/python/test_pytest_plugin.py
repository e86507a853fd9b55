# SPDX-License-Identifier: Apache-2.0
"""Do the fixtures give what they promise to a project's tests?"""

from __future__ import annotations

import pytest
import torch


def test_device_is_one_that_ops_run_on(kiln_device):
    assert kiln_device == ("cuda" if torch.cuda.is_available() else "cpu")


def test_sources_are_loaded_once(command, sources, kiln_load):
    first = kiln_load(sources / "kinds.cu")
    assert kiln_load(sources / "kinds.cu") is first


def test_seed_is_the_tests_own(kiln_seed):
    first = torch.rand(1)
    torch.manual_seed(kiln_seed)
    assert torch.equal(torch.rand(1), first)


@pytest.mark.kiln_gpu
def test_gpu_tests_are_skipped_by_name():
    assert torch.cuda.is_available()
