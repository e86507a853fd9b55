# SPDX-License-Identifier: Apache-2.0
"""Does tools/random-kernels find results that differ, and make their kernel shorter? With a command
in kiln's place: its programs print another result if they are compiled and have a certain line."""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/random-kernels"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
from host_reference.ways import HOST, Way  # noqa: E402
from random_kernels.kernel import Kernel  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("random_kernels_tool", str(TOOL))
TOOL_MODULE = importlib.util.module_from_spec(importlib.util.spec_from_loader(LOADER.name, LOADER))
sys.modules[LOADER.name] = TOOL_MODULE
LOADER.exec_module(TOOL_MODULE)
WAY = Way("interpreted", ())

SEED = 3
FAKE_KILN = r"""#!/bin/sh
while [ $# -gt 3 ]; do shift; done
source=$1; out=$3
if grep -qF '@LINE@' "$source"; then wrong=1; else wrong=0; fi
cat > "$out" <<END
#!/bin/sh
[ "\$KILN_ENGINE_COMPILE" = always ] && [ $wrong = 1 ] && { echo "k0 0 out=1 own=3"; exit; }
echo "k0 0 out=1 own=2"
END
chmod +x "$out"
"""


class RandomKernels(unittest.TestCase):
    def run_with(self, line: str) -> tuple[subprocess.CompletedProcess, str]:
        with tempfile.TemporaryDirectory() as name:
            kiln = Path(name) / "kiln"
            kiln.write_text(FAKE_KILN.replace("@LINE@", line))
            kiln.chmod(0o755)
            words = [sys.executable, TOOL, "--seed", str(SEED), "--kernels", "1", "--kiln", kiln]
            words += ["--host", "none"]
            out = Path(name) / "out"
            done = subprocess.run([*words, "--out", out], capture_output=True, text=True)
            short = out / f"seed{SEED}-k0.cu"
            return done, short.read_text() if short.exists() else ""

    def test_finds_nothing_where_nothing_differs(self):
        done, short = self.run_with("a line that no kernel has")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 kernels, 0 differ", done.stdout)
        self.assertEqual(short, "")

    def test_leaves_of_a_kernel_what_makes_it_differ(self):
        kernel = Kernel(SEED * 1000, "k0", False)
        line = next(each for each in reversed(kernel.blocks[-1].body) if isinstance(each, str))
        done, short = self.run_with(line)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("k0, compiled: own", done.stdout)
        self.assertIn(line, short)
        begin = short.index("__global__")
        self.assertEqual(short[begin : short.index("\n}", begin)].count("\n"), 1, short)

    def test_says_what_does_not_build(self):
        with tempfile.TemporaryDirectory() as name:
            kiln = Path(name) / "kiln"
            kiln.write_text("#!/bin/sh\necho 'error: broken'; exit 1\n")
            kiln.chmod(0o755)
            words = [sys.executable, TOOL, "--kernels", "1", "--kiln", kiln, "--out", name]
            done = subprocess.run(words, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("kiln does not build", done.stderr)
        self.assertIn("error: broken", done.stderr)

    def test_compares_half_of_the_kernels_with_those_of_cpp(self):
        """Here the "engine" is C++ as well, but for one that adds 1 to a sum."""
        compiles = f"g++ -w -std=c++20 -fwrapv -include {ROOT}/tools/host_reference/on_host.h"
        for spoils, differ in ((False, 0), (True, 1)):
            with tempfile.TemporaryDirectory() as name:
                kiln = Path(name) / "kiln"
                edit = "s/out_u\\[i\\] = /out_u[i] = 1 + /" if spoils else ""
                kiln.write_text(
                    "#!/bin/sh\nwhile [ $# -gt 3 ]; do shift; done\n"
                    f'sed \'{edit}\' "$1" > "$3.cc"; exec {compiles} "$3.cc" -o "$3"\n'
                )
                kiln.chmod(0o755)
                given = argparse.Namespace(
                    kiln=kiln, gpu=False, host="all", arch=None, blocks=5, launches=1
                )
                kernel = Kernel(SEED * 1000 + 1, "k0", False, True)
                self.assertIn("out_u[i] =", kernel.text())
                runner = TOOL_MODULE.Runner(given, Path(name), [WAY, HOST])
                found = runner.differences([kernel], "program", [HOST])
                self.assertEqual(len(found), differ, found)
                self.assertTrue(all(each.startswith("C++: out_u") for each in found.values()))

    def test_kernels_of_a_seed_are_always_the_same(self):
        for is_exact in (False, True):
            texts = {Kernel(SEED, "k", is_exact).text() for _ in range(3)}
            self.assertEqual(len(texts), 1)


if __name__ == "__main__":
    unittest.main()
