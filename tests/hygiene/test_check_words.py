# SPDX-License-Identifier: Apache-2.0
"""Does check_words.py see each phrase, across lines too, and leave code and plain sentences?"""

from __future__ import annotations

import unittest

from check_words import PATTERNS, PLACES, faults_of

BAD = [
    "A fault is told at once.",
    "the command that mends it",
    "'hoper' is no GPU architecture",
    "paths where a header was looked for in vain",
    "fails for want of libc10.so",
    "Give up after so long",
    "times so many: a sample",
    "3 GB a job",
    "one file a command",
    "The file is beside the library.",
    "the samples form two heaps",
    "How the house is built",
    "A slip of the pen",
    "no key begins so",
    "from the begin of the block",
    "what is inside of a binary",
    "it is there already",
    "17.1 is seen, 28.9 is wanted",
    "skipped by name",
    "it may wait for ever",
    "the process goes on",
    "the rows lie in memory",
    "a label stands twice",
    "cudaMemcpy and its kin",
    "What it does not know it refuses.",
    "because nothing changed",
]
GOOD = [
    "There is no GPU, and there are no tests for it.",
    "Without one it is no longer needed.",
    "Use it as long as the process lives.",
    "A row stands in for a closure.",
    "stand-ins for torch's headers; a heap",
    "besides the elements, next to kiln.toml",
    "a block of one thread, a line per check",
    "`is told` and `beside` are code",
    "it is\n```\nno word\n```\n",
]


class Words(unittest.TestCase):
    def test_each_phrase_is_seen(self):
        for line in BAD:
            self.assertTrue(faults_of("a.md", line), line)

    def test_each_pattern_has_a_phrase(self):
        for pattern, _ in PATTERNS:
            self.assertTrue(any(pattern.search(line) for line in BAD), pattern.pattern)

    def test_a_message_names_no_file_of_a_checkout(self):
        self.assertTrue(faults_of("a.cpp", 'fix = "see docs/guide/op.md";'))
        self.assertFalse(faults_of("a.cpp", 'fix = "see kiln docs op";  // docs/guide/op.md'))
        self.assertFalse(faults_of("a.md", "See docs/guide/op.md."))

    def test_the_worst_ones_are_seen_in_comments(self):
        for source, line in (
            ("a.cpp", "int a;\n// It waits\n// in\n// vain.\n"),
            ("a.h", "/* The fault is\n * told. */\n"),
            ("a.py", "# What mends it?\n"),
        ):
            self.assertEqual(1, len(faults_of(source, line)), line)
        self.assertEqual([], faults_of("a.h", "// Two are told apart beside this.\nint told;\n"))
        (fault,) = faults_of("b.cpp", "int a;\n\n// it is told\n")
        self.assertTrue(fault.startswith("b.cpp:3: 'told'"), fault)

    def test_plain_sentences_pass(self):
        for line in GOOD:
            self.assertEqual(faults_of("a.md", line), [], line)

    def test_a_phrase_across_lines_is_seen_at_its_first(self):
        (fault,) = faults_of("a.md", "One.\n- It fails for\n  want of memory.\n")
        self.assertTrue(fault.startswith("a.md:2: 'for want of'"), fault)

    def test_output_that_is_quoted_may_say_anything(self):
        self.assertEqual(faults_of("a.md", "```output\nit is told\n```\nplain\n"), [])

    def test_of_a_source_only_texts_count(self):
        code = '// is, beside\nfail("it is there already");\n'
        (fault,) = faults_of("src/a.cpp", code)
        self.assertTrue(fault.startswith("src/a.cpp:2: 'there already'"), fault)

    def test_literals_that_the_compiler_joins_are_one_text(self):
        (fault,) = faults_of("src/a.cpp", 'fail("the path is no "\n     "folder");\n')
        self.assertTrue(fault.startswith("src/a.cpp:1: 'is no folder'"), fault)
        self.assertEqual(faults_of("src/a.cpp", 'two("it is no", "folder");\n'), [])

    def test_texts_of_python_and_of_tables_count(self):
        for name in ("python/kiln/a.py", "src/a.def", "runtime/a.h"):
            self.assertEqual(len(faults_of(name, 'x("it waits for ever")\n')), 1, name)

    def test_the_texts_of_the_program_are_among_the_places(self):
        for place in ("src", "runtime", "compat", "python/kiln", "templates"):
            self.assertIn(place, PLACES)


if __name__ == "__main__":
    unittest.main()
