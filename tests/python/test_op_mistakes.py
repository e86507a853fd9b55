# SPDX-License-Identifier: Apache-2.0
"""What does the author of an op read after a mistake? Three lines that name the line he wrote, not
what the macros and templates made of it."""

from __future__ import annotations

import re
import subprocess

import pytest
from of_many import a_sample

import kiln
from kiln._fakes.syntax import CALLS_OF_INTS, DTYPES

pytestmark = pytest.mark.one_in(2)

HEAD = "#include <kiln/op.h>\nusing namespace kiln;\n"
LIKE = '.fake("like(a)");\n'
BODY = "{ return empty_like(a); }\n"
ADD = "Tensor add(const Tensor& a) " + BODY
PAIR = "Tensor add(const Tensor& a, double s) " + BODY

# name: (source below HEAD, line of the message, what why must say, what fix must say)
MISTAKES = {
    "own struct": (
        "struct Options { int n; };\nTensor add(const Tensor& a, Options o) "
        + BODY
        + 'KILN_OP(add, "a, o")'
        + LIKE,
        5, "torch cannot pass a parameter of this type (Options)", "use Tensor, const Tensor&",
    ),
    "pointer": (
        "Tensor add(const Tensor& a, const float* b) " + BODY + 'KILN_OP(add, "a, b")' + LIKE,
        4, "torch cannot pass a pointer (const float *)", "take a Tensor and call data<float>()",
    ),
    "std::string": (
        "#include <string>\nTensor add(const Tensor& a, const std::string& mode) "
        + BODY
        + 'KILN_OP(add, "a, mode")'
        + LIKE,
        5, "torch cannot pass a parameter of this type (std::", "Str",
    ),
    "rvalue": (
        "Tensor add(Tensor&& a) " + BODY + 'KILN_OP(add, "a");\n',
        4, "(kiln::Tensor &&)", "const Tensor&",
    ),
    "optional of a pointer": (
        "Tensor add(const Tensor& a, Optional<float*> b) " + BODY + 'KILN_OP(add, "a, b");\n',
        4, "torch cannot pass a pointer", "Tensor",
    ),
    "kernel instead of function": (
        '__global__ void add(float* a, int n) { a[0] = n; }\nKILN_OP(add, "a, n");\n',
        4, "torch cannot pass a pointer (float *)", "not the kernel",
    ),
    "result": (
        'float* add(const Tensor& a) { return nullptr; }\nKILN_OP(add, "a");\n',
        4, "torch cannot take a result of this type (float *)", "return void, Tensor",
    ),
    "result by reference": (
        'Tensor& add(Tensor& a) { return a; }\nKILN_OP(add, "a");\n',
        4, "(kiln::Tensor &)", "an op that writes to a Tensor& returns void",
    ),
    "not declared": (
        ADD + 'KILN_OP(ad, "a")' + LIKE,
        4, "no function 'ad' is declared above this line", "check its name",
    ),
    "no quotes": (ADD + "KILN_OP(add, a)" + LIKE, 4, "'a' is not in quotes", 'KILN_OP(add, "a")'),
    "no quotes, two names": (
        PAIR + "KILN_OP(add, a, s)" + LIKE,
        4, "KILN_OP(add): it takes the function and one text", 'KILN_OP(add, "a, b")',
    ),
    "fewer names": (
        PAIR + 'KILN_OP(add, "a")' + LIKE,
        4, "the text names fewer parameters than the function has", "name each",
    ),
    "more names": (
        ADD + 'KILN_OP(add, "a, b")' + LIKE,
        4, "the text names more parameters than the function has", "name each once",
    ),
    "overloaded": (
        ADD + PAIR + 'KILN_OP(add, "a")' + LIKE,
        5, "the function 'add' is overloaded", "its own name",
    ),
    "a function of CUDA's headers": (
        "Tensor hypot(const Tensor& a);\nTensor hypot(const Tensor& a) " + BODY
        + 'KILN_OP(hypot, "a")' + LIKE,
        5, "a header also declares a function 'hypot'", "KILN_OP(my::hypot, ...)",
    ),
    "a function of C with any arguments": (
        "Tensor printf(const Tensor& a) " + BODY + 'KILN_OP(printf, "a")' + LIKE,
        4, "a header also declares a function 'printf'", "for example to printf_op",
    ),
    "a function of kiln's": (
        "Tensor empty_like(const Tensor& a) { return a; }\nKILN_OP(empty_like, \"a\")" + LIKE,
        4, "a header also declares a function 'empty_like'", "put it in a namespace",
    ),
    "a keyword": (
        "Tensor double(const Tensor& a) " + BODY + 'KILN_OP(double, "a")' + LIKE,
        4, "'double' is a keyword of C++", "for example to double_op",
    ),
    "template": (
        "template <class T> Tensor add(const Tensor& a) " + BODY + 'KILN_OP(add, "a")' + LIKE,
        4, "'add' is a template", "a plain function that calls it",
    ),
    "lambda": (
        "auto add = [](const Tensor& a) " + BODY.strip() + ';\nKILN_OP(add, "a")' + LIKE,
        4, "this is not a plain function (a lambda)", "a function outside of classes",
    ),
    "member": (
        "struct Ops { " + ADD.strip() + ' };\nKILN_OP(Ops::add, "a")' + LIKE,
        4, "this is not a plain function", "a function outside of classes",
    ),
    "schema, other type": (
        PAIR + 'KILN_OP(add, "add(Tensor a, int s) -> Tensor")' + LIKE,
        4, "give this parameter different types (parameter 2)", "float (C++ double)",
    ),
    "schema, unknown type": (
        PAIR + 'KILN_OP(add, "add(Tensor a, double s) -> Tensor")' + LIKE,
        4, "unknown type in the schema", "use Tensor, int, SymInt, float",
    ),
    "schema, results": (
        ADD + 'KILN_OP(add, "add(Tensor a) -> (Tensor, Tensor)")' + LIKE,
        4, "different numbers of results", "change one of them",
    ),
    "default of an int": (
        "Tensor add(const Tensor& a, int64_t n) " + BODY + 'KILN_OP(add, "a, n=1.5")' + LIKE,
        4, "the default of an int is not an integer (parameter 2)", "write n=1; a parameter",
    ),
    "default of an int, in a schema": (
        "Tensor add(const Tensor& a, int64_t n) "
        + BODY
        + 'KILN_OP(add, "add(Tensor a, int n=two) -> Tensor")'
        + LIKE,
        4, "the default of an int is not an integer (parameter 2)", "write n=1",
    ),
    "default of a float": (
        PAIR + 'KILN_OP(add, "a, *, s=x1")' + LIKE,
        4, "the default of a float is not a number (parameter 2)", "write s=1.0",
    ),
    "default of a bool": (
        "Tensor add(const Tensor& a, bool f) " + BODY + 'KILN_OP(add, "a, f=1")' + LIKE,
        4, "the default of a bool is neither True nor False", "write flag=True",
    ),
    "default of a Str": (
        "Tensor add(const Tensor& a, Str m) " + BODY + 'KILN_OP(add, "a, m=fast")' + LIKE,
        4, "the default of a Str is not in quotes", "write mode='fast'",
    ),
    "default of a list": (
        "Tensor add(const Tensor& a, Span<const int64_t> n) "
        + BODY
        + 'KILN_OP(add, "a, n=[1, 2.5]")'
        + LIKE,
        4, "the default of a list of ints is not one", "write sizes=[1, 2]",
    ),
    "None for what is not optional": (
        PAIR + 'KILN_OP(add, "a, s=None")' + LIKE,
        4, "the default of a float is not a number", "write s=1.0",
    ),
    "default of a Tensor": (
        ADD + 'KILN_OP(add, "a=1")' + LIKE,
        4, "a parameter of this type takes no default (parameter 1)", "take Optional<...>",
    ),
    "one op twice": (
        ADD + 'KILN_OP(add, "a")' + LIKE + 'KILN_OP(add, "a")' + LIKE,
        5, "two ops are named 'add' in this file", "remove one, or give it its own name",
    ),
    "one op twice, in two namespaces": (
        "namespace one { " + ADD.strip() + " }\nnamespace two { " + ADD.strip() + " }\n"
        + 'KILN_OP(one::add, "a")' + LIKE + 'KILN_OP(two::add, "a")' + LIKE,
        6, "two ops are named 'add' in this file", "remove one",
    ),
    "one overload twice": (
        ADD + 'KILN_OP(add, "add.One(Tensor a) -> Tensor")' + LIKE
        + 'KILN_OP(add, "add.One(Tensor a) -> Tensor")' + LIKE,
        5, "two ops are named 'add.One' in this file", "add.Other(Tensor a)",
    ),
    "a name that Python keeps": (
        ADD + 'KILN_OP(add, "__init__(Tensor a) -> Tensor")' + LIKE,
        4, "KILN_OP(add): Python keeps this name of an op for itself", "choose another",
    ),
    "one parameter twice": (
        PAIR + 'KILN_OP(add, "a, a")' + LIKE,
        4, "the text gives two parameters the same name", "give each its own",
    ),
    "misspelt member": (
        ADD + 'KILN_OP(add, "a").fakes("like(a)");\n',
        4, "KILN_OP has no member 'fakes'", '.fake("rule")',
    ),
    "fake rule, unknown function": (
        ADD + 'KILN_OP(add, "a").fake("lik(a)");\n',
        4, """unknown word 'lik' in the fake rule "lik(a)\"""", "a parameter of the op",
    ),
    "fake rule, unknown parameter": (
        ADD + 'KILN_OP(add, "a").fake("like(x)");\n',
        4, "unknown word 'x' in the fake rule", "a parameter of the op",
    ),
    "fake rule, the last of many words, on a line of its own": (
        ADD + 'KILN_OP(add, "a")\n    .fake("f32[max(a.shape[0], 8), lenn(a)]");\n',
        4, "unknown word 'lenn' in the fake rule", "a parameter of the op",
    ),
    "fake rule, bracket": (
        ADD + 'KILN_OP(add, "a").fake("f32[a.shape[0]");\n',
        4, "the fake rule has a bracket without its partner", "the grammar",
    ),
    "writes to a const Tensor": (
        "void fill(const Tensor& a) { *a.data<float>() = 1; }\nKILN_OP(fill, \"a\");\n",
        3, "this Tensor is const: an input of the op", "take the parameter as Tensor&",
    ),
}  # fmt: skip


def build(command, folder, text: str, name: str = "op.cu") -> subprocess.CompletedProcess:
    (folder / name).write_text(text)
    return subprocess.run(
        [command, "build", name], cwd=folder, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("name", a_sample(MISTAKES, 3))
def test_a_mistake_is_three_lines_at_the_line_that_has_it(command, tmp_path, name):
    source, line, why, fix = MISTAKES[name]
    done = build(command, tmp_path, HEAD + source)
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 3, done.stderr
    assert lines[0] == "error: cannot compile op.cu"
    assert lines[1].startswith(f"  why: op.cu({line}): error: "), done.stderr
    assert why in lines[1] and fix in lines[2], done.stderr
    assert "kiln::detail" not in done.stderr and "/include/kiln/" not in done.stderr


RIGHT_DEFAULTS = """
Tensor add(const Tensor& a, int64_t n, double s, double t, bool f, Str m, Span<const int64_t> i,
           Span<const double> d, Optional<Tensor> o, Optional<int64_t> k, Dtype y) {
  return empty_like(a);
}
KILN_OP(add, "a, n=-3, s=1e-5, t=-inf, f=true, m='a, b=2', i=[1, -2], d=[0.5, 1], o=None, k=4, y=6")
    .fake("like(a)");
KILN_OP(add, "add.Typed(Tensor a, int n = 3, float s=1, float t=.5, bool f=False, str m=\\"x\\","
             "int[] i=[], float[] d=[1., 2e3], Tensor? o=None, int? k=None, ScalarType y=6)"
             " -> Tensor")
    .fake("like(a)");
"""


def test_a_name_of_a_header_is_free_in_a_namespace(command, tmp_path):
    source = "namespace my { Tensor hypot(const Tensor& a) " + BODY + "}\n"
    done = build(command, tmp_path, HEAD + source + 'KILN_OP(my::hypot, "a")' + LIKE)
    assert done.returncode == 0, done.stderr


def test_right_defaults_are_right(command, tmp_path):
    done = build(command, tmp_path, HEAD + RIGHT_DEFAULTS)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [command, "call", "op.cu"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert listed.stdout.startswith("op: 2 ops in "), listed.stdout + listed.stderr
    assert "SymInt n=-3, float s=1e-5, float t=-inf, bool f=True" in listed.stdout


def test_one_op_in_two_files_is_an_error_where_the_library_is_loaded(command, tmp_path):
    for name in ("a.cu", "b.cu"):
        (tmp_path / name).write_text(HEAD + "static " + ADD + 'KILN_OP(add, "a")' + LIKE)
    done = subprocess.run(
        [command, "build", "a.cu", "b.cu", "-o", "lib.so"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [command, "call", "lib.so"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert listed.returncode == 1 and listed.stdout == ""
    lines = listed.stderr.splitlines()
    assert lines[0] == "error: two ops are named add", listed.stderr
    assert "a.cu:4" in lines[1] and "b.cu:4" in lines[1], listed.stderr
    with pytest.raises(kiln.LoadError, match="two ops are named add"):
        kiln.load(tmp_path / "lib.so")


def test_a_source_without_ops_says_so(command, tmp_path):
    (tmp_path / "none.cu").write_text(HEAD + "int f() { return 1; }\n")
    done = subprocess.run(
        [command, "call", "none.cu"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stdout.startswith("no ops in "), done.stderr
    assert "KILN_OP(function" in done.stdout
    with pytest.raises(kiln.LoadError, match="it has no ops"):
        kiln.load(tmp_path / "none.cu")


def test_an_error_of_the_users_own_hides_what_follows_from_it(command, tmp_path):
    source = "Tensor add(const Tensor& a, nothing::at_all x) " + BODY + 'KILN_OP(add, "a, x");\n'
    done = build(command, tmp_path, HEAD + source)
    assert "op.cu(3): error: " in done.stderr
    assert "op.cu(4)" not in done.stderr and "kiln::detail" not in done.stderr, done.stderr


CONDITIONS = {
    'KILN_CHECK(b > 0, "no");': 'identifier "b" is undefined',
    'KILN_CHECK(a.dtype() ==\n    Dtype::F32, "no");': 'enum "kiln::Dtype" has no member "F32"',
    'KILN_CHECK(a.shape() == 1, "no");': 'class "kiln::Tensor" has no member "shape"',
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_mistake_in_a_condition_is_not_one_of_the_op(command, tmp_path, condition):
    source = f"Tensor add(const Tensor& a) {{ {condition} return a; }}\n"
    done = build(command, tmp_path, HEAD + source + 'KILN_OP(add, "a")' + LIKE)
    assert done.returncode == 1 and CONDITIONS[condition] in done.stderr, done.stderr
    assert "KILN_OP" not in done.stderr and "kiln::detail" not in done.stderr, done.stderr


def test_a_missing_header_is_named(command, tmp_path):
    done = build(
        command, tmp_path, 'kiln::Tensor add(const kiln::Tensor& a);\nKILN_OP(add, "a");\n'
    )
    assert done.stderr.splitlines()[-1] == "  fix: add #include <kiln/op.h>", done.stderr


def test_a_missing_semicolon_has_a_line(command, tmp_path):
    done = build(command, tmp_path, HEAD + ADD + 'KILN_OP(add, "a").fake("like(a)")\n\n')
    assert 'op.cu(4): error: expected a ";"\n  KILN_OP(add, "a").fake("like(a)")' in done.stderr


def test_warnings_name_the_file_as_it_was_written_and_come_once(command, tmp_path):
    (tmp_path / "src").mkdir()
    text = HEAD + "Tensor add(const Tensor& a) { Tensor out = empty_like(a); }\n"
    (tmp_path / "src" / "op.cu").write_text(text + 'KILN_OP(add, "a")' + LIKE)
    done = subprocess.run(
        [command, "build", "src/op.cu"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0
    warned = [line for line in done.stderr.splitlines() if "warning" in line]
    assert len(warned) == 1 and warned[0].startswith("src/op.cu(3): warning "), done.stderr
    assert "/proc/self/cwd" not in done.stderr


def test_all_that_the_compiler_said_is_there_on_request(command, tmp_path):
    (tmp_path / "op.cu").write_text(HEAD + ADD + 'KILN_OP(ad, "a")' + LIKE)
    done = subprocess.run(
        [command, "build", "-v", "op.cu"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert "kiln::detail" in done.stderr and "cudafe++" in done.stderr


def test_a_define_that_nothing_mentions_is_reported(command, tmp_path):
    source = "#ifndef BLOCK\n#define BLOCK 128\n#endif\n" + ADD + 'KILN_OP(add, "a")' + LIKE
    (tmp_path / "op.cu").write_text(HEAD + source)
    told = {}
    for define in ("BLOCKS=64", "BLOCK=64"):
        done = subprocess.run(
            [command, "build", "op.cu", "-D", define],
            cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        told[define] = [line for line in done.stderr.splitlines() if "mentions" in line]
    assert told["BLOCKS=64"] == [
        "warning: no file that is compiled mentions BLOCKS (-D BLOCKS=64); did you mean BLOCK?"
    ]
    assert told["BLOCK=64"] == []


def test_the_header_knows_the_words_of_fake_rules(command):
    text = (command.parents[1] / "include/kiln/fake_rule.h").read_text()
    (words,) = re.findall(r"kRuleWords\[\] = \{(.*?)\};", text, re.DOTALL)
    own = set(re.findall(r'"(\w+)"', words))
    grammar = {"none", "like", "broadcast", "promote", "float_of"}
    assert own == grammar | set(DTYPES) | set(CALLS_OF_INTS) | {
        "shape", "dtype", "device", "ndim", "numel",
    }  # fmt: skip
