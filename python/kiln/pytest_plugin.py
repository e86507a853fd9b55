# SPDX-License-Identifier: Apache-2.0
"""What does a test of an op need from pytest? The device, a loader that builds once, a marker for
GPU tests.

Use it with `pytest_plugins = ["kiln.pytest_plugin"]` in conftest.py; the installed package
registers it by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

import kiln
from kiln import testing


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("kiln").addoption(
        "--kiln-sanitize",
        metavar="CHECKS",
        default="default",
        help="checks that kiln.test runs: memory,race,sync, default, all, or off",
    )


def pytest_configure(config: pytest.Config) -> None:
    checks = config.getoption("--kiln-sanitize", default="default")
    testing.SANITIZE_CHECKS = "" if checks == "off" else checks
    config.addinivalue_line(
        "markers", "kiln_gpu: the test needs a GPU; it is skipped if there is none"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("kiln_gpu") is not None and kiln.device() != "cuda":
        pytest.skip("no GPU")


@pytest.fixture(scope="session")
def kiln_device() -> str:
    """ "cuda", or "cpu" for the engine: where the ops of this session run."""
    return kiln.device()


@pytest.fixture(scope="session")
def kiln_load(pytestconfig: pytest.Config) -> Callable[..., Any]:
    """kiln.load with paths relative to the tests; each set of arguments is loaded once per
    session."""
    loaded: dict[Any, Any] = {}

    def load(path: Any, *args: Any, **kwargs: Any) -> Any:
        key = (str(path), repr(args), repr(sorted(kwargs.items())))
        if key not in loaded:
            given = Path(pytestconfig.rootpath, path)
            loaded[key] = kiln.load(given if given.exists() else path, *args, **kwargs)
        return loaded[key]

    return load


@pytest.fixture
def kiln_seed(request: pytest.FixtureRequest) -> int:
    """torch.manual_seed with a number from the test's name: values differ between tests and not
    between runs."""
    import zlib

    import torch

    seed = zlib.crc32(request.node.nodeid.encode())
    torch.manual_seed(seed)
    return seed
