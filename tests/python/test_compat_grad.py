# SPDX-License-Identifier: Apache-2.0
"""Do the compat headers have what sources ask of gradients, of dispatcher keys and of groups of
ops, with torch's results?"""

import pytest
import torch

import kiln

_SOURCE = r"""
#include <ATen/autocast_mode.h>
#include <torch/extension.h>

#include <c10/util/SmallVector.h>

void set_grad(torch::Tensor x, torch::Tensor g) { x.mutable_grad() = g; }
void add_grad(torch::Tensor x, torch::Tensor g) { x.mutable_grad().add_(g); }
void drop_grad(torch::Tensor x) { x.mutable_grad().reset(); }
torch::Tensor read_grad(torch::Tensor x) {
  auto& grad = x.mutable_grad();
  return grad;
}
void run_backward(torch::Tensor x) { x.backward(); }
void run_backward_twice(torch::Tensor x, torch::Tensor g) {
  x.backward(g, true);
  x.backward(g);
}
torch::Tensor wanted(torch::Tensor x) { return x.requires_grad_(true); }
bool leaf(torch::Tensor x) { return x.is_leaf(); }
int64_t version(torch::Tensor x) { return x._version(); }
torch::Tensor nested() { return torch::tensor({{1, 2}, {3, 4}}); }
torch::Tensor nested_reals() { return torch::tensor({{{1.5}, {2.5}}}, torch::kFloat64); }
torch::Tensor reals() { return torch::tensor({1.0, 2.0}); }
torch::Tensor kept() { return at::tensor({1, 2}); }
torch::Tensor kept_reals() { return at::tensor({1.0, 2.0}); }
torch::Tensor nothing() { return torch::tensor({}, torch::kInt32); }
torch::Tensor small(torch::Tensor x) {
  c10::SmallVector<int64_t, 4> sizes = {2, 3};
  return torch::zeros(sizes, x.options());
}
torch::Tensor groups(torch::Tensor x) {
  return torch::linalg::inv(x) + torch::special::expit(x) + torch::fft::fftshift(x);
}
torch::Tensor cast(torch::Tensor x) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  return at::autocast::cached_cast(at::kBFloat16, x, at::kCPU);
}
bool autocast_is_on() { return at::autocast::is_autocast_enabled(at::kCPU); }
torch::Tensor product_outside_autocast(torch::Tensor x) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  return x.matmul(x);
}
torch::Tensor recorded(torch::Tensor x) {
  RECORD_FUNCTION("a span of mine", {});
  return x + 1;
}
void refused() { throw c10::IndexError({__func__, __FILE__, __LINE__}, "too far"); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("set_grad", &set_grad);
  m.def("add_grad", &add_grad);
  m.def("drop_grad", &drop_grad);
  m.def("read_grad", &read_grad);
  m.def("run_backward", &run_backward);
  m.def("run_backward_twice", &run_backward_twice);
  m.def("wanted", &wanted);
  m.def("leaf", &leaf);
  m.def("version", &version);
  m.def("nested", &nested);
  m.def("nested_reals", &nested_reals);
  m.def("reals", &reals);
  m.def("kept", &kept);
  m.def("kept_reals", &kept_reals);
  m.def("nothing", &nothing);
  m.def("small", &small);
  m.def("groups", &groups);
  m.def("cast", &cast);
  m.def("autocast_is_on", &autocast_is_on);
  m.def("product_outside_autocast", &product_outside_autocast);
  m.def("recorded", &recorded);
  m.def("refused", &refused);
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    source = tmp_path_factory.mktemp("grad") / "grad.cpp"
    source.write_text(_SOURCE)
    patch = pytest.MonkeyPatch()
    patch.setenv("KILN_COMPAT", "require")
    try:
        return kiln.load("compat_grad", [str(source)])
    finally:
        patch.undo()


def test_a_gradient_is_set_added_to_and_dropped(built):
    x = torch.ones(3, requires_grad=True)
    built.set_grad(x, torch.full((3,), 2.0))
    built.add_grad(x, torch.ones(3))
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    assert built.read_grad(x).tolist() == [3.0, 3.0, 3.0]
    built.drop_grad(x)
    assert x.grad is None


def test_backward(built):
    x = torch.ones(3, requires_grad=True)
    built.run_backward((x * 2).sum())
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    built.run_backward_twice(x * x, torch.ones(3))
    assert x.grad.tolist() == [6.0, 6.0, 6.0]
    assert built.leaf(x) and not built.leaf(x * 2)
    y = torch.ones(2)
    assert built.wanted(y).requires_grad and y.requires_grad
    z = torch.ones(2)
    z.add_(1)
    assert built.version(z) == 1


def test_nested_lists(built):
    assert built.nested().equal(torch.tensor([[1, 2], [3, 4]]))
    assert built.nested_reals().equal(torch.tensor([[[1.5], [2.5]]], dtype=torch.float64))
    assert built.nothing().equal(torch.tensor([], dtype=torch.int32))
    assert built.small(torch.ones(1)).shape == (2, 3)


def test_types_of_lists(built):
    """torch::tensor chooses them as Python does, at::tensor keeps those of C++."""
    assert built.reals().dtype == torch.float32 and built.kept_reals().dtype == torch.float64
    assert built.nested().dtype == torch.int64 and built.kept().dtype == torch.int32
    torch.set_default_dtype(torch.float64)
    try:
        assert built.reals().dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_groups_of_ops(built):
    x = torch.eye(3) * 2 + 0.1
    expected = torch.linalg.inv(x) + torch.special.expit(x) + torch.fft.fftshift(x)
    assert torch.equal(built.groups(x), expected)


def test_autocast(built):
    x = torch.rand(4, 4)
    assert built.cast(x).dtype == torch.bfloat16
    assert built.cast(x.double()).dtype == torch.float64
    assert not built.autocast_is_on()
    with torch.autocast("cpu"):
        assert built.autocast_is_on()
        assert (x @ x).dtype == torch.bfloat16
        assert built.product_outside_autocast(x).dtype == torch.float32


def test_a_span_for_the_profiler(built):
    with torch.profiler.profile() as profile:
        built.recorded(torch.ones(2))
    assert "a span of mine" in {event.name for event in profile.events()}


def test_an_error_with_its_place(built):
    with pytest.raises(IndexError, match="too far"):
        built.refused()
