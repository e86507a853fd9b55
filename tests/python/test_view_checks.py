# SPDX-License-Identifier: Apache-2.0
"""Are indices of kiln::View checked in what a user builds, whatever the way: build, call, load,
edit, any architecture?

x(row, column + 1) at the end of a row reads the next row: the address is inside of the tensor, so
only the index tells.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import kiln
import pytest
import torch

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")
ENGINE = {"KILN_DEVICE": "engine"}
MARK = "// the line of `shift`"


def run(command: Path, *words: object, code: int = 0, cwd: Path | None = None) -> str:
    """Both streams."""
    line = [str(command), *map(str, words)]
    done = subprocess.run(
        line, capture_output=True, text=True, cwd=cwd, env={**os.environ, **ENGINE}
    )
    assert done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def build(command: Path, source: Path, *words: object) -> dict:
    return json.loads(run(command, "build", source, "--json", *words))


def checks_in(command: Path, library: Path | str) -> int:
    return run(command, "inspect", library, "--ptx").count("setp.ge.u64 kiln_bounds_")


def line_of_shift(source: Path) -> int:
    return next(i for i, line in enumerate(source.read_text().splitlines(), 1) if MARK in line)


def check_message(
    text: str, source: Path, index: str = "index 4 of 4 in dimension 1 of tensor 'x'"
) -> None:
    assert f"Index out of bounds: {index}\n" in text, text
    assert re.search(
        rf"at shift_kernel\(.*\) in \S*{source.name}:{line_of_shift(source)}\n", text
    ), text
    assert re.search(r"by thread \(\d+,0,0\) in block \(\d+,0,0\)", text), text


@pytest.mark.parametrize("arch", ["", "9.0a"])
def test_a_built_library_and_a_call_of_it(command, source, arch):
    path = source("views.cu", f"views_{re.sub('[^0-9a]', '_', arch)}.cu")
    library = build(command, path, *(["--arch", arch] if arch else []))["library"]
    assert checks_in(command, library) > 0
    assert "result: f32 3x4" in run(command, "call", library, "shift", "arange:f32:3x4")
    check_message(run(command, "call", library, "shift", "arange:f32:3x4", "1", code=1), path)
    assert "index -1 of 4" in run(command, "call", library, "shift", "arange:f32:3x4", "-1", code=1)


def test_a_call_of_a_source(command, source):
    path = source("views.cu")
    check_message(run(command, "call", path, "shift", "arange:f32:3x4", "by=1", code=1), path)


@pytest.fixture(scope="module")
def views(command, sources):
    return kiln.load(sources / "views.cu")


def raised(call, *args) -> str:
    with pytest.raises(RuntimeError) as error:
        call(*args)
    return str(error.value)


def test_a_loaded_op(views, sources):
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(views.shift(x, 0), x * 2)
    check_message(raised(views.shift, x, 1), sources / "views.cu")
    check_message(
        raised(views.shift, x, -2),
        sources / "views.cu",
        "index -2 of 4 in dimension 1 of tensor 'x'",
    )


def test_strides_do_not_change_what_an_index_is(views):
    x = torch.arange(24.0).reshape(4, 6)
    assert torch.equal(views.shift(x.t(), 0), x.t() * 2)
    assert torch.equal(views.shift(x[:, ::2], 0), x[:, ::2] * 2)
    assert "index 4 of 4 in dimension 1 of tensor 'x'" in raised(views.shift, x.t(), 1)
    assert "index 3 of 3 in dimension 1 of tensor 'x'" in raised(views.shift, x[:, ::2], 1)


def test_tensors_that_are_written(views):
    x = torch.zeros(8)
    views.put_(x, 4)
    assert x.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert "index 8 of 8 in dimension 0 of tensor 'target'\n" in raised(views.put_, x, 5)
    assert "index 8 of 8 in dimension 0 of a tensor made by the op\n" in raised(views.made, x, 5)


def test_every_dimension(views):
    x = torch.arange(2 * 3 * 4 * 5 * 6.0).reshape(2, 3, 4, 5, 6)
    assert torch.equal(views.sums(x), x.sum(-1).flatten())
    for of, size in enumerate(x.shape):
        assert f"index {size} of {size} in dimension {of} of tensor 'x'\n" in raised(
            views.sums, x, of, 1
        )
        assert f"index -1 of {size} in dimension {of} of tensor 'x'\n" in raised(
            views.sums, x, of, -1
        )


def test_views_that_a_kernel_makes(views):
    x = torch.arange(100.0)
    for which, value in ((0, 7.0), (1, 7.0), (2, 3.0)):
        assert views.by_hand(x, which, 7).item() == value
    assert "index 100 of 100 in dimension 0 of tensor 'x'\n" in raised(views.by_hand, x, 0, 100)
    assert "index 8 of 8 in dimension 0 of a View of shared memory\n" in raised(
        views.by_hand, x, 1, 8
    )
    assert "index -1 of 16 in dimension 0 of " in raised(views.by_hand, x, 2, -1)


def test_an_empty_tensor(views):
    assert "index 0 of 0 in dimension 0 of " in raised(views.put_, torch.zeros(0), 0)


def test_load_inline(command, sources):
    text = (sources / "views.cu").read_text()
    module = kiln.load_inline("views_inline", cpp_sources="", cuda_sources=text)
    assert "index 4 of 4 in dimension 1 of tensor 'x'" in raised(module.shift, torch.zeros(3, 4), 1)


def test_the_edit_lane(command, source):
    path = source("views.cu", "edited.cu")
    text = path.read_text().partition("// Writes to")[
        0
    ]  # the first op: NVRTC compiles the others differently
    lanes = []
    for factor in (2, 3, 4):
        path.write_text(text.replace("* 2.0f", f"* {factor}.0f"))
        built = build(command, path)
        lanes.append(built["lane"])
        shown = run(command, "call", built["library"], "shift", "ones:f32:3x4")
        assert f"min {factor}  max {factor}" in shown
        assert checks_in(command, built["library"]) > 0
        check_message(
            run(command, "call", built["library"], "shift", "ones:f32:3x4", "1", code=1), path
        )
    assert lanes == ["full", "device", "slice"]


@pytest.mark.long
def test_checks_can_be_left_out(command, source, tmp_path):
    path = source("views.cu", "unchecked.cu")
    library = build(command, path, "-D", "KILN_NO_CHECKS")["library"]
    assert checks_in(command, library) == 0
    text = run(command, "call", library, "shift", "arange:f32:3x4", "1", code=1)
    assert "Invalid __global__ read" in text and "Index" not in text, (
        "the last row ends with the tensor"
    )
    assert checks_in(command, build(command, path)["library"]) > 0, (
        "the define belongs to what is built"
    )

    project = tmp_path / "project"
    project.mkdir()
    shutil.copyfile(path, project / "views.cu")
    manifest = (
        'name = "unchecked_project"\nsources = ["views.cu"]\ndefines = { KILN_NO_CHECKS = true }\n'
    )
    (project / "kiln.toml").write_text(manifest)
    assert checks_in(command, build(command, project)["library"]) == 0

    x = torch.zeros(3, 4)
    for name, words in (
        ("unchecked_define", {"defines": {"KILN_NO_CHECKS": 1}}),
        ("unchecked_flag", {"extra_cuda_cflags": ["-DKILN_NO_CHECKS"]}),
    ):
        assert "Invalid __global__ read" in raised(
            kiln.load(name, [str(path)], **words).shift, x, 1
        )
