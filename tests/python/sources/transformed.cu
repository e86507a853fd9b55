// SPDX-License-Identifier: Apache-2.0
// One op of each kind that torch's transforms treat in their own way; tests/python/
// test_transforms.py has the same in torch.
#include <kiln/complex.h>
#include <kiln/op.h>

template <class T>
__global__ void square_kernel(const T* x, T factor, const T* plus, T* out, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) out[i] = x[i] * x[i] * factor + (plus ? plus[i] : T(0));
}

// out = x * x * factor + plus
static void square(const kiln::Tensor& x, double factor, const kiln::Tensor* plus,
                   kiln::Tensor& out) {
  if (x.numel() == 0) return;
  kiln::dispatch<float, double>(x.dtype(), [&](auto t) {
    using T = typename decltype(t)::type;
    square_kernel<T><<<kiln::blocks_for(x.numel(), 64), 64, 0, kiln::stream(x)>>>(
        x.data<const T>(), static_cast<T>(factor), plus ? plus->data<const T>() : nullptr,
        out.data<T>(), x.numel());
  });
}

kiln::Tensor functional(const kiln::Tensor& x, const kiln::Tensor& y, double factor) {
  kiln::Tensor out = kiln::empty(x.sizes(), x.dtype(), x.device());
  square(x, factor, &y, out);
  return out;
}
KILN_OP(functional, "x, y, factor=0.1").fake("x.dtype[*x.shape]");

kiln::Tensor without_fake(const kiln::Tensor& x, const kiln::Tensor& y, double factor) {
  return functional(x, y, factor);
}
KILN_OP(without_fake, "without_fake(Tensor x, Tensor y, float factor=0.1) -> Tensor");

void in_place(kiln::Tensor& x, double factor) { square(x, factor, nullptr, x); }
KILN_OP(in_place, "x, factor");

void to_argument(const kiln::Tensor& x, kiln::Tensor& out) { square(x, 1.0 / 3, nullptr, out); }
KILN_OP(to_argument, "x, out");

kiln::Tensor of_list(kiln::TensorList xs) {
  KILN_CHECK(xs.size() == 2, "of_list takes two tensors");
  kiln::Tensor out = kiln::empty(xs[0].sizes(), xs[0].dtype(), xs[0].device());
  square(xs[0], 0.1, &xs[1], out);
  return out;
}
KILN_OP(of_list, "xs").fake("xs[0].dtype[*xs[0].shape]");

kiln::Tensor optional(const kiln::Tensor& x, kiln::Optional<kiln::Tensor> y) {
  kiln::Tensor out = kiln::empty(x.sizes(), x.dtype(), x.device());
  square(x, 0.1, y ? &*y : nullptr, out);
  return out;
}
KILN_OP(optional, "x, y=None").fake("x.dtype[*x.shape]");

kiln::Tensors<2> two_results(const kiln::Tensor& x, double factor) {
  kiln::Tensor a = kiln::empty(x.sizes(), x.dtype(), x.device()),
               b = kiln::empty(x.sizes(), x.dtype(), x.device());
  square(x, factor, nullptr, a);
  square(x, 1 / factor, &a, b);
  return {a, b};
}
KILN_OP(two_results, "x, *, factor=0.1").fake("x.dtype[*x.shape], x.dtype[*x.shape]");

template <class T>
__global__ void add_kernel(const T* a, T* t, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) t[i] = t[i] + a[i];
}
void add_to(const kiln::Tensor& a, kiln::Tensor& t) {
  KILN_CHECK(a.sizes() == t.sizes(), "sizes differ: ", a.sizes(), " and ", t.sizes());
  kiln::dispatch<float, kiln::complex<float>>(t.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    add_kernel<T><<<kiln::blocks_for(a.numel(), 64), 64, 0, kiln::stream(a)>>>(
        a.data<const T>(), t.data<T>(), a.numel());
  });
}
KILN_OP(add_to, "a, t");

// Parameters narrower than what Python passes.
double narrow(float real, int whole, double wide) {
  return static_cast<double>(real) + whole + wide;
}
KILN_OP(narrow, "real, whole=0, wide=0.0");
