// SPDX-License-Identifier: Apache-2.0
// How does device code index a tensor? Accessors borrow sizes and strides, packed ones carry them
// by value.
#pragma once

#include <kiln/compat/types.h>

namespace at {
inline namespace kc {

template <class T>
struct DefaultPtrTraits {
  typedef T* PtrType;
};
#if defined(__CUDACC__)
template <class T>
struct RestrictPtrTraits {
  typedef T* __restrict__ PtrType;
};
#else
template <class T>
using RestrictPtrTraits = DefaultPtrTraits<T>;
#endif

template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class TensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  C10_HOST_DEVICE TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  C10_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  C10_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }
  C10_HOST_DEVICE const Index* sizes() const { return sizes_; }
  C10_HOST_DEVICE decltype(auto) operator[](Index i) const {
    if constexpr (N == 1)
      return (data_[strides_[0] * i]);
    else
      return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1,
                                                     strides_ + 1);
  }
  static constexpr size_t kDims = N;

 protected:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};

template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  template <class From>
  C10_HOST GenericPackedTensorAccessor(PtrType data, const From* sizes, const From* strides)
      : data_(data) {
    for (size_t d = 0; d < N; d++) {
      sizes_[d] = static_cast<Index>(sizes[d]);
      strides_[d] = static_cast<Index>(strides[d]);
    }
  }
  C10_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  C10_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }
  C10_DEVICE decltype(auto) operator[](Index i) const {
    if constexpr (N == 1)
      return (const_cast<PtrType&>(data_)[strides_[0] * i]);
    else
      return TensorAccessor<T, N - 1, Traits, Index>(const_cast<PtrType&>(data_) + strides_[0] * i,
                                                     sizes_ + 1, strides_ + 1);
  }

 protected:
  PtrType data_;
  Index sizes_[N];
  Index strides_[N];
};

template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;
template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
          class Index = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, Index>;

}  // namespace kc
}  // namespace at
namespace torch {
using at::DefaultPtrTraits;
using at::PackedTensorAccessor;
using at::PackedTensorAccessor32;
using at::PackedTensorAccessor64;
using at::RestrictPtrTraits;
using at::TensorAccessor;
}  // namespace torch
