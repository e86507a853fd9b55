# SPDX-License-Identifier: Apache-2.0
"""Do %kiln and %%kiln work in a notebook? One is executed in a kernel of its own; the tests read
what its cells show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build" / "notebook-tools"
STAGE = Path(os.environ.get("KILN_STAGE_DIR") or ROOT / "build" / "release" / "stage").resolve()

OPS = """%%kiln
template <class T>
__global__ void twice_kernel(kiln::View<const T, 1> x, kiln::View<T, 1> y) {
  const int64_t i = kiln::global_thread();
  if (i < y.size(0)) y(i) = 2 * x(i);
}

kiln::Tensor twice(const kiln::Tensor& x) {
  kiln::Tensor y = kiln::empty_like(x);
  twice_kernel<float><<<kiln::blocks_for(x.numel(), 128), 128>>>(x.flat<const float>(),
                                                                 y.flat<float>());
  return y;
}
KILN_OP(twice, "x").fake("like(x)");
"""
OFF_BY_ONE = OPS.replace("i < y.size(0)", "i <= y.size(0)").replace("twice", "over")
PROGRAM = """%%kiln run -- seven
#include <cstdio>
#include "beside.h"
int main(int, char** words) { std::printf("%d %s\\n", kBeside, words[1]); }
"""

CELLS = {
    "setup": "%load_ext kiln\nimport torch, kiln",
    "ops": OPS,
    "call": "x = torch.arange(5.0, device=kiln.device())\nprint([op(x).tolist() for op in (twice, "
            "torch.ops.cell_twice.twice)])",
    "again": OPS,
    "syntax": OPS.replace("2 * x(i)", "2 * z(i)"),
    "still": "print(twice(x).tolist())",
    "no op": "%%kiln\n__global__ void k() {}",
    "main": '%%kiln\nint main() { return 0; }',
    "program": PROGRAM,
    "exit code": "%%kiln run\nint main() { return 7; }",
    "over": OFF_BY_ONE,
    "sanitize": "%kiln sanitize over randn:f32:100",
    "finding": "found = %kiln sanitize over randn:f32:100\nprint(found.code, found.text)",
    "inspect": "%kiln inspect twice",
    "inspect text": "%kiln inspect --json",
    "tensor": "%kiln call twice x --print 5",
    "unknown": "%kiln sanitise twice x",
    "bad argument": "%kiln bench twice nonsense",
    "quote": '%kiln call "twice',
    "defined": OPS.replace("%%kiln", "%%kiln -D TIMES=3").replace("2 * x(i)", "TIMES * x(i)")
               .replace("twice", "times"),
    "defined again": "%kiln call times x --print 5 -D TIMES=7",
}  # fmt: skip


@pytest.fixture(scope="module")
def outputs(command, tmp_path_factory) -> dict[str, list]:
    """What each cell showed."""
    if not (TOOLS / "nbclient").is_dir():
        pytest.skip(f"{TOOLS} has no nbclient; `tools/bootstrap test` installs it")
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "beside.h").write_text("constexpr int kBeside = 7;\n")
    return execute(CELLS, folder)


def execute(cells: dict[str, str], folder: Path) -> dict[str, list]:
    """In a process of its own, so that the tools of notebooks stay out of this one."""
    import json

    (folder / "cells.json").write_text(json.dumps(list(cells.values())))
    environment = {
        **os.environ,
        "PYTHONPATH": f"{STAGE}:{TOOLS}",
        "JUPYTER_PATH": str(TOOLS / "share" / "jupyter"),
        "JUPYTER_PLATFORM_DIRS": "1",
    }
    environment.pop("KILN_BIN", None)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "notebook_run.py"), "cells.json", "out.json"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return dict(zip(cells, json.loads((folder / "out.json").read_text())))


def cells_of_the_guide() -> dict[str, str]:
    """The cells of docs/guide/notebook.md as they are written, by their first line. Before the
    commands, the tensor that they name."""
    page = (ROOT / "docs/guide/notebook.md").read_text()
    cells = []
    for language, body in re.findall(r"^```(\w+)\n((?:.*\n)*?)```", page, re.MULTILINE):
        if language == "python" or body.startswith("%%kiln"):
            cells.append(body)
        elif body.startswith("%kiln"):
            lines = [line.split("  #")[0] for line in body.splitlines()]
            cells += ["x = torch.arange(64.0)", *lines]
    return {cell.partition("\n")[0] + f" ({number})": cell for number, cell in enumerate(cells)}


@pytest.mark.long
def test_the_cells_of_the_guide_run(command, tmp_path):
    if not (TOOLS / "nbclient").is_dir():
        pytest.skip(f"{TOOLS} has no nbclient; `tools/bootstrap test` installs it")
    (tmp_path / "train.py").write_text("import torch\ntorch.ones(4).sum()\n")
    cells = cells_of_the_guide()
    assert len(cells) == 10
    wrong = {name: text_of(shown) for name, shown in execute(cells, tmp_path).items()
             if failed(shown)}  # fmt: skip
    assert not wrong


def text_of(shown: list) -> str:
    """Streams, results as text, errors."""
    parts = []
    for one in shown:
        parts.append(one.get("text") or one.get("data", {}).get("text/plain") or "")
        parts += one.get("traceback", [])
    return "\n".join(map("".join, parts))


def html_of(shown: list) -> str:
    pages = ["".join(one.get("data", {}).get("text/html", "")) for one in shown]
    return next((page for page in pages if "<iframe" in page), "")


def failed(shown: list) -> bool:
    return any(one["output_type"] == "error" for one in shown)


def test_ops_of_a_cell_are_there(outputs):
    assert text_of(outputs["ops"]).startswith("twice: built in ")
    assert text_of(outputs["call"]).count("[0.0, 2.0, 4.0, 6.0, 8.0]") == 2


def test_an_unchanged_cell_is_up_to_date(outputs):
    # A build of kiln beside the tests replaces the runtime and the headers that the cell was built
    # with; the cell is then rebuilt, and says which step it was.
    assert re.fullmatch(r"twice: up to date, \d+ ms", text_of(outputs["again"]).strip())


def test_a_mistake_is_shown_at_its_line_of_the_cell(outputs):
    told = text_of(outputs["syntax"])
    assert failed(outputs["syntax"])
    assert 'line 5 of this cell: error: identifier "z" is undefined' in told
    assert "Traceback" not in told and "/notebook/" not in told


def test_the_ops_of_the_last_build_stay(outputs):
    assert text_of(outputs["still"]).strip() == "[0.0, 2.0, 4.0, 6.0, 8.0]"


def test_a_cell_without_ops_says_what_it_lacks(outputs):
    assert "no KILN_OP registers a function" in text_of(outputs["no op"])
    assert "%%kiln run builds and runs it" in text_of(outputs["main"])


def test_a_program_runs_with_its_arguments_and_headers_beside_the_notebook(outputs):
    assert text_of(outputs["program"]).strip() == "7 seven"


def test_the_exit_code_of_a_program_is_an_error(outputs):
    assert failed(outputs["exit code"])
    assert "kiln run ended with exit code 7" in text_of(outputs["exit code"])


def test_a_finding_is_a_page_and_no_error(outputs):
    assert not failed(outputs["sanitize"])
    page, text = html_of(outputs["sanitize"]), text_of(outputs["sanitize"])
    assert "index-out-of-bounds" in page and "over.cu:5" in text
    assert "/notebook/" not in page + text


def test_a_result_can_be_kept(outputs):
    assert text_of(outputs["finding"]).startswith("1 ")


def test_a_command_takes_the_cell_of_its_op_or_the_last(outputs):
    assert "twice_kernel" in html_of(outputs["inspect"])
    assert "over_kernel" in text_of(outputs["inspect text"])
    assert not html_of(outputs["inspect text"])


def test_a_tensor_of_the_notebook_is_an_argument(outputs):
    assert "[0 2 4 6 8]" in text_of(outputs["tensor"])


def test_a_define_of_the_line_replaces_that_of_the_cell(outputs):
    told = text_of(outputs["defined again"])
    assert "[0 7 14 21 28]" in told and "redefined" not in told
    # stderr is red in a notebook, and a build is no mistake.
    assert not [one for one in outputs["defined again"] if one.get("name") == "stderr"]


def test_mistakes_of_a_line_are_told_without_a_traceback(outputs):
    assert "kiln has no command 'sanitise'" in text_of(outputs["unknown"])
    assert "fix: %kiln sanitize" in text_of(outputs["unknown"])
    assert "nonsense" in text_of(outputs["bad argument"])
    assert "close every quote" in text_of(outputs["quote"])
    assert "\\x1b" not in text_of(outputs["unknown"]), "a kernel asks its children for colours"
    for name in ("unknown", "bad argument", "quote"):
        assert failed(outputs[name]) and "Traceback" not in text_of(outputs[name])
