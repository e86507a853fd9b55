// SPDX-License-Identifier: Apache-2.0
// my_add(a, b): the sum as one would write it first. A thread adds a few elements that lie a block
// apart, so that neighbouring threads touch neighbouring addresses; what is not contiguous goes the
// general way of kiln/elementwise.h.
#include <stdint.h>

#include "add.h"

#ifndef MY_ADD_THREADS
#define MY_ADD_THREADS 128
#endif
#ifndef MY_ADD_BYTES_PER_THREAD
#define MY_ADD_BYTES_PER_THREAD 16  // of each input: loads under way hide the latency of memory
#endif

namespace {

using kiln::Element;
constexpr int kThreads = MY_ADD_THREADS;

// What one load brings: an element, or as many small ones as fill 4 bytes. (bf16 one by one reached
// 0.87 of torch.add.)
template <class Bits, int N>
struct alignas(N * sizeof(Bits)) Pack {
  Bits lane[N];
};

template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    add_kernel(const typename Element<T>::Bits* a, const typename Element<T>::Bits* b,
               typename Element<T>::Bits* out, int64_t n) {
  using Bits = typename Element<T>::Bits;
  using P = Pack<Bits, N>;
  constexpr int kPacks = MY_ADD_BYTES_PER_THREAD / sizeof(P), kPerBlock = kPacks * kThreads * N;
  // One 64-bit offset for the block; within it 32 bits are enough, and cheaper.
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPerBlock;
  a += first, b += first, out += first;
  const int left = static_cast<int>(n - first < kPerBlock ? n - first : kPerBlock),
            whole = left / N;
  const auto add = [](Bits x, Bits y) {
    return Element<T>::pack(kernels::Add{}(Element<T>::unpack(x), Element<T>::unpack(y)));
  };
  P x[kPacks], y[kPacks];
#pragma unroll
  for (int j = 0; j < kPacks; j++) {
    const int i = static_cast<int>(threadIdx.x) + j * kThreads;
    if (i < whole) x[j] = reinterpret_cast<const P*>(a)[i], y[j] = reinterpret_cast<const P*>(b)[i];
  }
#pragma unroll
  for (int j = 0; j < kPacks; j++) {
    const int i = static_cast<int>(threadIdx.x) + j * kThreads;
    P sum;
#pragma unroll
    for (int k = 0; k < N; k++) sum.lane[k] = add(x[j].lane[k], y[j].lane[k]);
    if (i < whole) reinterpret_cast<P*>(out)[i] = sum;
  }
  if constexpr (N > 1) {  // what is left of the last pack
    const int i = whole * N + static_cast<int>(threadIdx.x);
    if (i < left) out[i] = add(a[i], b[i]);
  }
}

template <class T, int N>
void launch_add(kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b) {
  using Bits = typename Element<T>::Bits;
  constexpr int kPerBlock = kThreads * MY_ADD_BYTES_PER_THREAD / static_cast<int>(sizeof(Bits));
  add_kernel<T, N><<<kiln::blocks_for(out.numel(), kPerBlock), kThreads, 0, kiln::stream(out)>>>(
      static_cast<const Bits*>(a.raw()), static_cast<const Bits*>(b.raw()),
      static_cast<Bits*>(out.raw()), out.numel());
}

template <class T>
void add_contiguous(kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b) {
  constexpr int kPacked =
      sizeof(typename Element<T>::Bits) < 4 ? 4 / sizeof(typename Element<T>::Bits) : 1;
  const auto address = [](const kiln::Tensor& t) { return reinterpret_cast<uintptr_t>(t.raw()); };
  if ((address(a) | address(b) | address(out)) % 4 == 0)
    launch_add<T, kPacked>(out, a, b);
  else
    launch_add<T, 1>(out, a, b);
}

bool is_plain(const kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b) {
  return a.dtype() == out.dtype() && b.dtype() == out.dtype() && a.sizes() == b.sizes() &&
         a.is_contiguous() && b.is_contiguous() && out.numel() > 0;
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
    .doc(
        "The sum of two tensors, as torch.add: any dtypes, shapes that broadcast, any strides. A "
        "plain kernel.");
