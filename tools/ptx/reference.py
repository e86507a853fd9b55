#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which PTX instructions does the engine run? Writes docs/reference/ptx.md from
src/ptx/instructions.def.

tools/ptx/reference.py [--check]      --check: ends with 1 when the page is not what it should be
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src/ptx/instructions.def"
PAGE = ROOT / "docs/reference/ptx.md"
ROW = re.compile(r'PTX_FORM\((.*?), "(.*?)", "(.*?)", "(.*?)", "(.*?)", "(.*?)", ".*?"\)$')

HEAD = """# PTX instructions that the engine runs

Made by `tools/ptx/reference.py` from [src/ptx/instructions.def](../../src/ptx/instructions.def);
a test holds it true. An instruction that is not here is refused when its kernel is launched, by
name and source line.

- Modifiers in their order: `x?` may stand, `x|y` one of them, T and U a type of the next columns, a
  star digits. Those of `atom`, `red`, `ld`, `st`, `min`, `max` and `vote` may stand in any order.
- Operands: d a register written (D: or `_`), p a predicate written, a value read, c a predicate
  read, i an integer, m memory, v and w registers in braces written and read, l a label, * whatever
  follows.
- Left out: `tcgen05` and other forms of sm_100a alone, `multimem`, sparse products (`mma.sp`,
  `wgmma.sp`), im2col copies.
"""


def page() -> str:
    lines, count = [], 0
    for line in TABLE.read_text().splitlines():
        if row := ROW.match(line):
            _, mnemonic, modifiers, types, others, operands = (
                cell.replace("|", "\\|") for cell in row.groups()
            )
            lines.append(f"| {mnemonic} | {modifiers} | {types} | {others} | {operands} |")
            count += 1
        elif line.startswith("// ") and lines and not lines[-1]:
            title = re.sub(r" \(PTX ISA [^)]*\)| \([\d., ]*\)", "", line[3:]).split(":")[0]
            lines += [
                f"## {title}",
                "",
                "| | modifiers | T | U | operands |",
                "|---|---|---|---|---|",
            ]
        elif not line:
            lines.append("")
    return HEAD + f"\n{count} forms.\n" + "\n".join([*lines, ""])


def main() -> int:
    text = re.sub(r"\n{3,}", "\n\n", page()).rstrip("\n") + "\n"
    if "--check" not in sys.argv:
        PAGE.write_text(text)
        return 0
    if PAGE.read_text() == text:
        return 0
    print(
        "error: docs/reference/ptx.md is not that of src/ptx/instructions.def\n  fix: "
        "tools/ptx/reference.py",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
