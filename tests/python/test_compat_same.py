# SPDX-License-Identifier: Apache-2.0
"""Do the patched functions take arguments as torch's own do? Both are called with the same ones;
torch's up to the ninja file that it writes, whose lines a shell splits."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import kiln
import pytest
from torch.utils import cpp_extension

SOURCE = """#include <torch/extension.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.attr("value") = VALUE; }
"""
FLAGS = [
    ["-O3 "],
    ["-DA=1 -DB=2"],
    ['-DV=\\"x\\"'],
    ["", "-DC"],
    ["'-DWORDS=a b'"],
    ["-Xcompiler -Wall", "--generate-line-info -g"],
]


@pytest.fixture
def torchs_words(monkeypatch, tmp_path):
    """Calls torch's load; the words of a line of its ninja file, as a shell splits it."""
    text = []
    monkeypatch.setattr(
        cpp_extension,
        "_run_ninja_build",
        lambda folder, *_, **__: text.append((Path(folder) / "build.ninja").read_text()),
    )
    monkeypatch.setattr(cpp_extension, "_import_module_from_library", lambda *_, **__: "loaded")
    monkeypatch.setattr(cpp_extension, "verify_ninja_availability", lambda: None)

    def run(line: str, *args, **kwargs) -> list[str]:
        source = tmp_path / ("words.cu" if line == "cuda_post_cflags" else "words.cpp")
        source.write_text(SOURCE)
        cpp_extension.load("words", [str(source)], *args, build_directory=str(tmp_path), **kwargs)
        found = re.search(rf"^(?:{line}) =(.*)$", text[-1], re.MULTILINE)
        assert found, text[-1]
        return shlex.split(found[1])

    return run


@pytest.mark.parametrize("flags", FLAGS)
def test_flags_are_the_words_of_a_shell_line(torchs_words, flags):
    from kiln._flags import build_flags

    torchs = torchs_words("post_cflags|cflags", extra_cflags=flags)
    ours = [
        flag.partition("=")[2] for flag in build_flags(flags, None, None, None, None, None, None)
    ]
    assert ours == torchs[len(torchs) - len(ours) :], (ours, torchs)


def test_positional_arguments_are_in_the_order_of_the_torch_in_use():
    import inspect

    seen: dict[str, object] = {}

    def record(**kwargs):
        seen.update(kwargs)

    from kiln.patching import called_as

    names = list(inspect.signature(cpp_extension.load).parameters)
    called_as(cpp_extension.load, record)(*[f"given_{name}" for name in names])
    assert seen == {name: f"given_{name}" for name in names}
    called_as(cpp_extension.load, record)("a-b.c", ["x.cpp"], arch="9.0")
    assert seen["name"] == "a_b_c" and seen["arch"] == "9.0"


def test_a_loaded_module_does_not_take_the_name_of_another(command, tmp_path):
    path = tmp_path / "json.cpp"
    path.write_text(SOURCE)
    import json

    module = kiln.load("json", [path], extra_cflags=["-DVALUE=7 -DOTHER"])
    assert module.value == 7 and sys.modules["json"] is json
    kiln.load("own_name_ext", [path], extra_cflags=["-DVALUE=7"])
    assert "own_name_ext" not in sys.modules


def test_patched_functions(command, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    kiln.patch_torch()
    try:
        # Without one of torch's names: torch's load_inline adds its header.
        module = cpp_extension.load_inline(
            "plain_inline", "double half(double x) { return x / 2; }", functions=["half"]
        )
        assert module.half(3.0) == 1.5
        assert any((tmp_path / "extensions" / "plain_inline").iterdir())
    finally:
        kiln.patch_torch(undo=True)
    assert cpp_extension.load.__module__ == "torch.utils.cpp_extension"


def test_functions_declared_extern_c_are_visible(command, tmp_path):
    import ctypes

    path = tmp_path / "visible.cpp"
    path.write_text(SOURCE + 'extern "C" int forty_two() { return 42; }\n')
    module = kiln.load("visible_ext", [path], extra_cflags=["-DVALUE=1"])
    assert ctypes.CDLL(module.__file__).forty_two() == 42
