#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does any code that ships ask the locale of the process? Prints each place as file:line, exits 1
if there is one.

The engine, op libraries and their runtime live in processes of others, which may have set any
locale: there strtod wants a comma, printf writes one, and <cctype> has letters of its own.
src/base/number.h, src/base/ascii.h and runtime/src/text.h have the same without. The encoding is
another matter: what Python reads from kiln holds paths, and those are in the locale's.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDERS = ("src", "runtime", "compat", "python/kiln")
# Programs for developers, whose process has the "C" locale; and the places that make the locale a
# choice.
EXEMPT = ("src/engine/bench/",)
OWN = (
    "src/base/number.cpp",
    "runtime/src/text.cpp",
    "compat/src/print.cpp",
    "compat/src/text.cpp",
    "src/base/fmt.cpp",
    "src/build/plan/leaks.def",
)

CTYPE = "alpha|alnum|digit|xdigit|space|blank|upper|lower|punct|print|graph|cntrl"
FLOAT = r"%[-+ #0-9.*]*(?:l|L)?[aefgAEFG]"
CPP = [
    (
        re.compile(r"(?<![\w.>])(?:std::)?(?:strto(?:d|f|ld)|ato[f]|sto(?:d|f|ld))\s*\("),
        "reads a fraction as the locale writes it",
    ),
    (
        re.compile(rf"(?<![\w.>:])(?:std::)?is(?:{CTYPE})\s*\("),
        "asks the locale what a letter or a blank is",
    ),
    (re.compile(rf"\bstd::is(?:{CTYPE})\b"), "asks the locale what a letter or a blank is"),
    (
        re.compile(r"(?<![\w.>:])(?:std::)?to(?:upper|lower)\s*\("),
        "asks the locale for a capital letter",
    ),
    (
        re.compile(r"\bstd::to_string\s*\(\s*(?:static_cast<(?:double|float)>|[0-9]+\.)"),
        "prints a fraction as the locale writes it",
    ),
    (
        re.compile(rf"\b(?:v?s?n?f?printf|addf|s?f?scanf)\s*\(.*\"[^\"]*{FLOAT}"),
        "prints or reads a fraction as the locale writes it",
    ),
    (
        re.compile(r"\bstd::[io]?stringstream\b|\bstd::w?regex\b|\bstrcoll\b|\bstrcasecmp\b"),
        "works as the locale says",
    ),
    (re.compile(r"\bsetlocale\s*\(|\bstd::locale\b"), "changes or takes the locale of the process"),
    (re.compile(r"\{:[^}\"]*L[^}\"]*\}"), "prints a number as the locale groups it"),
    (re.compile(r"\bstrftime\s*\(.*%[aAbBcpxXrEO]"), "prints a date as the locale names it"),
]
PYTHON = [
    (
        re.compile(r"\blocale\.(?:atof|str|format_string|currency|strxfrm|setlocale)\b"),
        "works as the locale says",
    ),
    (re.compile(r"\.strftime\([^)]*%[aAbBcpxXr]"), "prints a date as the locale names it"),
]


def faults_of(name: str, text: str) -> list[str]:
    if name.startswith(EXEMPT) or name in OWN:
        return []
    python = name.endswith(".py")
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("#", 1)[0] if python else line.split("//", 1)[0]
        found += [
            f"{name}:{number}: {why}"
            for pattern, why in (PYTHON if python else CPP)
            if pattern.search(code)
        ]
    return found


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found, files = [], 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".def", ".py") and path.is_file():
                files += 1
                found += faults_of(str(path.relative_to(root)), path.read_text(encoding="utf-8"))
    print("\n".join(found))
    print(f"{files} files, {len(found)} places that ask the locale")
    return 1 if found or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
