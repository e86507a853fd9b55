# SPDX-License-Identifier: Apache-2.0
"""Does the check of layers see what it must, in a tree made for it?"""

import tempfile
import unittest
from pathlib import Path

from check_layers import parse_layers, violations

TABLE = """
| module | what lives there | modules | libraries |
|---|---|---|---|
| `src/base` | a | | fmt |
| `src/sys` | b | base | posix |
| `src/host` | c | base, runtime ABI | |
| `src/cli` | d | all above | CLI11 |
| `runtime` | e | | posix, cuda |
| `kernels` | f | runtime | |

| library | headers |
|---|---|
| fmt | `fmt/` |
| posix | `unistd.h`, `sys/` |
| CLI11 | `CLI/` |
| cuda | `cuda_fp16.h` |
"""


class CheckLayers(unittest.TestCase):
    def found(self, files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for row in parse_layers(TABLE).rows.values():
                (root / row.folder).mkdir(parents=True)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return violations(root, parse_layers(TABLE))

    def test_accepts_what_the_rows_name(self):
        self.assertEqual(
            self.found(
                {
                    "src/base/text.h": "#include <string>\n#include <fmt/format.h>\n",
                    "src/base/text.cpp": '#include "base/text.h"\n#include "text.h"\n',
                    "src/sys/file.cpp": '#include <unistd.h>\n#include "base/text.h"\n',
                    "src/host/call.cpp": '#include "kiln/abi.h"\n',
                    "src/cli/main.cpp": '#include "sys/file.h"\n#include <CLI/CLI.hpp>\n',
                    "runtime/include/kiln/op.h": "#include <kiln/abi.h>\n#include <cuda_fp16.h>\n",
                    "kernels/add.cu": "#include <kiln/op.h>\n",
                }
            ),
            [],
        )

    def test_refuses_a_module_that_is_not_in_the_row(self):
        found = self.found({"src/base/text.cpp": '#include <string>\n#include "sys/file.h"\n', "src/sys/file.h": ""})
        self.assertEqual(len(found), 1)
        self.assertIn("src/base/text.cpp:2: may not include sys/file.h: module sys is not in its row", found[0])

    def test_refuses_the_way_around_by_a_relative_path(self):
        found = self.found({"src/base/text.cpp": '#include "../sys/file.h"\n', "src/sys/file.h": ""})
        self.assertIn("lies outside src/base", found[0])

    def test_refuses_a_library_that_is_not_in_the_row(self):
        found = self.found({"src/sys/file.cpp": "#include <fmt/format.h>\n", "src/base/open.cpp": "#include <unistd.h>\n"})
        self.assertEqual(len(found), 2)
        self.assertIn("library posix is not in its row", found[0])
        self.assertIn("library fmt is not in its row", found[1])

    def test_refuses_a_header_that_nobody_knows(self):
        found = self.found({"runtime/src/bridge.cpp": "#include <torch/library.h>\n"})
        self.assertIn("no row of layers.md knows this header", found[0])

    def test_refuses_more_of_the_runtime_than_its_abi(self):
        found = self.found({"src/host/call.cpp": "#include <kiln/op.h>\n", "src/sys/x.cpp": "#include <kiln/abi.h>\n"})
        self.assertEqual(len(found), 2)

    def test_refuses_a_module_without_a_row(self):
        found = self.found({"src/magic/spell.cpp": "", "src/base/a.cpp": '#include "magic/spell.h"\n'})
        self.assertEqual(len(found), 2)

    def test_refuses_a_row_without_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "src/base").mkdir(parents=True)
            found = violations(Path(folder), parse_layers(TABLE))
        self.assertEqual(len(found), 5)
        self.assertIn("a row for src/sys, which is not there", found[0])

    def test_refuses_a_table_that_points_upward(self):
        with self.assertRaises(SystemExit):
            parse_layers(TABLE.replace("| `src/sys` | b | base |", "| `src/sys` | b | cli |"))


if __name__ == "__main__":
    unittest.main()
