# SPDX-License-Identifier: Apache-2.0
"""Does check_locale.py see each kind of call, and leave what is harmless?"""

from __future__ import annotations

import unittest

from check_locale import faults_of

BAD = [
    "double x = std::strtod(text, &end);",
    "x = strtof(text, 0);",
    "x = std::stod(word);",
    "while (std::isspace(static_cast<unsigned char>(c))) ++at;",
    "if (isalnum(c)) ++at;",
    "std::all_of(a, b, std::isdigit)",
    "c = tolower(c);",
    'snprintf(buffer, sizeof buffer, "%g", value);',
    'text.addf("%5.2f of %d", part, all);',
    'std::sscanf(line, "%lf", &value);',
    "std::ostringstream out;",
    "static const std::regex pattern;",
    'setlocale(LC_ALL, "");',
    'fmt::format("{:L}", count)',
    'std::strftime(text, sizeof text, "%A", &utc);',
]
GOOD = [
    "double x = to_number(text).value_or(0);",
    'std::fprintf(stderr, "%s: %d of %zu\\n", name, a, b);',
    'std::sscanf(line, "%lx-%lx %4s", &begin, &end, rights);',
    "if (is_digit(c)) ++at;",
    'PTX_FORM(test_space, "isspacep", "global", "", "", "p a")',
    'fmt::format("{:.2f} ms", time)',
    'std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);',
    "int64_t n = std::stoll(word);  // strtod( stands in a comment",
    'LEAK("std::regex_x", "regex")',
]
BAD_PYTHON = ["locale.atof(word)", 'when.strftime("%A")']
GOOD_PYTHON = ["float(word)", 'when.strftime("%Y-%m-%dT%H:%M:%SZ")', "locale.localeconv()"]


class Places(unittest.TestCase):
    def test_each_kind_is_seen(self):
        for line in BAD:
            self.assertTrue(faults_of("src/a.cpp", line), line)
        for line in BAD_PYTHON:
            self.assertTrue(faults_of("python/kiln/a.py", line), line)

    def test_harmless_lines_pass(self):
        for line in GOOD:
            self.assertEqual(faults_of("src/a.cpp", line), [], line)
        for line in GOOD_PYTHON:
            self.assertEqual(faults_of("python/kiln/a.py", line), [], line)

    def test_the_one_place_may(self):
        self.assertEqual(faults_of("src/base/number.cpp", BAD[0]), [])


if __name__ == "__main__":
    unittest.main()
