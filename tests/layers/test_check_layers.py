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


# Every row has what it may include, so that a test sees its own fault alone.
FILES = {
    "src/base/text.h": "#include <string>\n#include <fmt/format.h>\n",
    "src/base/text.cpp": '#include "base/text.h"\n#include "text.h"\n',
    "src/sys/file.h": "#include <sys/types.h>\n",
    "src/sys/file.cpp": '#include <unistd.h>\n#include "base/text.h"\n#include "sys/file.h"\n',
    "src/host/call.cpp": '#include "kiln/abi.h"\n#include "base/text.h"\n',
    "src/cli/main.cpp": '#include "sys/file.h"\n#include <CLI/CLI.hpp>\n',
    "runtime/include/kiln/op.h": "#include <kiln/abi.h>\n#include <cuda_fp16.h>\n"
    "#include <unistd.h>\n",
    "kernels/add.cu": "#include <kiln/op.h>\n",
}


class CheckLayers(unittest.TestCase):
    def found(self, files: dict[str, str], table: str = TABLE) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in (FILES | files).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return violations(root, parse_layers(table))

    def only(self, files: dict[str, str], table: str = TABLE) -> str:
        found = self.found(files, table)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_accepts_what_the_rows_name(self):
        self.assertEqual(self.found({}), [])

    def engine(self, file: str, include: str) -> list[str]:
        """Violations where `file` of a module with folders has one more #include."""
        table = TABLE.replace(
            "| `src/host`",
            "| `src/engine/machine` | m | base | |\n"
            "| `src/engine/decode` | n | engine/machine | |\n"
            "| `src/host`",
        ).replace("| `src/host` | c | base,", "| `src/host` | c | base, engine,")
        files = {
            "src/engine/machine/warp.h": '#include "base/text.h"\n',
            "src/engine/decode/fuse.h": '#include "engine/machine/warp.h"\n',
            "src/host/call.cpp": '#include "kiln/abi.h"\n#include "base/text.h"\n'
            '#include "engine/decode/fuse.h"\n#include "engine/machine/warp.h"\n',
        }
        files[file] = files.get(file, "") + f"{include}\n"
        return self.found(files, table)

    def test_a_folder_may_include_one_below_it(self):
        self.assertEqual(self.engine("src/engine/decode/fuse.h", "#include <string>"), [])

    def test_refuses_a_folder_that_is_not_in_the_row_of_another(self):
        found = self.engine("src/engine/machine/warp.h", '#include "engine/decode/fuse.h"')
        self.assertEqual(len(found), 1, found)
        self.assertIn("module engine/decode is not in its row", found[0])

    def test_refuses_a_system_header_in_a_folder_without_posix(self):
        found = self.engine("src/engine/machine/warp.h", "#include <sys/mman.h>")
        self.assertEqual(len(found), 1, found)
        self.assertIn("library posix is not in its row", found[0])

    def test_refuses_a_file_of_a_module_that_no_row_holds(self):
        found = self.engine("src/engine/loose.h", "#include <string>")
        self.assertEqual(len(found), 1, found)
        self.assertIn("src/engine/loose.h: docs/design/layers.md has no row", found[0])

    def test_refuses_a_module_that_is_not_in_the_row(self):
        self.assertIn(
            "src/base/open.cpp:2: may not include sys/file.h: module sys is not in its row",
            self.only({"src/base/open.cpp": '#include <string>\n#include "sys/file.h"\n'}),
        )

    def test_refuses_a_way_around_by_a_path(self):
        self.assertIn(
            "lies outside src/base", self.only({"src/base/open.cpp": '#include "../sys/file.h"\n'})
        )
        self.assertIn(
            "module sys is not in its row",
            self.only({"src/base/open.cpp": '#include "base/../sys/file.h"\n'}),
        )
        self.assertIn(
            "no row", self.only({"src/base/open.cpp": "#include <../sys/../host/call.h>\n"})
        )
        self.assertIn(
            "a path upward", self.only({"kernels/mul.cu": "#include <kiln/../../src/call.h>\n"})
        )

    def test_refuses_a_library_that_is_not_in_the_row(self):
        self.assertIn(
            "library fmt is not in its row",
            self.only({"src/sys/print.cpp": "#include <fmt/format.h>\n"}),
        )
        self.assertIn(
            "library posix is not in its row",
            self.only({"src/base/open.cpp": "#include <unistd.h>\n"}),
        )

    def test_the_systems_sys_is_not_the_module_sys(self):
        # The module in the row does not allow the system's folder of the same name ...
        table = TABLE.replace(
            "| `src/host` | c | base, runtime ABI | |",
            "| `src/host` | c | base, sys, runtime ABI | |",
        )
        host = '#include "kiln/abi.h"\n#include "base/text.h"\n#include "sys/file.h"\n'
        self.assertEqual(self.found({"src/host/call.cpp": host}, table), [])
        self.assertIn(
            "src/host/call.cpp:4: may not include sys/mman.h: library posix is not in its row",
            self.only({"src/host/call.cpp": host + "#include <sys/mman.h>\n"}, table),
        )
        # ... nor does posix in the row allow the module.
        runtime = FILES["runtime/include/kiln/op.h"]
        self.assertIn(
            "module sys is not in its row",
            self.only({"runtime/include/kiln/op.h": runtime + '#include "sys/file.h"\n'}),
        )

    def test_refuses_the_wrong_kind_of_bracket(self):
        self.assertIn(
            "stands in quotes",
            self.only(
                {"src/cli/help.cpp": "#include <sys/file.h.h>\n#include <base/text.h>\n"}
                | {"src/cli/help.cpp": "#include <base/text.h>\n"}
            ),
        )
        self.assertIn("stands in <...>", self.only({"src/sys/map.cpp": '#include "sys/mman.h"\n'}))
        self.assertIn(
            "stands in <...>", self.only({"src/base/print.cpp": '#include "fmt/format.h"\n'})
        )

    def test_accepts_a_header_that_cmake_makes(self):
        made = {"src/sys/CMakeLists.txt": "file(CONFIGURE OUTPUT ${FOLDER}/sys/made.h CONTENT x)\n"}
        self.assertEqual(self.found(made | {"src/cli/help.cpp": '#include "sys/made.h"\n'}), [])
        self.assertIn(
            "module sys", self.only(made | {"src/base/help.cpp": '#include "sys/made.h"\n'})
        )

    def test_refuses_a_computed_name(self):
        self.assertIn(
            "a computed name cannot be checked", self.only({"src/base/any.cpp": "#include TABLE\n"})
        )

    def test_refuses_a_permission_that_nobody_uses(self):
        table = TABLE.replace("| `src/base` | a | | fmt |", "| `src/base` | a | | fmt, posix |")
        self.assertIn(
            "the row of src/base names posix, which no file there includes", self.only({}, table)
        )
        table = TABLE.replace(
            "| `src/host` | c | base, runtime ABI | |",
            "| `src/host` | c | base, sys, runtime ABI | |",
        )
        # <sys/...> is a use of posix, not of the module.
        table = table.replace("runtime ABI | |", "runtime ABI | posix |")
        host = FILES["src/host/call.cpp"] + "#include <sys/auxv.h>\n"
        self.assertIn(
            "the row of src/host names sys", self.only({"src/host/call.cpp": host}, table)
        )

    def test_refuses_a_header_that_nobody_knows(self):
        self.assertIn(
            "no row of layers.md knows this header",
            self.only({"runtime/src/bridge.cpp": "#include <torch/library.h>\n"}),
        )

    def test_refuses_more_of_the_runtime_than_its_abi(self):
        self.assertIn(
            "no such header of the runtime",
            self.only({"src/host/op.cpp": "#include <kiln/op.h>\n"}),
        )
        self.assertIn(
            "no such header of the runtime", self.only({"src/sys/x.cpp": "#include <kiln/abi.h>\n"})
        )

    def test_sources_of_the_runtime_take_a_word_of_their_own(self):
        files = {"runtime/src/call.h": "", "kernels/mul.cu": '#include "call.h"\n'}
        self.assertIn("no runtime sources", self.only(files))
        row = "| `kernels` | f | runtime"
        self.assertEqual(self.found(files, TABLE.replace(row, row + ", runtime sources")), [])

    def test_refuses_a_module_without_a_row(self):
        found = self.found(
            {"src/magic/spell.h": "", "src/base/a.cpp": '#include "magic/spell.h"\n'}
        )
        self.assertEqual(len(found), 2)

    def test_refuses_a_row_without_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "src").mkdir(parents=True)
            found = violations(Path(folder), parse_layers(TABLE))
        self.assertEqual(len(found), 6)
        self.assertIn("a row for src/sys, which does not exist", found[1])

    def test_refuses_a_table_that_points_upward(self):
        with self.assertRaises(SystemExit):
            parse_layers(TABLE.replace("| `src/sys` | b | base |", "| `src/sys` | b | cli |"))


if __name__ == "__main__":
    unittest.main()
