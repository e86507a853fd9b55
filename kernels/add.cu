// SPDX-License-Identifier: Apache-2.0
// my_add(a, b): the sum as one would write it first. A thread adds a few elements that lie a block apart, so that
// neighbouring threads touch neighbouring addresses; what is not contiguous goes the general way of kiln/elementwise.h.
#include "add.h"

#ifndef MY_ADD_THREADS
#define MY_ADD_THREADS 256
#endif
#ifndef MY_ADD_BYTES_PER_THREAD
#define MY_ADD_BYTES_PER_THREAD 32  // of each input: loads under way hide the latency of memory
#endif

namespace {

using kiln::Element;
constexpr int kThreads = MY_ADD_THREADS;

template <class T>
__global__ void __launch_bounds__(kThreads)
    add_kernel(const typename Element<T>::Bits* a, const typename Element<T>::Bits* b, typename Element<T>::Bits* out,
               int64_t n) {
  constexpr int kPerThread = MY_ADD_BYTES_PER_THREAD / sizeof(*a), kPerBlock = kPerThread * kThreads;
  // One 64-bit offset for the block; within it 32 bits are enough, and cheaper.
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPerBlock;
  a += first, b += first, out += first;
  const int left = static_cast<int>(n - first < kPerBlock ? n - first : kPerBlock);
  typename Element<T>::Bits x[kPerThread], y[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; j++) {
    const int i = static_cast<int>(threadIdx.x) + j * kThreads;
    if (i < left) x[j] = a[i], y[j] = b[i];
  }
#pragma unroll
  for (int j = 0; j < kPerThread; j++) {
    const int i = static_cast<int>(threadIdx.x) + j * kThreads;
    if (i < left) out[i] = Element<T>::pack(kernels::Add{}(Element<T>::unpack(x[j]), Element<T>::unpack(y[j])));
  }
}

template <class T>
void add_contiguous(kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b) {
  using Bits = typename Element<T>::Bits;
  constexpr int kPerBlock = kThreads * MY_ADD_BYTES_PER_THREAD / static_cast<int>(sizeof(Bits));
  add_kernel<T><<<kiln::blocks_for(out.numel(), kPerBlock), kThreads, 0, kiln::stream(out)>>>(
      static_cast<const Bits*>(a.raw()), static_cast<const Bits*>(b.raw()), static_cast<Bits*>(out.raw()), out.numel());
}

bool is_plain(const kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b) {
  return a.dtype() == out.dtype() && b.dtype() == out.dtype() && a.sizes() == b.sizes() && a.is_contiguous() &&
         b.is_contiguous() && out.numel() > 0;
}

kiln::Tensor my_add(const kiln::Tensor& a, const kiln::Tensor& b) {
  kiln::Tensor out = kernels::empty_sum(a, b);
  if (!is_plain(out, a, b)) {
    kernels::add_into(out, a, b);
    return out;
  }
  const auto add = [&](auto t) { add_contiguous<typename decltype(t)::type>(out, a, b); };
  switch (kiln::category_of(out.dtype())) {
    case kiln::Category::real:
      kernels::dispatch_reals(out.dtype(), add);
      break;
    case kiln::Category::complex_number:
      kernels::dispatch_complex(out.dtype(), add);
      break;
    default:
      kernels::dispatch_integers(out.dtype(), add);
  }
  return out;
}

}  // namespace

KILN_OP(my_add, "a, b")
    .fake("broadcast(a, b)")
    .doc("The sum of two tensors, as torch.add: any dtypes, shapes that broadcast, any strides. A plain kernel.");
