# SPDX-License-Identifier: Apache-2.0
"""Does kiln.load take files, projects, libraries and torch's arguments, and new code in place of
old?"""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import kiln
import pytest
import torch

pytestmark = pytest.mark.one_in(2)


@pytest.fixture
def x(kiln_device):
    return torch.arange(5, dtype=torch.float32, device=kiln_device)


@pytest.fixture(scope="session")
def plus(command, sources, tmp_path_factory):
    """A built library, and the folder with its source."""
    folder = tmp_path_factory.mktemp("plus")
    shutil.copyfile(sources / "plus.cu", folder / "ready.cu")
    return kiln.load(folder / "ready.cu"), folder


def test_loading_again_without_a_change_gives_the_same_module(plus, x):
    module, folder = plus
    assert kiln.load(folder / "ready.cu") is module
    assert module.reload() is module
    assert torch.equal(module.plus(x), x + 1)


def test_a_module_knows_its_file_and_ops(plus):
    module, _ = plus
    assert module.__name__ == "ready"
    assert module.__file__.endswith(".so")
    assert dir(module) == ["plus", "reload"]
    assert repr(module) == f"<module 'ready' from '{module.__file__}'>"
    with pytest.raises(AttributeError):
        _ = module.nothing


def test_new_code_after_an_edit(command, source, x):
    path = source("plus.cu", "edited.cu")
    module = kiln.load(path)
    held, compiled = module.plus, torch.compile(module.plus, fullgraph=True, backend="aot_eager")
    assert torch.equal(held(x), x + 1)
    assert torch.equal(compiled(x), x + 1)
    source("plus.cu", "edited.cu", **{"STEP 1.0f": "STEP 10.0f", 'x + STEP")': 'ten more")'})
    assert kiln.load(path) is module
    assert torch.equal(module.plus(x), x + 10)
    assert torch.equal(held(x), x + 10)
    assert torch.equal(compiled(x), x + 10)
    assert torch.equal(torch.ops.edited.plus(x), x + 10)
    assert "ten more" in held.__doc__
    torch.library.opcheck(held.default, (x,))
    source("plus.cu", "edited.cu")
    module.reload()
    assert torch.equal(held(x), x + 1)


def test_a_schema_that_changed_is_an_error_and_the_old_code_stays(command, source, x):
    path = source("plus.cu", "reschemed.cu")
    module = kiln.load(path)
    source(
        "plus.cu",
        "reschemed.cu",
        **{'(plus, "x").fake("like(x)")': '(plus, "renamed").fake("like(renamed)")'},
    )
    with pytest.raises(kiln.LoadError, match=r"schema(.|\n)*(name|process)"):
        kiln.load(path)
    assert torch.equal(module.plus(x), x + 1)


def test_a_compile_error_leaves_the_old_code(command, source, x):
    path = source("plus.cu", "broken.cu")
    module = kiln.load(path)
    path.write_text(path.read_text().replace("x(i) + STEP", "x(i) + UNKNOWN_NAME"))
    with pytest.raises(kiln.BuildError) as caught:
        kiln.load(path)
    text = str(caught.value)
    assert text.startswith("error: ")
    assert "broken.cu" in text and "UNKNOWN_NAME" in text
    assert torch.equal(module.plus(x), x + 1)


def test_a_spec_that_does_not_fit_the_signature(command, source):
    path = source("plus.cu", "misfit.cu", **{'KILN_OP(plus, "x")': 'KILN_OP(plus, "x, y")'})
    with pytest.raises(kiln.BuildError, match=r"misfit\.cu"):
        kiln.load(path)


def test_a_rule_that_is_not_valid(command, source):
    path = source("plus.cu", "misruled.cu", **{'"like(x)': '"like(x, x)'})
    with pytest.raises(
        kiln.RuleError, match=r"fake rule of misruled.plus is not valid \(.*misruled\.cu:\d+\)"
    ):
        kiln.load(path)


def test_two_sources_may_not_share_a_namespace(command, source, tmp_path):
    first = source("plus.cu", "shared.cu")
    kiln.load(first)
    (tmp_path / "elsewhere").mkdir()
    second = tmp_path / "elsewhere" / "shared.cu"
    shutil.copyfile(first, second)
    with pytest.raises(kiln.LoadError, match="namespace 'shared' belongs to"):
        kiln.load(second)


def test_arguments_of_torchs_load(command, source, x, tmp_path):
    path = source("plus.cu")
    module = kiln.load(
        name="plus_by_name",
        sources=[str(path)],
        extra_cflags=["-O2"],
        extra_cuda_cflags=["-DSTEP=3.0f"],
        extra_include_paths=[str(tmp_path)],
        build_directory=str(tmp_path / "out"),
        verbose=False,
    )
    assert module.plus is torch.ops.plus_by_name.plus
    assert torch.equal(module.plus(x), x + 3)
    assert any((tmp_path / "out").iterdir())
    assert (
        kiln.load("plus_only", str(path), defines={"STEP": "4.0f"}, is_python_module=False) is None
    )
    assert torch.equal(torch.ops.plus_only.plus(x), x + 4)


def test_relocatable_device_code_is_refused(command, source):
    with pytest.raises(kiln.KilnError, match="relocatable device code"):
        kiln.load(source("plus.cu"), extra_cuda_cflags=["-rdc=true"])


def test_two_variants_of_one_source_live_side_by_side(command, source, x):
    path = source("plus.cu")
    two = kiln.load("plus_two", [path], defines={"STEP": "2.0f"})
    five = kiln.load("plus_five", [path], defines={"STEP": "5.0f"})
    assert torch.equal(two.plus(x), x + 2)
    assert torch.equal(five.plus(x), x + 5)


def test_a_ready_library(plus, python, kiln_device):
    module, _ = plus
    script = f"""
        import kiln, torch
        ready = kiln.load({module.__file__!r})
        x = torch.ones(3, device={kiln_device!r})
        print(ready.plus(x).tolist(), ready.plus is torch.ops.ready.plus)
        torch.library.opcheck(ready.plus.default, (x,))
    """
    assert python(textwrap.dedent(script)).startswith("[2.0, 2.0, 2.0] True")


def test_a_library_that_was_replaced_in_place(command, source, tmp_path, x):
    from kiln.command import build

    path, ready = source("plus.cu"), tmp_path / "libswapped.so"
    for step in ("1.0f", "6.0f"):
        built = build([str(path), "--name", "swapped", f"-DSTEP={step}"])["library"]
        shutil.copyfile(built, tmp_path / "new.so")
        (tmp_path / "new.so").replace(ready)
        module = kiln.load(ready)
        assert torch.equal(module.plus(x), x + float(step[:-1]))


def test_torchs_own_loader_is_enough_for_eager_calls(plus, python, kiln_device):
    module, _ = plus
    script = f"""
        import os, torch, kiln.modules
        kiln.modules.name_engine()
        torch.ops.load_library({module.__file__!r})
        print(torch.ops.ready.plus(torch.ones(2, device={kiln_device!r})).tolist())
    """
    assert python(textwrap.dedent(script)).strip() == "[2.0, 2.0]"


def test_flags_with_a_ready_library_are_refused(plus):
    module, _ = plus
    with pytest.raises(kiln.KilnError, match="is already built"):
        kiln.load(module.__file__, extra_cuda_cflags=["-O3"])


def test_files_that_are_no_op_library(tmp_path):
    with pytest.raises(kiln.LoadError, match="no such file"):
        kiln.load(tmp_path / "nothing.so")
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(kiln.LoadError, match=r"cannot load .*text\.so"):
        kiln.load(text)
    plain = tmp_path / "plain.so"
    subprocess.run(["g++", "-shared", "-x", "c++", "/dev/null", "-o", plain], check=True)
    with pytest.raises(kiln.LoadError, match="it has no symbol kiln_library"):
        kiln.load(plain)


def test_a_library_of_another_cpu(plus, tmp_path):
    module, _ = plus
    data = bytearray(Path(module.__file__).read_bytes())
    data[18] ^= 0xFF  # e_machine
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(data)
    with pytest.raises(kiln.LoadError, match=r"cannot load .*foreign\.so"):
        kiln.load(foreign)


@pytest.mark.long
def test_two_processes_load_one_source_at_once(command, source, tmp_path, kiln_device):
    path = source("plus.cu", "raced.cu")
    script = f"""
        import sys; sys.path.insert(0, {str(command.parents[2])!r})
        import kiln, torch
        print(kiln.load({str(path)!r}).plus(torch.ones(2, device={kiln_device!r})).tolist())
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert (process.returncode, out.strip()) == (0, "[2.0, 2.0]"), err


INLINE = """
__global__ void k(kiln::View<const float, 1> a, float by, kiln::View<float, 1> out) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = a(i) * by;
}
kiln::Tensor times(const kiln::Tensor& a, double by = 2.0) {
  kiln::Tensor out = kiln::empty_like(a);
  k<<<kiln::blocks_for(a.numel(), 64), 64, 0, kiln::stream(a)>>>(a.flat<const float>(), by,
                                                                 out.flat<float>());
  return out;
}
"""


def test_load_inline(command, x):
    declaration = "kiln::Tensor times(const kiln::Tensor& a, double by);"
    source = INLINE.replace(" = 2.0", "")
    module = kiln.load_inline("inlined", declaration, source, {"times": "a * by"})
    assert torch.equal(module.times(x, by=3.0), x * 3)
    assert "a * by" in module.times.__doc__
    assert (
        kiln.load_inline("inlined", "", source.replace("a(i) * by", "a(i) - by"), "times") is module
    )
    assert torch.equal(module.times(x, 1.0), x - 1)


def test_load_inline_keeps_defaults(command, x):
    assert torch.equal(
        kiln.load_inline("inline_default", INLINE, functions=["times"]).times(x), x * 2
    )


def test_load_inline_tells_the_line_of_the_string(command):
    with pytest.raises(kiln.BuildError, match=r"inline_broken\.cuda_sources[:(]3"):
        kiln.load_inline("inline_broken", "", "int f();\n\nint g() { return undefined_name; }")


def test_a_project_folder(command, source, tmp_path, x):
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copyfile(source("plus.cu"), folder / "plus.cu")
    (folder / "kiln.toml").write_text('name = "projected"\nsources = ["plus.cu"]\n')
    module = kiln.load(folder)
    assert module.__name__ == "projected"
    assert torch.equal(module.plus(x), x + 1)
