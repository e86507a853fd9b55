// SPDX-License-Identifier: Apache-2.0
// Ops by their rarer names and overloads, as sources call them.
#include <torch/extension.h>

static int freed = 0;

torch::Tensor blob_strided(int64_t rows) {
  auto* data = new float[rows * 2];
  std::iota(data, data + rows * 2, 0.0f);
  std::vector<int64_t> sizes = {rows}, strides = {2};
  return at::for_blob(data, sizes)
      .strides(strides)
      .deleter([](void* memory) {
        ++freed;
        delete[] static_cast<float*>(memory);
      })
      .options(torch::dtype(torch::kFloat32))
      .make_tensor();
}

torch::Tensor blob_context(int64_t count) {
  auto* values = new std::vector<int64_t>(count);
  std::iota(values->begin(), values->end(), 5);
  return at::for_blob(values->data(), {count})
      .context(values,
               [](void* context) {
                 ++freed;
                 delete static_cast<std::vector<int64_t>*>(context);
               })
      .options(at::kLong)
      .make_tensor();
}

int frees() { return freed; }

torch::Tensor symbols(const torch::Tensor& x) {
  auto made = at::empty_symint(x.sym_sizes(), x.options());
  made.copy_(x);
  auto filled = torch::zeros_symint({x.sym_size(0), 1}, x.options());
  return made.view_symint({x.sym_size(0), -1}) + filled + x.new_zeros_symint(x.sym_sizes());
}

std::vector<torch::Tensor> indexed(const torch::Tensor& x, const torch::Tensor& i) {
  c10::List<std::optional<torch::Tensor>> list;
  list.push_back(i);
  std::vector<torch::Tensor> found = {x.index(list), at::index(x, {i}), x.index({i})};
  c10::List<std::optional<at::Tensor>> columns({std::nullopt, i});
  found.push_back(x.index(columns));
  found.push_back(at::index_put(x, list, torch::zeros({}, x.options())));
  auto changed = x.clone();
  changed.index_put_(list, torch::ones({}, x.options()), /*accumulate=*/true);
  found.push_back(changed);
  return found;
}

std::vector<torch::Tensor> given(const torch::Tensor& x) {
  auto power = torch::empty_like(x), least = torch::empty_like(x);
  auto wide = torch::empty({0}, x.options().dtype(torch::kDouble));
  torch::float_power_out(wide, x, 2.0);
  torch::clamp_min_out(least, x, 0.5);
  torch::pow_out(power, x, 2);
  auto places = torch::empty({0}, x.options().dtype(torch::kLong));
  torch::searchsorted_out(places, std::get<0>(x.sort()), x);
  auto ahead = torch::empty({0}, x.options());
  torch::unsqueeze_copy_out(ahead, x, 0);
  return {power, least, wide, places, ahead};
}

at::IntArrayRef sizes_of(const torch::Tensor& x) { return x.sizes(); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("sizes_of", &sizes_of);
  m.def("sizes_as_vector", [](const torch::Tensor& x) { return x.sizes().vec(); });
  m.def("blob_strided", &blob_strided);
  m.def("blob_context", &blob_context);
  m.def("frees", &frees);
  m.def("symbols", &symbols);
  m.def("indexed", &indexed);
  m.def("given", &given);
}
