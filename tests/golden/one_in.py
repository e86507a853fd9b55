# SPDX-License-Identifier: Apache-2.0
"""Runs the test cases of a script, or one in N of them: SCRIPT KILN [--every N] [unittest's
arguments].

Each case builds several times, and `make test` has 18 minutes for everything. By place, not by cost
or by what has failed: nobody chooses. ctest's tests named *_all, for the long run, have every case.
"""

from __future__ import annotations

import argparse
import sys
import unittest
from collections.abc import Iterator


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test)
        else:
            yield test


class Every(unittest.TestLoader):
    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every

    def loadTestsFromModule(self, *arguments, **options) -> unittest.TestSuite:
        found = list(cases(super().loadTestsFromModule(*arguments, **options)))
        return self.suiteClass(found[:: self.every])


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("kiln")
    parser.add_argument("--every", type=int, default=1)
    given, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], testLoader=Every(given.every))
