# SPDX-License-Identifier: Apache-2.0
"""Does load_inline write the source that its arguments mean?"""

from __future__ import annotations

import kiln
import pytest
from kiln.inline import compose, parameters_of


@pytest.mark.parametrize(
    ("declaration", "spec"),
    [
        ("kiln::Tensor f(const kiln::Tensor& a, const kiln::Tensor& b);", "a, b"),
        (
            "Tensor f(Tensor a, int64_t n = 3, double x=-1.5e-3, bool y = true) {",
            "a, n=3, x=-1.5e-3, y=True",
        ),
        ("kiln::Tensor\nf(\n  Tensor &a,\n  float scale = 2.0f\n)\n{", "a, scale=2.0"),
        (
            "kiln::Tensors<2> f(kiln::Span<const int64_t> sizes, kiln::Optional<Tensor> m) {",
            "sizes, m",
        ),
        ("void f(kiln::Tensor&, int64_t);", "arg0, arg1"),
        ("void f();", ""),
        ("void f(void);", ""),
        ("Tensor f(Tensor a /* (the first) */, // the, second\n Tensor b);", "a, b"),
        ("Tensor g(Tensor x) { return f(x); }\nTensor f(Tensor real) { return real; }", "real"),
        ("int main_f(int q);\nTensor f(Tensor ours);", "ours"),
        ("Tensor f(Tensor a, Dtype d = Dtype::f32);", "a, d"),
    ],
)
def test_names_come_from_the_declaration(declaration, spec):
    assert parameters_of(declaration, "f") == spec


def test_missing_parts_are_added():
    text = compose(
        "Tensor f(Tensor a);",
        ["__global__ void k() {}", "Tensor g(Tensor b) { }"],
        {"f": 'a "doc"'},
        "x",
    )
    assert text.startswith(
        '#include <kiln/op.h>\n#line 1 "x.cpp_sources"\nTensor f(Tensor a);\n#line 1 '
        '"x.cuda_sources"\n'
    )
    assert text.rstrip().endswith('KILN_OP(f, "a").doc("a \\"doc\\"");')
    assert "KILN_OP(g" not in text


def test_what_is_there_is_not_added():
    source = '#include "kiln/op.h"\nTensor f(Tensor a);\nKILN_OP(f, "a");'
    assert compose(source, None, ["f"], "x").strip() == f'#line 1 "x.cpp_sources"\n{source}'


def test_a_function_that_is_not_there():
    with pytest.raises(kiln.BuildError, match="declare no function of that name"):
        compose("int g();", None, "f", "x")
    with pytest.raises(kiln.BuildError, match="is not the name of a function"):
        compose("int g();", None, ["a b"], "x")
