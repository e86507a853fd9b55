# SPDX-License-Identifier: Apache-2.0
"""What do the cells of a notebook show? notebook_run.py CELLS.json OUTPUTS.json"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> int:
    import nbclient
    import nbformat

    cells = json.loads(Path(sys.argv[1]).read_text())
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(
        notebook, timeout=600, allow_errors=True, kernel_name="python3", resources={}
    ).execute()
    Path(sys.argv[2]).write_text(json.dumps([cell.outputs for cell in notebook.cells]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
