# SPDX-License-Identifier: Apache-2.0
"""Is the command found where it should be, refused when it does not fit, and are its faults told
whole?

The command is a script here: what is tested is how the package reads it.
"""

from __future__ import annotations

import json

import kiln
import pytest
from kiln import command


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """scripted(answer, code, log): KILN_BIN prints `answer`; returns the path where it leaves its
    arguments."""

    def make(answer, code=0, log="", version=kiln.__version__):
        text = answer if isinstance(answer, str) else json.dumps(answer)
        (tmp_path / "answer").write_text(text)
        (tmp_path / "log").write_text(log)
        script = tmp_path / "kiln"
        script.write_text(
            "#!/bin/sh\n"
            f'if [ "$1" = --version ]; then echo "kiln {version}"; exit 0; fi\n'
            f'printf "%s\\n" "$@" > {tmp_path}/arguments\n'
            f"cat {tmp_path}/answer; cat {tmp_path}/log >&2; exit {code}\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("KILN_BIN", str(script))
        return tmp_path / "arguments"

    return make


def test_a_built_library_comes_back(scripted):
    arguments = scripted({"library": "/x/libadd-1.so", "name": "add"})
    assert command.build(["add.cu", "--arch", "9.0"])["library"] == "/x/libadd-1.so"
    assert arguments.read_text().split() == ["build", "add.cu", "--arch", "9.0", "--json"]


def test_an_error_keeps_its_parts_and_the_log(scripted):
    error = {
        "what": "compile add.cu",
        "why": "add.cu:3: 'x' is undefined",
        "fix": "the whole log: add.log",
        "fault": 1,
    }
    scripted({"error": error}, 1, "add.cu(3): error: identifier x is undefined\n")
    with pytest.raises(kiln.BuildError) as caught:
        command.build(["add.cu"])
    assert (caught.value.what, caught.value.why, caught.value.fault) == (
        error["what"],
        error["why"],
        1,
    )
    assert str(caught.value) == (
        "error: compile add.cu\n  why: add.cu:3: 'x' is undefined\n  fix: the whole log: add.log\n"
        "\n"
        "add.cu(3): error: identifier x is undefined"
    )


def test_an_error_that_stderr_repeats_is_told_once(scripted):
    scripted({"error": {"what": "w", "why": "y", "fix": ""}}, 2, "nvcc said\nerror: w\n  why: y\n")
    with pytest.raises(kiln.BuildError) as caught:
        command.build(["add.cu"])
    assert str(caught.value).count("why: y") == 1
    assert "nvcc said" in str(caught.value)


def test_a_command_that_prints_no_json(scripted):
    scripted("Segmentation fault", 139)
    with pytest.raises(
        kiln.BuildError, match=r"exit code 139 and printed no JSON(.|\n)*Segmentation fault"
    ):
        command.build(["add.cu"])


def test_a_version_that_differs_is_an_error(scripted):
    scripted({"library": "x"}, version="0.0.9")
    with pytest.raises(kiln.SetupError, match="is 0.0.9, the package in .* is " + kiln.__version__):
        command.build(["add.cu"])


def test_a_kiln_bin_that_is_no_program(monkeypatch, tmp_path):
    monkeypatch.setenv("KILN_BIN", str(tmp_path / "nowhere"))
    with pytest.raises(kiln.SetupError, match="KILN_BIN names it"):
        command.find_command()


def test_path_is_the_last_place(monkeypatch, tmp_path):
    monkeypatch.delenv("KILN_BIN", raising=False)
    monkeypatch.setattr(command, "PACKAGE", tmp_path / "package")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(kiln.SetupError, match="PATH has no kiln"):
        command.find_command()
    for place in (tmp_path / "kiln", tmp_path / "package" / "bin" / "kiln"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("#!/bin/sh\n")
        place.chmod(0o755)
        assert command.find_command() == place


def test_arguments_of_torchs_load_become_flags(scripted, tmp_path):
    (tmp_path / "a.cu").write_text("")
    (tmp_path / "b.cu").write_text("")
    arguments = scripted({"library": str(tmp_path / "missing.so"), "name": "ext"})
    with pytest.raises(kiln.LoadError, match="there is no such file"):
        kiln.load(
            name="ext",
            sources=[str(tmp_path / "a.cu"), str(tmp_path / "b.cu")],
            extra_cflags=["-O2"],
            extra_cuda_cflags=["-O3", "--use_fast_math"],
            extra_ldflags=["-lm"],
            extra_include_paths=["include"],
            build_directory=str(tmp_path / "out"),
            verbose=False,
            with_cuda=True,
            arch=["8.0", "9.0a"],
            defines={"BLOCK": 128, "FAST": None, "SLOW": False},
        )
    assert arguments.read_text().splitlines() == [
        "build", f"{tmp_path}/a.cu", f"{tmp_path}/b.cu", "--name", "ext", "--cflag=-O2",
        "--cuda-flag=-O3", "--cuda-flag=--use_fast_math", "--ldflag=-lm", "-I", "include",
        "-DBLOCK=128", "-DFAST", "-DSLOW=0", "--arch", "8.0;9.0a", "--build-dir", f"{tmp_path}/out",
        "--json",
    ]  # fmt: skip


def test_what_has_no_meaning_is_refused(tmp_path):
    (tmp_path / "a.cu").write_text("")
    with pytest.raises(kiln.KilnError, match="kiln run"):
        kiln.load("a", [str(tmp_path / "a.cu")], is_python_module=False, is_standalone=True)
    with pytest.raises(ValueError, match="mutually exclusive"):
        kiln.load("a", [str(tmp_path / "a.cu")], is_standalone=True)
    with pytest.raises(kiln.KilnError, match="is for nvcc"):
        kiln.load("a", [str(tmp_path / "a.cu")], with_cuda=False)
    with pytest.raises(kiln.KilnError, match="cuda_sources are for nvcc"):
        kiln.load_inline("a", "", "__global__ void k() {}", with_cuda=False)
    with pytest.raises(ValueError, match="Expected 'functions' to be a list or dict"):
        kiln.load_inline("a", "", functions=3)
    with pytest.raises(kiln.KilnError, match="with_sycl"):
        kiln.load("a", [str(tmp_path / "a.cu")], with_sycl=True)
    with pytest.raises(kiln.KilnError, match="an identifier"):
        kiln.load("a-b", [str(tmp_path / "a.cu")])
    with pytest.raises(TypeError, match="a list of strings"):
        kiln.load("a", [str(tmp_path / "a.cu")], extra_cuda_cflags="-O3")
    with pytest.raises(kiln.BuildError, match="no such file"):
        kiln.load(tmp_path / "nothing.cu")


def test_import_does_not_import_torch(python):
    assert python("import sys, kiln; kiln.load; print('torch' in sys.modules)").strip() == "False"


def test_torch_too_old():
    from kiln import _torch

    for version in ("2.7.0", "2.11.0+cu130", "3.0.0a0"):
        _torch.check_version(version)
    with pytest.raises(
        kiln.SetupError, match=r"torch 2\.6\.1 is too old(.|\n)*pip install 'torch>=2\.7'"
    ):
        _torch.check_version("2.6.1")


def test_torch_missing(python):
    script = "import sys; sys.modules['torch'] = None\nimport kiln\n"
    script += "try: kiln.device()\nexcept kiln.SetupError as e: print(e)"
    assert "pip install torch" in python(script)


def test_device(python):
    script = "import kiln\ntry: print(kiln.device())\nexcept kiln.SetupError as e: print(e)"
    assert python(script, env={"KILN_DEVICE": "engine"}).strip() == "cpu"
    assert "'engine' or 'cuda'" in python(script, env={"KILN_DEVICE": "gpu"})
    assert "torch sees no GPU" in python(
        script, env={"KILN_DEVICE": "cuda", "CUDA_VISIBLE_DEVICES": ""}
    )


def test_errors_do_not_steer_the_terminal():
    from kiln.errors import BuildError, KilnError

    for error in (
        KilnError("a\x1b[2J", "b\r\nc\x9bd", "e\x07"),
        BuildError("x", log="\x1b]0;owned\x07"),
    ):
        assert not [c for c in str(error) if c != "\n" and not c.isprintable()]
        assert "\\x1b" in str(error)
    assert error.log == "\x1b]0;owned\x07"  # programs get it as it was
