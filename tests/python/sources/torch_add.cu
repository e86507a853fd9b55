// SPDX-License-Identifier: Apache-2.0
// A source for torch.utils.cpp_extension, as people have them: nothing in it knows of kiln.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")

template <typename scalar_t>
__global__ void add_kernel(const scalar_t* a, const scalar_t* b, scalar_t* out, int64_t n) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

torch::Tensor my_add(torch::Tensor a, const torch::Tensor& b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "shapes differ: ", a.sizes(), " and ", b.sizes());
  CHECK_CONTIGUOUS(a);
  CHECK_CONTIGUOUS(b);
  at::cuda::OptionalCUDAGuard guard;
  if (a.is_cuda()) guard.set_device(a.device());
  auto out = torch::empty_like(a);
  const int64_t n = a.numel();
  if (n == 0) return out;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, a.scalar_type(), "my_add", [&] {
    add_kernel<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

__global__ void scale_rows_kernel(
    torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> x, float factor) {
  const int row = blockIdx.x, column = threadIdx.x;
  if (column < x.size(1)) x[row][column] *= factor;
}

void scale_rows_(torch::Tensor& x, double factor) {
  scale_rows_kernel<<<x.size(0), x.size(1), 0, at::cuda::getCurrentCUDAStream()>>>(
      x.packed_accessor32<float, 2, torch::RestrictPtrTraits>(), static_cast<float>(factor));
}

// Everything below runs on the host: what crosses from Python, and ops through the dispatcher.
std::tuple<at::Tensor, int64_t, bool> facts(const at::Tensor& x) {
  return {x.t().contiguous(), x.dim(), x.is_contiguous()};
}
std::vector<at::Tensor> halves(at::Tensor x, int64_t dim) { return x.split(x.size(dim) / 2, dim); }
at::Tensor mixed(at::Tensor x, std::optional<at::Tensor> bias, std::vector<int64_t> shape,
                 double alpha, bool negate, const std::string& reduce) {
  at::Tensor out = x * alpha + 1;
  if (bias) out = out + *bias;
  if (negate) out = -out;
  out = out.view(shape);
  TORCH_CHECK_VALUE(reduce == "none" || reduce == "sum" || reduce == "mean", "unknown reduction ",
                    reduce);
  if (reduce == "sum") return out.sum(0);
  if (reduce == "mean") return out.mean(std::vector<int64_t>{0}, /*keepdim=*/true);
  return out;
}
at::Tensor indexed(at::Tensor x) {
  using namespace torch::indexing;
  auto y = x.clone();
  y.index_put_({0, Slice(None, 2)}, 7.0);
  y[1] = y[0];
  return torch::cat({y.index({Slice(), 0}), y.index({"...", -1}), torch::arange(3, y.options())});
}
int64_t size_of(const at::Tensor& x, int64_t d) { return x.size(d); }
float* read_as_float(const at::Tensor& x) { return x.data_ptr<float>(); }
bool as_float(const at::Tensor& x) { return read_as_float(x) != nullptr; }
void refuse(const std::string& how) {
  TORCH_CHECK_INDEX(how != "index", "an index error");
  TORCH_CHECK_VALUE(how != "value", "a value error");
  TORCH_CHECK_TYPE(how != "type", "a type error");
  TORCH_CHECK_NOT_IMPLEMENTED(how != "not implemented", "not implemented at all");
  TORCH_CHECK(how != "bare");
  if (how == "std") throw std::out_of_range("out of range");
  AT_ERROR("refused: ", how, ' ', 1.5, " ", at::kHalf, " ", c10::Device(at::kCUDA, 1));
}
at::Tensor options_of(at::Tensor x, at::ScalarType type) {
  auto made = torch::full({2, 3}, 4, x.options().dtype(type));
  return torch::stack({made, torch::ones_like(made), torch::zeros({2, 3}, torch::dtype(type))});
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "an extension";
  m.def("my_add", &my_add, "a + b");
  m.def("scale_rows_", &scale_rows_, py::arg("x"), py::arg("factor") = 2.0);
  m.def("facts", &facts);
  m.def("halves", &halves, py::arg("x"), py::arg("dim") = 0);
  m.def("mixed", &mixed, "much at once", py::arg("x"), py::arg("bias") = py::none(),
        py::arg("shape"), py::arg("alpha") = 1.0, py::arg("negate") = false,
        py::arg("reduce") = "none");
  m.def("indexed", &indexed, py::call_guard<py::gil_scoped_release>());
  m.def("size_of", &size_of);
  m.def("as_float", &as_float);
  m.def("refuse", &refuse);
  m.def("options_of", &options_of);
  m.def("twice", [](int64_t x) { return 2 * x; });
  m.def("twice", [](const std::string& x) { return x + x; });
  m.attr("answer") = 42;
}
