// SPDX-License-Identifier: Apache-2.0
// Which small helpers around tensors do sources use? Wrapping of dimensions, broadcast sizes, a
// tensor that is borrowed or owned, sizes and strides without the tensor.
#pragma once

#include <kiln/compat/tensor_api.h>

#include <utility>

namespace c10 {
inline namespace kc {
inline int64_t maybe_wrap_dim(int64_t dim, int64_t ndim, bool wrap_scalar = true) {
  const int64_t dims = ndim == 0 && wrap_scalar ? 1 : ndim;
  return dim >= 0 && dim < dims ? dim : at::kiln_detail::wrapped(dim, dims);
}

// torch's keeps a reference to what is borrowed; here a copy counts a reference more.
template <class T>
class MaybeOwned {
 public:
  MaybeOwned() = default;
  static MaybeOwned borrowed(const T& value) { return MaybeOwned(value, true); }
  static MaybeOwned owned(T&& value) { return MaybeOwned(std::move(value), false); }
  template <class... A>
  static MaybeOwned owned(std::in_place_t, A&&... parts) {
    return MaybeOwned(T(static_cast<A&&>(parts)...), false);
  }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }
  bool unsafeIsBorrowed() const { return borrowed_; }

 private:
  MaybeOwned(T value, bool borrowed) : value_(std::move(value)), borrowed_(borrowed) {}
  T value_;
  bool borrowed_ = false;
};
}  // namespace kc
}  // namespace c10

namespace at {
inline namespace kc {
using c10::maybe_wrap_dim;

std::vector<int64_t> infer_size(IntArrayRef a, IntArrayRef b);  // as broadcasting makes them
inline bool is_expandable_to(IntArrayRef shape, IntArrayRef desired) {
  if (shape.size() > desired.size()) return false;
  for (size_t i = 0; i < shape.size(); i++) {
    const int64_t size = shape[shape.size() - 1 - i];
    if (size != 1 && size != desired[desired.size() - 1 - i]) return false;
  }
  return true;
}
inline c10::MaybeOwned<Tensor> borrow_from_optional_tensor(const std::optional<Tensor>& given) {
  return given ? c10::MaybeOwned<Tensor>::borrowed(*given)
               : c10::MaybeOwned<Tensor>::owned(std::in_place);
}
inline Tensor scalar_to_tensor(const Scalar& value, Device device = Device(kCPU)) {
  return scalar_tensor(value, TensorOptions(value.type()).device(device));
}

class TensorGeometry {
 public:
  TensorGeometry() = default;
  explicit TensorGeometry(IntArrayRef sizes) : sizes_(sizes.vec()), strides_(sizes.size()) {
    int64_t step = 1;
    for (size_t i = sizes.size(); i-- > 0; step *= sizes_[i]) strides_[i] = step;
    numel_ = step;
  }
  explicit TensorGeometry(const Tensor& t)
      : sizes_(t.sizes().vec()),
        strides_(t.strides().vec()),
        offset_(t.storage_offset()),
        numel_(t.numel()) {}
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t size(int64_t d) const { return sizes_[static_cast<size_t>(maybe_wrap_dim(d, dim()))]; }
  int64_t stride(int64_t d) const {
    return strides_[static_cast<size_t>(maybe_wrap_dim(d, dim()))];
  }
  IntArrayRef sizes() const { return sizes_; }
  IntArrayRef strides() const { return strides_; }
  int64_t storage_offset() const { return offset_; }
  int64_t numel() const { return numel_; }

 private:
  std::vector<int64_t> sizes_, strides_;
  int64_t offset_ = 0, numel_ = 1;
};
}  // namespace kc
}  // namespace at

namespace torch {
namespace utils {
inline at::Tensor flatten_dense_tensors(at::TensorList tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& one : tensors) flat.push_back(one.contiguous().view(-1));
  return flat.size() == 1 ? flat[0] : at::cat(flat);
}
inline std::vector<at::Tensor> unflatten_dense_tensors(const at::Tensor& flat,
                                                       at::TensorList tensors) {
  std::vector<at::Tensor> parts;
  int64_t offset = 0;
  for (const at::Tensor& one : tensors) {
    parts.push_back(flat.narrow(0, offset, one.numel()).view(one.sizes()));
    offset += one.numel();
  }
  return parts;
}
}  // namespace utils
}  // namespace torch
