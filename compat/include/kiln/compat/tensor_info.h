// SPDX-License-Identifier: Apache-2.0
// How does device code find an element by its number? By what ATen/cuda/detail/TensorInfo.cuh has:
// sizes and strides by value, and a walk over them.
#pragma once

#include <kiln/compat/tensor.h>

#define MAX_TENSORINFO_DIMS 25

namespace at {
namespace cuda {
namespace detail {
inline namespace kc {

template <class T, class Index>
struct TensorInfo {
  T* data = nullptr;
  Index sizes[MAX_TENSORINFO_DIMS];
  Index strides[MAX_TENSORINFO_DIMS];
  int dims = 0;

  TensorInfo() = default;
  TensorInfo(T* memory, int dim, Index size[MAX_TENSORINFO_DIMS], Index stride[MAX_TENSORINFO_DIMS])
      : data(memory), dims(dim) {
    TORCH_CHECK(dim < MAX_TENSORINFO_DIMS, "CUDA Tensors cannot have more than 25 dimensions");
    for (int d = 0; d < dim; d++) {
      sizes[d] = size[d];
      strides[d] = stride[d];
    }
  }
  void reduceDim(int dim) {
    TORCH_CHECK(dim < dims && dim >= 0, "expected dim between 0 and dims - 1");
    sizes[dim] = 1;
  }
  bool isContiguous() const { return dims == 1 && strides[0] == 1; }

  // Neighbours that step as one become one; `kept` stays by itself. Gives the new number of `kept`,
  // 0 for a point.
  int collapseDims(int kept = -1) {
    int last = -1, kept_now = -1;
    for (int d = 0; d < dims; d++) {
      const bool own = d == kept;
      if (sizes[d] == 1 && !own) continue;
      const bool joins =
          last >= 0 && !own && last != kept_now && strides[last] == sizes[d] * strides[d];
      if (joins) {
        sizes[last] *= sizes[d];
      } else {
        last++;
        sizes[last] = sizes[d];
        if (own) kept_now = last;
      }
      strides[last] = strides[d];
    }
    if (last < 0 || (last == 0 && sizes[0] == 1)) {  // a point
      dims = 1;
      sizes[0] = 1;
      strides[0] = 1;
      return 0;
    }
    dims = last + 1;
    return kept_now;
  }
};

// Dims: their number, where it is known; -1: as the tensor has it.
template <class T, class Index, int Dims>
struct IndexToOffset {
  static C10_HOST_DEVICE Index get(Index number, const TensorInfo<T, Index>& info) {
    Index offset = 0;
    for (int d = (Dims < 0 ? info.dims : Dims) - 1; d > 0; d--) {
      offset += number % info.sizes[d] * info.strides[d];
      number /= info.sizes[d];
    }
    return offset + number * info.strides[0];
  }
};

template <class T, class Index>
TensorInfo<T, Index> getTensorInfo(const Tensor& t) {
  Index sizes[MAX_TENSORINFO_DIMS], strides[MAX_TENSORINFO_DIMS];
  const int dims = static_cast<int>(t.dim());
  TORCH_CHECK(dims < MAX_TENSORINFO_DIMS, "CUDA Tensors cannot have more than 25 dimensions");
  for (int d = 0; d < dims; d++) {
    sizes[d] = static_cast<Index>(t.size(d));
    strides[d] = static_cast<Index>(t.stride(d));
  }
  using Element = std::remove_const_t<T>;
  T* data = nullptr;
  if constexpr (std::is_const_v<T>)
    data = t.const_data_ptr<Element>();
  else
    data = t.mutable_data_ptr<Element>();
  return TensorInfo<T, Index>(data, dims, sizes, strides);
}

// Whether every offset of the tensor is less than `most`.
inline bool canUse32BitIndexMath(const Tensor& t, int64_t most = INT32_MAX) {
  if (t.numel() >= most) return false;
  if (t.numel() == 0) return most > 0;
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); d++) last += (t.size(d) - 1) * t.stride(d);
  return last < most;
}

}  // namespace kc
}  // namespace detail
}  // namespace cuda
}  // namespace at
