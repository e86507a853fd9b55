# SPDX-License-Identifier: Apache-2.0
"""Does tools/launch-values find a launch whose result differs from that of C++, and say where? With
a command in kiln's place: its programs are those of C++, and one of them spoils an element."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/launch-values"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
from host_reference.values import kernels, operations  # noqa: E402

# Its "engine" is C++ as well. Compiled, one thread of a row adds @MORE@.
FAKE_KILN = r"""#!/bin/sh
while [ $# -gt 3 ]; do shift; done
sed 's/)\[\(.*\)\] = /)[\1] = (x == 3 ? @MORE@ : 0) + /' "$1" > "$3-spoiled.cu"
for each in "$1" "$3-spoiled.cu"; do
  g++ -w -std=c++20 -fwrapv -ffp-contract=off -include @HEADER@ -x c++ "$each" -o "$each.program"
done
cat > "$3" <<END
#!/bin/sh
[ "\$KILN_ENGINE_COMPILE" = always ] && exec $3-spoiled.cu.program "\$@"
exec $1.program "\$@"
END
chmod +x "$3"
"""


class LaunchValues(unittest.TestCase):
    def run_with(self, more: int) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as name:
            text = FAKE_KILN.replace("@HEADER@", str(ROOT / "tools/host_reference/on_host.h"))
            kiln = Path(name) / "kiln"
            kiln.write_text(text.replace("@MORE@", str(more)))
            kiln.chmod(0o755)
            words = [sys.executable, TOOL, "--kernels", "1", "--launches", "1", "--kiln", kiln]
            return subprocess.run(
                [*words, "--out", Path(name) / "out"], capture_output=True, text=True
            )

    def test_finds_nothing_where_nothing_differs(self):
        done = self.run_with(0)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 wrong", done.stdout)

    def test_names_the_kernel_and_the_first_element(self):
        done = self.run_with(1)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"compiled: k0, \w+ of [a-z ]+: .*: launch 0, grid \(")
        self.assertRegex(done.stdout, r"elements; element \d+ is 0x[0-9a-f]+, expected 0x")

    def test_has_every_operation(self):
        count = len(operations())
        whats = {each.what.split(":")[0] for seed in (1, 2) for each in kernels(seed, count)}
        self.assertEqual(len(whats), count)

    def test_kernels_of_a_seed_are_always_the_same(self):
        self.assertEqual(kernels(5, 20), kernels(5, 20))
        self.assertNotEqual(kernels(5, 20), kernels(6, 20))


if __name__ == "__main__":
    unittest.main()
