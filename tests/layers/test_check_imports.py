# SPDX-License-Identifier: Apache-2.0
"""Does the check of imports see cycles and private names, in a package made for it?"""

import tempfile
import unittest
from pathlib import Path

from check_imports import violations

FILES = {
    "python/kiln/__init__.py": "from .errors import KilnError\n\n__path__\n",
    "python/kiln/errors.py": "class KilnError(Exception): ...\n\n\n_seen = []\n_seen.append(1)\n",
    "python/kiln/op.py": "from . import _torch\nfrom ._torch import torch\n\n_torch.torch\n",
    "python/kiln/_torch.py": "import torch\n\nfrom .errors import KilnError\n\ntorch._C\n",
    "python/kiln/_checks/__init__.py": "",
    "python/kiln/_checks/call.py": "from ..op import Op\nfrom .reference import expected\n",
    "python/kiln/_checks/reference.py": "from .._torch import torch\n",
    "tests/python/test_op.py": "import kiln\nfrom kiln._checks import call\n\nkiln.load\n"
    "call.Call\n",
}


class CheckImports(unittest.TestCase):
    def found(self, files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in (FILES | files).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return violations(root)

    def only(self, files: dict[str, str]) -> str:
        found = self.found(files)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_accepts_imports_in_one_direction(self):
        self.assertEqual(self.found({}), [])

    def test_refuses_a_cycle(self):
        self.assertEqual(
            self.only({"python/kiln/errors.py": "from .op import Op\n"}),
            "a cycle of imports: kiln._torch -> kiln.errors -> kiln.op -> kiln._torch",
        )

    def test_refuses_a_cycle_that_a_function_or_a_type_checker_hides(self):
        inside = "def f():\n    from . import op\n"
        self.assertIn("kiln.errors -> kiln.op", self.only({"python/kiln/errors.py": inside}))
        types = "if TYPE_CHECKING:\n    import kiln.op\n"
        self.assertIn("kiln.errors -> kiln.op", self.only({"python/kiln/errors.py": types}))

    def test_refuses_a_cycle_through_a_folder(self):
        self.assertEqual(
            self.only({"python/kiln/_checks/reference.py": "from . import call\n"}),
            "a cycle of imports: kiln._checks.call -> kiln._checks.reference -> kiln._checks.call",
        )
        self.assertIn(
            "kiln._checks.call -> kiln.op -> kiln._checks.call",
            self.only({"python/kiln/op.py": "from ._checks.call import Call\n"}),
        )

    def test_reports_each_cycle_once(self):
        found = self.found(
            {
                "python/kiln/errors.py": "from .op import Op\n",
                "python/kiln/_checks/reference.py": "from .call import Call\n",
            }
        )
        self.assertEqual(len(found), 2, found)

    def test_refuses_a_private_name_that_is_imported(self):
        self.assertEqual(
            self.only(
                {"python/kiln/place.py": "import os\nfrom .errors import KilnError, _seen\n"}
            ),
            "python/kiln/place.py:2: imports _seen, which is private to kiln.errors",
        )
        self.assertIn(
            "private to kiln.op",
            self.only({"python/kiln/_checks/shape.py": "from ..op import _shape as shape\n"}),
        )

    def test_refuses_a_private_attribute_of_a_module(self):
        for text in (
            "from . import errors\nerrors._seen\n",
            "from . import errors as e\ne._seen\n",
            "import kiln.errors\nkiln.errors._seen\n",
            "import kiln\nkiln.errors._seen\n",
            "def f():\n    import kiln.errors as e\n    e._seen\n",
        ):
            found = self.only({"python/kiln/place.py": text})
            self.assertIn("uses _seen, which is private to kiln.errors", found)

    def test_refuses_both_outside_of_the_package(self):
        self.assertIn("private to kiln.op", self.only({"tests/a.py": "from kiln.op import _a\n"}))
        script = "#!/usr/bin/env python3\nimport kiln\nkiln._LAZY\n"
        self.assertIn("tools/see:3: uses _LAZY", self.only({"tools/see": script}))

    def test_leaves_private_members_of_objects_alone(self):
        self.assertEqual(self.found({"python/kiln/place.py": "self._a\noverload._schema\n"}), [])

    def test_refuses_a_tree_without_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(violations(Path(folder)), ["python/kiln has no modules"])


if __name__ == "__main__":
    unittest.main()
