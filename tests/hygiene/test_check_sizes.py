# SPDX-License-Identifier: Apache-2.0
"""Does the check of sizes see what is too long, and leave alone what may be?"""

import unittest
from pathlib import Path

from check_sizes import (
    MEASURED_WHOLE,
    MOST_COLUMNS,
    MOST_FILES,
    MOST_NLOC,
    analyzer,
    faults_of_folders,
    faults_of_functions,
    faults_of_lines,
    is_python,
)

LONG = "word " * 21
URL = "https://example.org/" + "x" * 100
ANALYZE = analyzer(Path(__file__).resolve().parents[2])


class Folders(unittest.TestCase):
    def files(self, count: int, folder: str = "src/engine", ending: str = ".cpp") -> list[str]:
        return faults_of_folders([f"{folder}/{i}{ending}" for i in range(count)])

    def test_leaves_a_full_folder_alone(self):
        self.assertEqual(self.files(MOST_FILES), [])

    def test_sees_one_more(self):
        self.assertEqual(len(self.files(MOST_FILES + 1)), 1)
        self.assertEqual(len(self.files(MOST_FILES + 1, "python/kiln", ".py")), 1)

    def test_counts_each_folder_by_itself(self):
        names = [f"src/engine/{i % 2}/{i}.h" for i in range(2 * MOST_FILES)]
        self.assertEqual(faults_of_folders(names), [])

    def test_leaves_other_places_and_other_files_alone(self):
        self.assertEqual(self.files(MOST_FILES + 1, "tests/ptx"), [])
        self.assertEqual(self.files(MOST_FILES + 1, ending=".def"), [])


class Lines(unittest.TestCase):
    def seen(self, name: str, text: str) -> int:
        return len(faults_of_lines(name, text))

    def test_leaves_a_full_line_alone(self):
        self.assertEqual(self.seen("a.cpp", "x" * MOST_COLUMNS + "\n"), 0)
        self.assertEqual(self.seen("a.md", "é" * MOST_COLUMNS + "\n"), 0)

    def test_sees_one_column_more(self):
        for name in ("a.cpp", "a.h", "a.cu", "a.py", "a.md", "tools/fuzz"):
            self.assertEqual(self.seen(name, "x" * (MOST_COLUMNS + 1) + "\n"), 1, name)

    def test_a_row_of_a_table_is_exempt_in_markdown_alone(self):
        self.assertEqual(self.seen("a.md", f"| {LONG} |\n"), 0)
        self.assertEqual(self.seen("a.py", f"| {LONG}\n"), 1)

    def test_a_quoted_output_is_exempt_until_its_end(self):
        self.assertEqual(self.seen("a.md", f"```output\n{LONG}\n```\n"), 0)
        self.assertEqual(self.seen("a.md", f"```output\nshort\n```\n{LONG}\n"), 1)
        self.assertEqual(self.seen("a.md", f"```\n{LONG}\n```\n"), 1)
        self.assertEqual(self.seen("a.py", f"```output\n{LONG}\n```\n"), 1)

    def test_a_link_is_exempt_and_the_words_beside_it_are_not(self):
        self.assertEqual(self.seen("a.md", f"- see {URL}\n"), 0)
        self.assertEqual(self.seen("a.md", f"[here](../{'x/' * 60}a.md)\n"), 0)
        self.assertEqual(self.seen("a.py", f"# {URL}\n"), 0)
        self.assertEqual(self.seen("a.md", f"{LONG} {URL}\n"), 1)
        self.assertEqual(self.seen("a.md", f"{URL} {URL}\n"), 1)

    def test_a_generated_page_is_exempt(self):
        self.assertEqual(self.seen("docs/results/bars.md", LONG), 0)
        self.assertEqual(self.seen("docs/reference/ptx.md", LONG), 0)
        self.assertEqual(self.seen("docs/results/README.md", LONG), 1)
        self.assertEqual(self.seen("docs/results/compat-list.md", LONG), 1)
        self.assertEqual(self.seen("docs/reference/engine.md", LONG), 1)


@unittest.skipUnless(ANALYZE, "no lizard: tools/bootstrap test")
class Functions(unittest.TestCase):
    def seen(self, name: str, text: str) -> list[str]:
        return faults_of_functions(name, text, ANALYZE)

    def cpp(self, statements: int, between: str = "") -> str:
        return "int f() {\n" + f"{between}  g();\n" * statements + "}\n"

    def python(self, statements: int) -> str:
        return "def f():\n" + "    g()\n" * statements

    def test_leaves_a_full_function_alone(self):
        self.assertEqual(self.seen("a.cpp", self.cpp(MOST_NLOC - 2)), [])
        self.assertEqual(self.seen("a.py", self.python(MOST_NLOC - 1)), [])

    def test_comments_and_empty_lines_do_not_count(self):
        self.assertEqual(self.seen("a.cpp", self.cpp(MOST_NLOC - 2, "\n  // why\n")), [])

    def test_sees_one_line_more(self):
        for name in ("a.cpp", "a.h", "a.cu"):
            self.assertEqual(len(self.seen(name, self.cpp(MOST_NLOC - 1))), 1, name)
        for name in ("a.py", "tools/fuzz"):
            self.assertEqual(len(self.seen(name, self.python(MOST_NLOC))), 1, name)

    def test_an_exempt_function_may_be_long_and_not_short(self):
        name, function = next(iter(MEASURED_WHOLE))
        scope = function.split("::")
        self.assertEqual(len(scope), 2)
        for statements, faults in ((MOST_NLOC, 0), (3, 1)):
            text = self.cpp(statements).replace("f()", f"{scope[1]}()")
            text = f"namespace {scope[0]} {{\n{text}}}\n"
            self.assertEqual(len(self.seen(name, text)), faults, statements)
        self.assertEqual(len(self.seen("other.h", self.cpp(MOST_NLOC))), 1)

    def test_two_functions_do_not_add_up(self):
        self.assertEqual(self.seen("a.py", self.python(50) + "\n\n" + self.python(50)), [])

    def test_knows_a_script_by_its_first_line(self):
        self.assertTrue(is_python("tools/fuzz", "#!/usr/bin/env python3\n"))
        self.assertTrue(is_python("a.py", ""))
        self.assertFalse(is_python("tools/build", "#!/usr/bin/env bash\n"))


if __name__ == "__main__":
    unittest.main()
