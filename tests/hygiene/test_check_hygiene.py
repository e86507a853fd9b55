# SPDX-License-Identifier: Apache-2.0
"""Does the check of hygiene see each fault, and leave clean files alone?"""

import tempfile
import unittest
from pathlib import Path

from check_hygiene import LONGEST_LINES, SPDX, broken_links, faults_of, tracked_files

# In pieces, so that this file passes the check itself.
HOME = "/home" + "/me"
WORK = "/wo" + "rk"
LATER = "TO" + "DO"
HEAD = f"// {SPDX}\n// Which question?\n"


class CheckHygiene(unittest.TestCase):
    def only_fault(self, name: str, text: str) -> str:
        found = faults_of(name, text.encode())
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_leaves_a_clean_file_alone(self):
        self.assertEqual(faults_of("src/base/text.cpp", (HEAD + "int x;\n").encode()), [])

    def test_a_copy_without_history_is_looked_at_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / ".gitignore").write_text("/build/\n*.pyc\nkernels/*/build/\n")
            for name in ("a.py", "a.pyc", "build/x.py", "src/b.cpp", "kernels/k/build/c.cpp"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).touch()
            self.assertEqual(tracked_files(root), [".gitignore", "a.py", "src/b.cpp"])

    def test_leaves_binary_files_alone(self):
        self.assertEqual(faults_of("tests/binary/a.so", b"\x7fELF\0\0 \n"), [])

    def test_wants_the_licence_line(self):
        self.assertIn("SPDX", self.only_fault("src/base/text.cpp", "int x;\n"))
        self.assertIn("SPDX", self.only_fault("tools/thing", "#!/bin/sh\ntrue\n"))

    def test_refuses_a_path_of_one_machine(self):
        self.assertIn(":3: a path", self.only_fault("a.cpp", HEAD + f'open("{HOME}/x");\n'))
        self.assertIn(":1: a path", self.only_fault("a.md", f"see {WORK}/main/x\n"))
        self.assertEqual(faults_of("a.md", b"see ./work/x, docs/work/ and $PWD/root/\n"), [])

    def test_refuses_a_note_to_oneself(self):
        self.assertIn("note", self.only_fault("a.cpp", HEAD + f"// {LATER}: later\n"))

    def test_refuses_a_name_that_says_nothing(self):
        self.assertIn("name", self.only_fault("src/base/utils.h", HEAD))
        self.assertIn("name", self.only_fault("src/base/string_util.h", HEAD))

    def test_refuses_untidy_lines(self):
        self.assertIn("space at the end", self.only_fault("a.cpp", HEAD + "int x; \n"))
        self.assertIn("no newline", self.only_fault("a.cpp", HEAD + "int x;"))
        self.assertIn("conflict", self.only_fault("a.cpp", HEAD + "<" * 7 + " mine\n"))

    def test_refuses_a_source_that_is_too_long(self):
        self.assertIn("lines", self.only_fault("a.cpp", HEAD + "int x;\n" * LONGEST_LINES))

    def test_refuses_a_link_to_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "docs/there.md").write_text("")
            page = (
                "[a](there.md#part) [b](https://example.org/x) [c](gone.md) [d](../docs/there.md)"
            )
            self.assertEqual(
                broken_links(root, "docs/page.md", page),
                ["docs/page.md:1: links to gone.md, which is not there"],
            )


if __name__ == "__main__":
    unittest.main()
