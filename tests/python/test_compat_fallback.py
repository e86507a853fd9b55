# SPDX-License-Identifier: Apache-2.0
"""What happens to a source that needs more than the compat headers have? It is told with its line,
built with torch's own headers, remembered, and cached as every build.

A folder with the few headers and empty libraries that these sources need stands in for torch: the
real ones take a minute a build. test_compat_real.py does it once with those.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(2)

HEADER = """
#pragma once
#include <cstdint>
#include <vector>
namespace at { struct Tensor { void* impl; }; }
namespace torch { using at::Tensor; template <class T> struct class_ { class_(const char*) {} }; }
namespace pybind11 {
struct module_ { template <class... A> module_& def(A&&...) { return *this; } };
}
namespace py = pybind11;
#define PYBIND11_MODULE(name, m) void fill(pybind11::module_& m); \\
  extern "C" void* PyInit_##name() { pybind11::module_ m; fill(m); return nullptr; } \\
  void fill(pybind11::module_& m)
"""
CLASSY = """#include <torch/extension.h>
struct Own { int x; };
PYBIND11_MODULE(more, m) {
  torch::class_<Own>("Own");
}
"""
PLAIN = """#include <torch/extension.h>
int64_t twice(int64_t x) { return 2 * x; }
PYBIND11_MODULE(more, m) { m.def("twice", &twice); }
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory) -> Path:
    """A package `torch` and a Python that says where it is."""
    package = tmp_path_factory.mktemp("stand-in") / "torch"
    for name in ("torch/extension.h", "ATen/ATen.h"):
        (package / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (package / "include" / name).write_text(HEADER)
    (package / "lib").mkdir()
    for name in ("c10", "torch_cpu", "torch", "torch_python"):
        library = package / "lib" / f"lib{name}.so"
        subprocess.run(
            ["g++", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", str(library)], check=True
        )
    python = package.parent / "python3"
    python.write_text(f"#!/bin/sh\necho kiln-torch {package}\necho kiln-include {package.parent}\n")
    python.chmod(0o755)
    return package


@pytest.fixture
def build(command, stand_in, tmp_path):
    """Runs `kiln build more.cpp WORDS --json`: its answer, and what it said."""

    def run(*words: str, text: str | None = None, **environment: str) -> tuple[dict, str]:
        path = tmp_path / "more.cpp"
        if text is not None:
            path.write_text(text)
        env = {k: v for k, v in os.environ.items() if k != "KILN_COMPAT"} | environment
        env |= {
            "KILN_PYTHON": str(stand_in.parent / "python3"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }
        line = [command, "build", path, *words, "--json"]
        done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
        return json.loads(done.stdout), done.stderr

    return run


def cached(answer: dict) -> set[str]:
    return {step["cache"] for step in answer["steps"]}


def test_what_is_lacking_is_told_and_built_with_torchs_headers(build):
    answer, said = build(text=CLASSY)
    assert answer["headers"] == "torch" and Path(answer["library"]).is_file()
    assert (
        "more.cpp:4" in said
        and "kiln's compat headers lack class_: building with torch's own headers" in said
    )


CXX20 = "#if __cplusplus < 202002L\n#error C++20 or later compatible compiler is required\n#endif\n"


@pytest.fixture
def demanding(stand_in):
    """A torch whose headers want C++20, as those from 2.13 on do."""
    headers = [stand_in / "include" / name for name in ("torch/extension.h", "ATen/ATen.h")]
    for header in headers:
        header.write_text(CXX20 + HEADER)
    yield
    for header in headers:
        header.write_text(HEADER)


def test_the_language_is_the_one_that_torchs_headers_demand(build, demanding):
    answer, said = build(text=CLASSY)
    assert answer.get("headers") == "torch", answer
    assert "-std" not in said


def test_the_torch_that_is_installed_gets_the_language_that_it_demands(command, tmp_path):
    """Its headers take a minute; what they ask of the compiler is one line of one of them."""
    import torch

    demand = (Path(torch.__file__).parent / "include/ATen/ATen.h").read_text()
    (year,) = re.findall(r"#error C\+\+(\d+) or later", demand)
    release = tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2])
    assert year == "20" or release < (2, 15)
    lowest = {"17": "201703L", "20": "202002L"}[year]
    source = tmp_path / "own.cpp"
    source.write_text(
        f'#include <torch/version.h>\nstatic_assert(__cplusplus >= {lowest}, "too old");\n'
    )
    line = [command, "build", source, "--compat=never", "--cflag=-std=c++14", "--json"]
    env = os.environ | {"KILN_PYTHON": sys.executable, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(line, env=env, capture_output=True, text=True)
    assert json.loads(done.stdout).get("headers") == "torch", done.stdout
    assert f"-std=c++14: torch's own headers require C++{year}" in done.stderr


@pytest.mark.parametrize("flag", ["-std=c++17", "--std=c++17", "-std=gnu++17"])
def test_a_language_that_torch_refuses_is_raised(build, demanding, flag):
    answer, said = build(f"--cflag={flag}", text=CLASSY)
    assert answer.get("headers") == "torch", answer
    named = flag.replace("--", "-")
    assert f"{named}: torch's own headers require C++20: compiling with -std=c++20" in said


def test_compat_keeps_a_language_that_torch_refuses_and_says_so(build, demanding):
    answer, said = build("--cflag=-std=c++17", text=PLAIN)
    assert answer.get("headers") == "compat", answer
    assert "-std=c++17: torch's own headers require C++20; kiln's compat headers do not" in said
    answer, said = build("--cflag=-std=c++20", text=PLAIN)
    assert answer.get("headers") == "compat" and "C++20" not in said


def test_a_source_in_cpp20_builds_as_such(build, demanding):
    text = PLAIN.replace("int64_t twice", "template <class T> concept Any = true;\nint64_t twice")
    answer, _ = build(text=text)
    assert answer.get("headers") == "compat", answer


def test_the_file_is_remembered_until_it_no_longer_names_it(build, tmp_path):
    build(text=CLASSY)
    # The build folder alone: what is remembered and the cache stay.
    again, said = build("--build-dir", str(tmp_path / "elsewhere"))
    assert (
        again["headers"] == "torch" and "as before" in said and "lack class_: building" not in said
    )
    assert cached(again) == {"hit"}, again["steps"]
    other, said = build(text=CLASSY.replace("int x", "int y"))  # still has a class
    assert other["headers"] == "torch" and "as before" in said
    plain, said = build(text=PLAIN)
    assert plain["headers"] == "compat" and "torch's own" not in said
    back, said = build(text=CLASSY)
    assert back["headers"] == "torch"


def test_a_header_that_lacked_something_is_tried_again_after_its_edit(build, tmp_path):
    header = tmp_path / "own.h"
    header.write_text("template <class M> void fill(M& m) {}\nusing Old = torch::class_<int>;\n")
    source = PLAIN.replace("int64_t twice", '#include "own.h"\nint64_t twice')
    answer, said = build(text=source)
    assert answer["headers"] == "torch" and "own.h:2" in said
    assert "as before" in build()[1]
    header.write_text("template <class M> void fill(M& m) {}\n")
    answer, said = build()
    assert answer["headers"] == "compat" and "torch's own" not in said


def test_another_checkout_is_remembered_by_its_content(build, command, stand_in, tmp_path):
    build(text=CLASSY)
    other = tmp_path / "checkout" / "more.cpp"
    other.parent.mkdir()
    other.write_text(CLASSY)
    env = os.environ | {
        "KILN_PYTHON": str(stand_in.parent / "python3"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    line = [command, "build", other, "--json"]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["headers"] == "torch" and "as before" in done.stderr


def test_a_name_that_torch_does_not_know_is_an_error_at_once(build, stand_in):
    ops = stand_in / "include" / "ATen" / "ops"
    ops.mkdir(exist_ok=True)
    (ops / "empty_like.h").write_text("")
    line = "at::Tensor f(at::Tensor x) { return torch::empty_lik(x); }"
    text = f"#include <torch/extension.h>\n{line}\n"
    answer, said = build(text=text)
    assert "building with torch's own" not in said
    assert "empty_lik" in answer["error"]["why"] and "more.cpp:2" in answer["error"]["why"]
    assert answer["error"]["fix"] == "torch has no empty_lik either; did you mean empty_like?"


@pytest.mark.parametrize(
    "header, fix",
    [
        ("torch/extensions.h", "torch has no torch/extensions.h either; did you mean torch/"),
        ("glm/glm.hpp", "torch has no glm/glm.hpp either; say with -I FOLDER where it is"),
    ],
)
def test_a_header_that_torch_does_not_have_is_an_error_at_once(build, header, fix):
    answer, said = build(text=f"#include <torch/extension.h>\n#include <{header}>\n")
    assert "building with torch's own" not in said
    assert header in answer["error"]["why"] and answer["error"]["fix"].startswith(fix)


def test_a_bad_flag_is_not_a_lack(build):
    answer, said = build("--cflag=-fno-such-flag", text=PLAIN)
    assert "compat headers lack" not in said and "-fno-such-flag" in answer["error"]["why"]


def test_nothing_changed_is_no_build(build):
    build(text=CLASSY)
    answer, _ = build()
    assert answer["headers"] == "torch" and not answer["rebuilt"]


def test_require_and_never_override(build):
    build(text=CLASSY)  # remembered, and yet:
    answer, _ = build("--compat=require")
    error = answer["error"]
    assert (
        "class_" in error["why"]
        and "more.cpp:4" in error["why"]
        and "--compat=require" in error["fix"]
    )
    assert build("--compat=never", text=PLAIN)[0]["headers"] == "torch"
    assert build(text=PLAIN)[0]["headers"] == "compat"
    assert build(text=PLAIN, KILN_COMPAT="never")[0]["headers"] == "torch"
    assert build("--compat=require", text=PLAIN, KILN_COMPAT="never")[0]["headers"] == "compat"
    error = build(text=PLAIN, KILN_COMPAT="nevr")[0]["error"]
    assert "KILN_COMPAT is 'nevr'" in error["why"] and "auto, require or never" in error["fix"]


def test_torchs_folder_among_the_includes_does_not_mix(build, stand_in):
    for words in (["-I", str(stand_in / "include")], [f"--cflag=-I{stand_in / 'include'}"],
                  ["--cflag=-isystem", f"--cflag={stand_in / 'include'}"]):  # fmt: skip
        answer, said = build(*words, text=PLAIN)
        assert answer["headers"] == "compat", said
    assert build("-I", str(stand_in / "include"), text=CLASSY)[0]["headers"] == "torch"


MIXED = """#include <torch/extension.h>
int64_t theirs(const at::Tensor& x);
PYBIND11_MODULE(more, m) { m.def("theirs", &theirs); }
"""


def test_an_object_of_the_other_kind(build, stand_in, tmp_path):
    other = tmp_path / "theirs.o"
    source = (
        "#include <torch/extension.h>\nlong theirs(const at::Tensor& x) { return x.impl != "
        "nullptr; }\n"
    )
    line = ["g++", "-fPIC", "-c", "-x", "c++", f"-I{stand_in / 'include'}", "-", "-o", str(other)]
    subprocess.run(line, input=source, text=True, check=True)
    answer, said = build(f"--ldflag={other}", text=MIXED.replace("int64_t", "long"))
    assert answer["headers"] == "torch", answer
    assert (
        "theirs(at::Tensor const&) is in an object that was compiled with torch's own headers"
        in said
    )
    error = build(f"--ldflag={other}", "--compat=require")[0]["error"]
    assert (
        "'theirs(at::Tensor const&)' is left open" in error["why"]
        and "name its source" in error["fix"]
    )


def test_a_source_that_was_forgotten_is_named_at_once(build):
    error = build(text=MIXED)[0]["error"]
    assert (
        "'theirs(at::Tensor const&)' is left open" in error["why"]
        and error["fix"] == "name the source that defines it too"
    )


@pytest.mark.parametrize(
    ("line", "symbol"),
    [
        (
            'struct Own {}; Own f() { return {}; } PYBIND11_MODULE(x, m) { m.def("f", &f); }',
            "cannot cross",
        ),
        (
            'struct Own {}; void f(std::vector<Own>) {} PYBIND11_MODULE(x, m) { m.def("f", &f); }',
            "cannot cross",
        ),
        ("struct Own {}; Own* f(at::Tensor x) { return x.data_ptr<Own>(); }", "data_ptr"),
        ("struct Own {}; Own f(at::Tensor x) { return x.accessor<Own, 1>()[0]; }", "accessor"),
        ("struct Own {}; Own f(at::Tensor x) { return x.item<Own>(); }", "item"),
    ],
)
def test_templates_over_types_that_are_not_supported(build, line, symbol):
    """Told with the line, and handed to torch's headers: theirs is the verdict."""
    answer, said = build("--compat=require", text=f"#include <torch/extension.h>\n{line}\n")
    assert "error" in answer, said
    error = answer["error"]
    assert "more.cpp:2" in error["why"], error
    assert symbol in error["why"] and "compat headers lack" in error["fix"], error
