# SPDX-License-Identifier: Apache-2.0
"""Does check_values.py see a file whose numbers are all exact in float, and pass the others?"""

from __future__ import annotations

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from check_values import is_exact, main, of_commands, of_python


class TestValues(unittest.TestCase):
    def test_exact(self) -> None:
        self.assertTrue(all(map(is_exact, (0.5, 2.5, 2.0**-30, 16777216.0))))
        self.assertFalse(any(map(is_exact, (0.1, 1 / 3, 16777217.0, 1e300))))

    def test_what_counts(self) -> None:
        self.assertEqual(of_python("ops.add(x, -0.5, by=1 / 4)"), [0.5, 0.25])
        self.assertEqual(of_python("torch.full((2,), 0.5); time.sleep(0.5); y = 0.5"), [])
        self.assertEqual(of_commands("kiln call a.cu add randn:f32:9 2.5 # 0.1"), [2.5])

    def test_a_file_fails_until_one_number_is_odd(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "test_it.py")
            for text, code in (
                ("ops.add(x, 0.5)", 1),
                ("ops.add(x, 0.5)\nops.add(x, 0.1)", 0),
                ("ops.add(x, 2)", 0),
            ):
                path.write_text(text)
                told = io.StringIO()
                with contextlib.redirect_stdout(told):
                    self.assertEqual(main([folder, "test_it.py"]), code, text)
                self.assertEqual("test_it.py: 0.5 are exact" in told.getvalue(), code == 1)


if __name__ == "__main__":
    unittest.main()
