# SPDX-License-Identifier: Apache-2.0
"""Does an edit of a kernel's body reach everyone who looks: a running process, a call, readers of
the library?"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")

SOURCE = """
#include <kiln/op.h>
__global__ void squares(float* out, int n) { out[0] = 1; }
kiln::Tensor f(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  squares<<<1, 1, 0, kiln::stream(a)>>>(out.data<float>(), static_cast<int>(out.numel()));
  return out;
}
KILN_OP(f, "a").fake("like(a)");
"""


def test_an_edit_that_grows_is_seen_by_a_process_and_by_readers(
    command: Path, tmp_path: Path
) -> None:
    import kiln
    import torch

    source = tmp_path / "squares.cu"
    source.write_text(SOURCE)

    def built() -> dict:
        done = subprocess.run(
            [command, "build", source, "--json"], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def stores() -> int:
        line = [command, "inspect", built()["library"], "--ptx"]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout.count(
            "st.global"
        )

    zeros = torch.zeros(9, device=kiln.device())
    module = kiln.load(source)
    assert module.f(zeros)[0].item() == 1 and stores() == 1
    for number, lane in ((3, "device"), (4, "slice")):
        # More code than was linked: it finds no room in its place.
        body = "".join(f"out[{i}] = {i * i + number} * (n == 9);" for i in range(9))
        source.write_text(SOURCE.replace("out[0] = 1;", body))
        assert built()["lane"] == lane
        module.reload()
        assert module.f(zeros).tolist() == [i * i + number for i in range(9)]
        assert stores() == 9
    source.write_text(SOURCE)
    module.reload()
    assert module.f(zeros)[0].item() == 1 and stores() == 1


def test_a_comment_after_a_slice_compiles_nothing(command: Path, tmp_path: Path) -> None:
    """What NVRTC compiled is in no object file: the full lane would have to compile it anew."""
    source = tmp_path / "commented.cu"

    def built(comment: str, value: int) -> dict:
        text = SOURCE.replace("out[0] = 1;", f"out[0] = {value};  // {comment}\n")
        source.write_text(f"// {comment}\n{text}")
        done = subprocess.run(
            [command, "build", source, "--json"], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def code_of(told: dict) -> str:
        line = [command, "inspect", told["library"], "--ptx"]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout

    assert built("one", 1)["lane"] == "full"
    assert built("two", 1)["lane"] == "none"
    assert built("two", 2)["lane"] == "device"
    sliced = built("two", 3)
    code = code_of(sliced)
    assert sliced["lane"] == "slice"
    commented = built("another comment", 3)
    assert commented["lane"] == "none" and not commented["steps"] and code_of(commented) == code
    edited = built("one comment more", 4)
    assert edited["lane"] == "slice" and code_of(edited) != code


QUIET = """
__global__ void first(int* out) { out[0] = __LINE__; }
extern "C" __attribute__((visibility("default"))) int value() { return 1; }
"""


def test_an_added_comment_line_compiles_device_code_alone(command: Path, tmp_path: Path) -> None:
    """Above and inside of a kernel, where nothing of the host tells its line; the kernel's line is
    the new one."""
    source = tmp_path / "quiet.cu"

    def built(text: str) -> tuple[str, str]:
        source.write_text(text)
        done = subprocess.run(
            [command, "build", source, "--json"], capture_output=True, text=True, check=True
        )
        told = json.loads(done.stdout)
        line = [command, "inspect", told["library"], "--ptx"]
        return told["lane"], subprocess.run(line, capture_output=True, text=True, check=True).stdout

    assert built(QUIET)[0] == "full"
    lane, ptx = built("// a line\n" + QUIET)
    assert lane == "device" and "%r1, 3;" in ptx
    lane, ptx = built("// a line\n// another\n" + QUIET.replace("{ out", "{\n  // inside\n  out"))
    assert lane in ("device", "slice") and "%r1, 6;" in ptx
