# SPDX-License-Identifier: Apache-2.0
"""Does the check of lists see a missing, a stale and an unsorted row, and accept whole lists?"""

import unittest

from check_lists import (
    faults_of_contributing,
    faults_of_index,
    faults_of_long_tests,
    faults_of_makefile,
    faults_of_mnemonics,
    faults_of_results,
    faults_of_traits,
)

MAKEFILE = """
.PHONY: help build test \\
  test-long test-storm

help:
\t@echo "Every day"
\t@echo "make build       the command"
\t@echo "make test        all tests"
\t@echo
\t@echo "Long tests"
\t@echo "make test-long   all of them"
\t@echo "make test-storm  many processes"

build:
\ttools/build
test: build
\ttools/test
LONG := test-storm
test-long:
\ttools/long-tests $(LONG)
test-storm:
\ttools/storm
"""
CONTRIBUTING = "| `src` | x |\n| `tests/golden` | a |\n| `tests/unit` | b |\n"
RESULTS = "| `bars.md`, `build.md` | x |\n| `engine-<machine>.md` | x |\n"


class CheckLists(unittest.TestCase):
    def only(self, found: list[str]) -> str:
        self.assertEqual(len(found), 1, found)
        return found[0]

    def makefile(self, old: str, new: str) -> str:
        self.assertIn(old, MAKEFILE)
        return self.only(faults_of_makefile(MAKEFILE.replace(old, new)))

    def test_leaves_whole_lists_alone(self):
        self.assertEqual(faults_of_makefile(MAKEFILE), [])
        self.assertEqual(faults_of_contributing(CONTRIBUTING, ["golden", "unit"]), [])
        pages = ["bars.md", "bars.json", "build.md", "engine-x86_64.md"]
        self.assertEqual(faults_of_results(RESULTS, pages), [])

    def test_a_target_has_a_rule_a_row_and_is_phony(self):
        self.assertIn("build has no rule", self.makefile("build:\n\ttools/build\n", ""))
        row = '\t@echo "make build       the command"\n'
        self.assertIn("build has no row in help", self.makefile(row, ""))
        self.assertIn("build has no place in .PHONY", self.makefile("help build test", "help test"))

    def test_rows_of_help_are_sorted(self):
        build, test = '"make build       the command"', '"make test        all tests"'
        both = f"\t@echo {build}\n\t@echo {test}\n"
        self.assertIn("sorted", self.makefile(both, f"\t@echo {test}\n\t@echo {build}\n"))

    def test_every_long_test_is_run_by_test_long(self):
        self.assertIn("LONG lacks test-storm", self.makefile("LONG := test-storm", "LONG :="))
        self.assertIn(
            "LONG names build", self.makefile("LONG := test-storm", "LONG := test-storm build")
        )

    def test_every_long_test_has_a_row(self):
        row = "| `make test-storm` | a storm | 10 min | build.storm |\n"
        self.assertEqual(faults_of_long_tests(row, MAKEFILE), [])
        self.assertIn("no row for make test-storm", self.only(faults_of_long_tests("", MAKEFILE)))
        stale = row + "| `make test-zoo` | x |\n"
        self.assertIn("test-zoo is not in LONG", self.only(faults_of_long_tests(stale, MAKEFILE)))

    def test_every_folder_of_tests_has_one_row_in_order(self):
        folders = ["golden", "unit"]
        self.assertIn(
            "no row for tests/fuzz",
            self.only(faults_of_contributing(CONTRIBUTING, ["fuzz", *folders])),
        )
        stale = CONTRIBUTING + "| `tests/zoo` | x |\n"
        self.assertIn("does not exist", self.only(faults_of_contributing(stale, folders)))
        twice = CONTRIBUTING + "| `tests/unit` | x |\n"
        self.assertIn("2 rows", self.only(faults_of_contributing(twice, folders)))
        lines = CONTRIBUTING.splitlines()
        unsorted = "\n".join([lines[0], lines[2], lines[1]]) + "\n"
        self.assertIn("sorted", self.only(faults_of_contributing(unsorted, folders)))

    def test_every_page_of_an_index_has_a_row(self):
        readme = "| page | answers |\n| [guide/a.md](guide/a.md) | see [b](guide/b.md) |\n"
        found = faults_of_index("docs/README.md", readme, ["guide/a.md", "guide/b.md"])
        self.assertEqual(found, ["docs/README.md: no row for guide/b.md"])

    def test_mnemonics_are_known_to_the_table_alone(self):
        self.assertEqual(faults_of_mnemonics("a.cpp", "site.mnemonic = ins.mnemonic;\n"), [])
        self.only(faults_of_mnemonics("a.cpp", 'if (ins.mnemonic == "max") return;\n'))
        self.only(faults_of_mnemonics("a.cpp", "x\ny = ins.mnemonic.ends_with('4');\n"))

    def test_a_row_that_is_straight_does_not_park(self):
        row = 'PTX_FORM(f, "bar", "sync", "", "", "a a?", "{}")\n'
        self.assertEqual(faults_of_traits(row.format("parks")), [])
        self.only(faults_of_traits(row.format("straight parks")))
        self.only(faults_of_traits(""))

    def test_every_page_of_results_has_a_row(self):
        self.assertIn(
            "no row for gone.md", self.only(faults_of_results(RESULTS, ["bars.md", "gone.md"]))
        )


if __name__ == "__main__":
    unittest.main()
