# SPDX-License-Identifier: Apache-2.0
"""How does the PTX of newer Tritons become what the engine reads? Two habits of their LLVM are
undone; the code stays the same."""

from __future__ import annotations

import re

# From 3.8, each line of inline assembly counts as one more line of the Python file: an access is in
# the second line of its assembly, and its fault would be reported a line too late.
_ASSEMBLY = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LINE = re.compile(r"^\s*\.loc\s.*\n", re.MULTILINE)
# From 3.9, a parameter has an address of 32 bits, which is widened before cvta.param. To the engine
# such an address is a pointer of 64 bits.
_SHORT_ADDRESS = re.compile(r"^\s*mov\.b32\s+(%r\d+), (\w+_param_\d+);\n", re.MULTILINE)


def for_engine(ptx: str) -> str:
    ptx = _ASSEMBLY.sub(lambda found: _LINE.sub("", found[0]), ptx)
    for move, register, parameter in [(one[0], one[1], one[2])
                                      for one in _SHORT_ADDRESS.finditer(ptx)]:  # fmt: skip
        widened = re.compile(rf"cvt\.u64\.u32(\s+%rd\d+), {register};")
        uses = len(re.findall(rf"{register}\b", ptx))
        if uses == 1 + len(widened.findall(ptx)):
            ptx = widened.sub(rf"mov.b64\1, {parameter};", ptx.replace(move, ""))
    return ptx
