// SPDX-License-Identifier: Apache-2.0
// Does every kind of argument and result cross between Python and an op? One small op for each.
#include <kiln/op.h>

template <class T>
__global__ void affine_kernel(kiln::View<const T, 1> x, T factor, T offset, kiln::View<T, 1> out) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = x(i) * factor + offset;
}

template <class T>
__global__ void fill_kernel(kiln::View<T, 1> out, T start, T step) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = start + static_cast<T>(i) * step;
}

__global__ void sum_kernel(kiln::View<const float, 1> a, kiln::View<const float, 1> b,
                           kiln::View<float, 1> out) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = a(i) + b(i);
}

static void affine(const kiln::Tensor& x, double factor, double offset, kiln::Tensor& out) {
  affine_kernel<float><<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(
      x.flat<const float>(), static_cast<float>(factor), static_cast<float>(offset),
      out.flat<float>());
}

template <class T>
static void fill(kiln::Tensor& out, T start, T step) {
  fill_kernel<T><<<kiln::blocks_for(out.numel(), 128), 128, 0, kiln::stream(out)>>>(out.flat<T>(),
                                                                                    start, step);
}

// float, int, bool, with defaults and a keyword-only part.
kiln::Tensor scale(const kiln::Tensor& x, double factor, int64_t offset, bool negate) {
  kiln::Tensor out = kiln::empty(x.sizes(), x.dtype(), x.device());
  affine(x, negate ? -factor : factor, static_cast<double>(offset), out);
  return out;
}
KILN_OP(scale, "x, factor=2.0, *, offset=0, negate=False")
    .fake("x.dtype[*x.shape]")
    .doc("x * factor + offset, or the same with -factor.");

// An optional tensor.
kiln::Tensor biased(const kiln::Tensor& x, kiln::Optional<kiln::Tensor> bias) {
  kiln::Tensor out = kiln::empty_like(x);
  if (!bias) {
    affine(x, 1, 0, out);
    return out;
  }
  KILN_CHECK(bias->sizes() == x.sizes(), "sizes differ: ", x.sizes(), " and ", bias->sizes());
  sum_kernel<<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(
      x.flat<const float>(), bias->flat<const float>(), out.flat<float>());
  return out;
}
KILN_OP(biased, "x, bias=None").fake("like(x)");

// A list of tensors.
kiln::Tensor total(kiln::TensorList xs) {
  KILN_CHECK(xs.size() > 0, "total of no tensor");
  kiln::Tensor out = kiln::zeros(xs[0].sizes(), xs[0].dtype(), xs[0].device());
  for (const kiln::Tensor& x : xs)
    sum_kernel<<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(
        x.flat<const float>(), const_cast<const kiln::Tensor&>(out).flat<const float>(),
        out.flat<float>());
  return out;
}
KILN_OP(total, "xs").fake("f32[*xs[0].shape]");

// Lists of numbers.
kiln::Tensor ramp(const kiln::Tensor& like, kiln::Span<const int64_t> sizes,
                  kiln::Span<const double> start_and_step) {
  KILN_CHECK(start_and_step.size() == 2, "start_and_step has ", start_and_step.size(),
             " values, 2 are wanted");
  kiln::Tensor out = kiln::empty(sizes, kiln::Dtype::f32, like.device());
  fill(out, static_cast<float>(start_and_step[0]), static_cast<float>(start_and_step[1]));
  return out;
}
KILN_OP(ramp, "like, sizes, start_and_step").fake("f32[*sizes]");

// A string.
kiln::Tensor named(const kiln::Tensor& x, kiln::Str how) {
  KILN_CHECK(how == "double" || how == "negate", "how is '", how,
             "'; it can be 'double' or 'negate'");
  kiln::Tensor out = kiln::empty_like(x);
  affine(x, how == "double" ? 2 : -1, 0, out);
  return out;
}
KILN_OP(named, "x, how='double'").fake("like(x)");

// A dtype and a device.
kiln::Tensor count_up(int64_t n, kiln::Dtype dtype, kiln::Device device) {
  kiln::Tensor out = kiln::empty({n}, dtype, device);
  kiln::dispatch<float, double, int32_t, int64_t>(dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    fill(out, T(0), T(1));
  });
  return out;
}
KILN_OP(count_up, "n, dtype, device").fake("dtype[n] @ device");

// Optional numbers.
kiln::Tensor shifted(const kiln::Tensor& x, kiln::Optional<int64_t> by,
                     kiln::Optional<double> times) {
  kiln::Tensor out = kiln::empty_like(x);
  affine(x, times.value_or(1), static_cast<double>(by.value_or(0)), out);
  return out;
}
KILN_OP(shifted, "x, by=None, times=None").fake("like(x)");

// Two results.
kiln::Tensors<2> twice_and_half(const kiln::Tensor& x) {
  kiln::Tensor twice = kiln::empty_like(x), half = kiln::empty_like(x);
  affine(x, 2, 0, twice);
  affine(x, 0.5, 0, half);
  return {twice, half};
}
KILN_OP(twice_and_half, "x").fake("like(x), like(x)");

// Results that are no tensors.
kiln::Tuple<int64_t, double, bool> facts(const kiln::Tensor& x) {
  return {x.numel(), static_cast<double>(x.ndim()) / 2, x.is_contiguous()};
}
KILN_OP(facts, "x");

// A list of results.
kiln::TensorVec copies(const kiln::Tensor& x, int64_t count) {
  kiln::TensorVec all;
  for (int64_t i = 0; i < count; i++) {
    kiln::Tensor out = kiln::empty_like(x);
    affine(x, static_cast<double>(i), 0, out);
    all.push(out);
  }
  return all;
}
KILN_OP(copies, "x, count");

// Copies and fills of the runtime, to and from tensors; and of what is no memory.
kiln::Tensor moved(const kiln::Tensor& x) {
  kiln::Tensor out = kiln::empty_like(x);
  const size_t bytes = static_cast<size_t>(x.numel()) * sizeof(float);
  float last = 0;
  void* const wild = reinterpret_cast<void*>(0x1230);
  const auto check = [](cudaError_t code) {
    KILN_CHECK(code == cudaSuccess, "code ", static_cast<int>(code));
  };
  check(cudaMemsetAsync(out.data<float>(), 0, bytes, kiln::stream(x)));
  check(cudaMemcpyAsync(out.data<float>() + 1, x.data<const float>(), bytes - 4,
                        cudaMemcpyDeviceToDevice, kiln::stream(x)));
  check(cudaStreamSynchronize(kiln::stream(x)));
  check(cudaMemcpy(&last, x.data<const float>() + x.numel() - 1, 4, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(out.data<float>(), &last, 4, cudaMemcpyHostToDevice));
  if (x.is_cuda())
    return out;  // a GPU that reads the process' memory tells it later, and is lost then
  KILN_CHECK(cudaMemcpy(&last, wild, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue,
             "a wild pointer was read");
  KILN_CHECK(cudaMemset(wild, 0, 4) == cudaErrorInvalidValue, "a wild pointer was written");
  cudaGetLastError();
  return out;
}
KILN_OP(moved, "x");

// An argument that is written to.
void fill_(kiln::Tensor& x, double value) { fill(x, static_cast<float>(value), 0.f); }
KILN_OP(fill_, "x, value");

// Overloads: torch chooses by the type of the second argument.
kiln::Tensor shift_int(const kiln::Tensor& x, int64_t value) { return scale(x, 1, value, false); }
kiln::Tensor shift_float(const kiln::Tensor& x, double value) {
  kiln::Tensor out = kiln::empty_like(x);
  affine(x, 1, value, out);
  return out;
}
KILN_OP(shift_int, "shift.int(x, value)").fake("like(x)").doc("Adds a whole number.");
KILN_OP(shift_float, "shift.float(x, value)").fake("like(x)").doc("Adds a real number.");

// Errors of an author's own.
kiln::Tensor picky(const kiln::Tensor& x, const kiln::Tensor& y) {
  KILN_CHECK(x.ndim() == 2, "x has ", x.ndim(), " dimensions, 2 are wanted");
  KILN_CHECK(x.sizes() == y.sizes(), "sizes differ: ", x.sizes(), " and ", y.sizes());
  kiln::Tensor out = kiln::empty_like(x);
  sum_kernel<<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(
      x.flat<const float>(), y.flat<const float>(), out.flat<float>());
  return out;
}
KILN_OP(picky, "x, y").fake("like(x)");

// Any strides in, the same order of dimensions out; the rule tells of another.
template <int N>
__global__ void copy_kernel(kiln::View<const float, N> x, kiln::View<float, N> out) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0) * out.size(1))
    out(i / out.size(1), i % out.size(1)) = x(i / out.size(1), i % out.size(1));
}
kiln::Tensor copied(const kiln::Tensor& x) {
  kiln::Tensor out = kiln::empty_like(x);
  if (x.numel() > 0)
    copy_kernel<2><<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(
        x.view<const float, 2>(), out.view<float, 2>());
  return out;
}
KILN_OP(copied, "x").fake("f32[*x.shape]");
