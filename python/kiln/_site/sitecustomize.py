# SPDX-License-Identifier: Apache-2.0
"""What runs first in a Python that the command starts with KILN_TRITON=1? This file, and then the
sitecustomize that would have run without it. An installed kiln has a .pth file instead.
"""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

from kiln._triton.startup import install

install()
sys.path[:] = [one for one in sys.path if Path(one) != Path(__file__).parent]
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if _spec is not None and _spec.loader is not None:
    _spec.loader.exec_module(importlib.util.module_from_spec(_spec))
