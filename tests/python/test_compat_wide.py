# SPDX-License-Identifier: Apache-2.0
"""Do ops behave as torch's by their rarer names and overloads: results that are given, sizes as
symbols, indices as a list, tensors over foreign memory?

With KILN_COMPAT=never the same tests run on torch's own headers (a minute).
"""

from __future__ import annotations

import kiln
import pytest
import torch


@pytest.fixture(scope="module")
def ext(command, sources):
    return kiln.load(sources / "torch_wide.cpp")


def test_a_blob_step_by_step(ext):
    before = ext.frees()
    one, two = ext.blob_strided(3), ext.blob_context(4)
    assert one.tolist() == [0.0, 2.0, 4.0] and one.stride() == (2,)
    assert two.tolist() == [5, 6, 7, 8] and two.dtype == torch.int64
    del one, two
    assert ext.frees() - before == 2


def test_a_borrowed_list_is_a_tuple(ext):
    """As in torch's binding; a vector is a list."""
    assert ext.sizes_of(torch.zeros(2, 3)) == (2, 3) and ext.sizes_of(torch.zeros(())) == ()
    assert ext.sizes_as_vector(torch.zeros(2, 3)) == [2, 3]


def test_sizes_as_symbols(ext):
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(ext.symbols(x), x)


def test_indices_as_a_list(ext):
    x, i = torch.arange(9.0).reshape(3, 3), torch.tensor([2, 0])
    zeroed, more = x.clone(), x.clone()
    zeroed[i] = 0
    more[i] += 1
    expected = [x[i], x[i], x[i], x[:, i], zeroed, more]
    assert all(torch.equal(a, b) for a, b in zip(ext.indexed(x, i), expected))


def test_results_that_are_given(ext):
    x = torch.tensor([0.25, 2.0, 1.0])
    power, least, wide, places, ahead = ext.given(x)
    assert torch.equal(power, x**2) and torch.equal(least, x.clamp_min(0.5))
    assert wide.dtype == torch.float64 and torch.equal(wide, torch.float_power(x, 2.0))
    assert places.tolist() == [0, 2, 1] and torch.equal(ahead, x[None])


def test_two_lacks_are_the_second_one(command, tmp_path, monkeypatch):
    """What kiln adds for the first name is there: the message names what remains. A tensor of the
    compat headers is dense, so a source that makes a sparse one falls back."""
    source = tmp_path / "two.cpp"
    source.write_text(
        "#include <torch/extension.h>\n"
        "torch::Tensor f(torch::Tensor x) {\n"
        "  torch::Tensor y = torch::empty_like(x);\n"
        "  return torch::float_power_out(y, x, 2.0).to_sparse();\n"
        "}\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    )
    monkeypatch.setenv("KILN_COMPAT", "require")
    with pytest.raises(kiln.BuildError, match="compat headers lack to_sparse"):
        kiln.load("two", [source])


def test_checks_of_arguments_without_a_header_or_their_type(command):
    source = """#include <torch/extension.h>
int64_t checked(torch::Tensor a, torch::Tensor b) {
  torch::checkAllContiguous("checked", {{a, "a", 0}, {b, "b", 1}});
  at::checkSameSize("checked", {a, "a", 0}, {b, "b", 1});
  return a.numel();
}
"""
    ext = kiln.load_inline("checks_of_arguments", source, functions=["checked"])
    x = torch.ones(2, 3)
    assert ext.checked(x, x) == 6
    with pytest.raises(RuntimeError, match="contiguous"):
        ext.checked(x, torch.ones(3, 2).T)
    with pytest.raises(RuntimeError, match="same size"):
        ext.checked(x, torch.ones(3, 2))
