# SPDX-License-Identifier: Apache-2.0
"""What does an editor get? Compile commands that clang accepts, errors at their lines in VS Code,
stubs of loaded modules."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import typing

import pytest

import kiln

SOURCE = """#include <kiln/half.h>
#include <kiln/op.h>

template <class T>
__global__ void twice_kernel(kiln::View<const T, 1> x, kiln::View<T, 1> out) {
  __shared__ float last[32];
  int64_t i = kiln::global_thread();
  last[threadIdx.x % 32] = __shfl_down_sync(0xffffffffu, 1.0f, 1) + __expf(0.0f);
  __syncthreads();
  if (i < out.size(0)) out(i) = x(i) + x(i);
}

kiln::Tensor twice(const kiln::Tensor& x, kiln::Optional<kiln::Tensor> bias, int64_t n) {
  kiln::Tensor out = kiln::empty_like(x);
  twice_kernel<float><<<1, 32, 0, kiln::stream(x)>>>(x.flat<const float>(), out.flat<float>());
  return out;
}
KILN_OP(twice, "x, bias=None, *, n=1").fake("like(x)");

kiln::Tensors<2> pair(kiln::TensorList xs, kiln::Span<const double> weights, kiln::Dtype dtype) {
  return {kiln::empty_like(xs[0]), kiln::empty_like(xs[0])};
}
KILN_OP(pair, "xs, weights, dtype").fake("like(xs[0]), like(xs[0])");
"""


def run(command, *words, cwd):
    return subprocess.run(
        [str(command), *words], cwd=cwd, capture_output=True, text=True, timeout=300
    )


def commands_in(folder):
    return json.loads((folder / "compile_commands.json").read_text())


@pytest.mark.long
def test_compile_commands_are_what_clang_accepts(command, tmp_path):
    (tmp_path / "twice.cu").write_text(SOURCE)
    (tmp_path / "more.cu").write_text(SOURCE.replace("twice", "more"))
    for name in ("twice.cu", "more.cu", "twice.cu"):
        done = run(command, "build", name, "--arch", "8.0", "--compile-commands", cwd=tmp_path)
        assert done.returncode == 0 and "wrote compile_commands.json" in done.stderr, done.stderr
    entries = commands_in(tmp_path)
    assert sorted(os.path.basename(entry["file"]) for entry in entries) == ["more.cu", "twice.cu"]
    clang = shutil.which("clang++")
    if clang is None:
        pytest.skip("no clang++ to try them with")
    for entry in entries:
        words = [clang, *entry["arguments"][1:], "-fsyntax-only"]
        for side in ("--cuda-host-only", "--cuda-device-only"):
            tried = subprocess.run(
                [*words, side], cwd=entry["directory"], capture_output=True, text=True, timeout=300
            )
            assert tried.returncode == 0, tried.stderr


def test_compile_commands_of_others_are_kept_and_nonsense_is_refused(command, tmp_path):
    (tmp_path / "twice.cu").write_text(SOURCE)
    path = tmp_path / "compile_commands.json"
    other = {"directory": "/w", "file": "/w/other.cpp", "arguments": ["c++", "other.cpp"]}
    path.write_text(json.dumps([other]))
    run(command, "build", "twice.cu", "--compile-commands", cwd=tmp_path)
    assert other in commands_in(tmp_path) and len(commands_in(tmp_path)) == 2
    path.write_text('{"not": "a list"}')
    done = run(command, "build", "twice.cu", "--compile-commands", cwd=tmp_path)
    assert done.returncode == 2 and "it is not a list of commands" in done.stderr
    assert path.read_text() == '{"not": "a list"}'


def test_the_problem_matcher_of_a_scaffold_matches_what_is_printed(command, tmp_path):
    assert run(command, "new", "scale", cwd=tmp_path).returncode == 0
    folder = tmp_path / "scale"
    tasks = json.loads((folder / ".vscode" / "tasks.json").read_text())["tasks"]
    matchers = next(task for task in tasks if task["label"] == "kiln build")["problemMatcher"]
    source = folder / "scale.cu"
    text = source.read_text()
    for broken in (
        text.replace("KILN_OP(scale,", "KILN_OP(scal,"),
        text.replace("out(i) =", "out(j) ="),
    ):
        assert broken != text
        source.write_text(broken)
        done = run(command, "build", cwd=folder)
        assert done.returncode == 1
        found = [
            match
            for line in done.stderr.splitlines()
            for matcher in matchers
            if (match := re.match(matcher["pattern"]["regexp"], line))
        ]
        assert found, done.stderr
        for match in found:
            assert match[1] == "scale.cu" and "error" in match.groups()
            assert int(match[2]) <= len(text.splitlines())


@pytest.fixture(scope="module")
def module(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stubs")
    (folder / "doubled.cu").write_text(SOURCE)
    return kiln.load(folder / "doubled.cu")


def test_a_stub_has_the_signatures(module, tmp_path):
    text = kiln.stubs(module, tmp_path / "doubled.pyi")
    assert (tmp_path / "doubled.pyi").read_text() == text
    tree = ast.parse(text)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    names = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert names == {"twice", "pair"} and set(classes) == {"_Twice", "_Pair"}
    scope: dict = {}
    exec(compile(tree, "doubled.pyi", "exec"), scope)  # every name in it exists
    import torch

    hints = typing.get_type_hints(scope["_Twice"].__call__)
    assert hints["x"] is torch.Tensor and hints["return"] is torch.Tensor
    assert hints["bias"] == typing.Optional[torch.Tensor] and hints["n"] is int
    hints = typing.get_type_hints(scope["_Pair"].__call__)
    assert hints["xs"] == typing.Sequence[torch.Tensor]
    assert hints["weights"] == typing.Sequence[float] and hints["dtype"] is torch.dtype
    assert hints["return"] == tuple[torch.Tensor, torch.Tensor]


def test_a_stub_from_the_shell(python, tmp_path):
    (tmp_path / "doubled.cu").write_text(SOURCE)
    python("import kiln.stub_files as s; s.main(['doubled.cu', '-o', 'doubled.pyi'])")
    assert "twice: _Twice" in (tmp_path / "doubled.pyi").read_text()


def test_a_module_without_ops_has_no_stub():
    with pytest.raises(kiln.KilnError, match="it has no ops of kiln's own"):
        kiln.stubs(ast)
