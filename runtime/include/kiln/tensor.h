// SPDX-License-Identifier: Apache-2.0
// What is a tensor to the author of an op? A counted reference to memory with sizes, strides, dtype
// and device: torch's when torch calls, the caller's own otherwise. The same code serves both.
#pragma once

#include <kiln/check.h>
#include <kiln/types.h>
#include <kiln/view.h>

struct CUstream_st;
typedef CUstream_st* cudaStream_t;

namespace kiln {
namespace detail {

// Filled by the runtime archive; the header only reads it.
struct TensorRep {
  void* data;
  const int64_t* sizes;
  const int64_t* strides;
  int64_t numel;
  int32_t ndim;
  Dtype dtype;
  Device device;
  bool contiguous;
  int references;
};
void retain(TensorRep*);
void release(TensorRep*);

// Says which of dtype, contiguity or dimensions differs from what was asked for, and throws.
[[noreturn]] void bad_access(const TensorRep*, const char* method, Dtype wanted, int wanted_ndim);

}  // namespace detail

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : rep_(other.rep_) {
    if (rep_) detail::retain(rep_);
  }
  Tensor(Tensor&& other) noexcept : rep_(other.rep_) { other.rep_ = nullptr; }
  Tensor& operator=(Tensor other) noexcept {
    detail::TensorRep* mine = rep_;
    rep_ = other.rep_;
    other.rep_ = mine;
    return *this;
  }
  ~Tensor() {
    if (rep_) detail::release(rep_);
  }

  bool defined() const { return rep_ != nullptr; }
  Dtype dtype() const { return rep_->dtype; }
  Device device() const { return rep_->device; }
  bool is_cuda() const { return rep_->device.type == DeviceType::cuda; }
  int ndim() const { return rep_->ndim; }
  int64_t numel() const { return rep_->numel; }
  int64_t nbytes() const { return rep_->numel * element_bytes(rep_->dtype); }
  // Negative dimensions count from the end, as in Python.
  int64_t size(int dimension) const { return rep_->sizes[at(dimension)]; }
  int64_t stride(int dimension) const { return rep_->strides[at(dimension)]; }
  Span<const int64_t> sizes() const { return {rep_->sizes, static_cast<size_t>(rep_->ndim)}; }
  Span<const int64_t> strides() const { return {rep_->strides, static_cast<size_t>(rep_->ndim)}; }
  bool is_contiguous() const { return rep_->contiguous; }

  // The address of the first element, unchecked: the strides are the author's business.
  const void* raw() const { return rep_->data; }
  void* raw() { return rep_->data; }

  // The elements in order: T must be the dtype, and the tensor contiguous. A const Tensor gives
  // const elements.
  template <class T>
  T* data() {
    require<T>("data", -1, true);
    return static_cast<T*>(rep_->data);
  }
  template <class T>
  T* data() const {
    only_const<T>();
    require<T>("data", -1, true);
    return static_cast<T*>(rep_->data);
  }

  // All dimensions, any strides. On the engine each index is checked against its size.
  template <class T, int N>
  View<T, N> view() {
    return view_of<T, N>();
  }
  template <class T, int N>
  View<T, N> view() const {
    only_const<T>();
    return view_of<T, N>();
  }

  // One dimension over all elements; the tensor must be contiguous.
  template <class T>
  View<T, 1> flat() {
    require<T>("flat", -1, true);
    return {static_cast<T*>(rep_->data), {rep_->numel}, {1}};
  }
  template <class T>
  View<T, 1> flat() const {
    only_const<T>();
    require<T>("flat", -1, true);
    return {static_cast<T*>(rep_->data), {rep_->numel}, {1}};
  }

  detail::TensorRep* rep() const { return rep_; }
  // Takes over one reference.
  static Tensor adopt(detail::TensorRep* rep) {
    Tensor tensor;
    tensor.rep_ = rep;
    return tensor;
  }

 private:
  template <class T>
  struct IsConst {
    static constexpr bool value = false;
  };
  template <class T>
  struct IsConst<const T> {
    static constexpr bool value = true;
  };
  template <class T>
  static void only_const() {
    static_assert(IsConst<T>::value,
                  "this Tensor is const: an input of the op. Ask for const elements "
                  "(data<const float>()), or take the parameter as Tensor& to write to it");
  }
  int at(int dimension) const {
    if (dimension < 0) dimension += rep_->ndim;
    KILN_CHECK(dimension >= 0 && dimension < rep_->ndim, "no such dimension in a tensor of sizes ",
               sizes());
    return dimension;
  }
  template <class T>
  void require(const char* method, int ndim, bool contiguous) const {
    if (__builtin_expect(rep_->dtype != dtype_of<T> || (contiguous && !rep_->contiguous) ||
                             (ndim >= 0 && rep_->ndim != ndim),
                         0))
      detail::bad_access(rep_, method, dtype_of<T>, ndim);
  }
  template <class T, int N>
  View<T, N> view_of() const {
    require<T>("view", N, false);
    View<T, N> view;
    view.data = static_cast<T*>(rep_->data);
    for (int d = 0; d < N; d++) {
      view.sizes[d] = rep_->sizes[d];
      view.strides[d] = rep_->strides[d];
    }
    return view;
  }

  detail::TensorRep* rep_ = nullptr;
};

using TensorList = Span<const Tensor>;

// New tensors: of torch's allocator when torch called, of the device's own otherwise. Contents are
// not set by empty.
Tensor empty(const Sizes& sizes, Dtype dtype, Device device);
Tensor empty_strided(const Sizes& sizes, const Sizes& strides, Dtype dtype, Device device);
Tensor empty_like(
    const Tensor& like);  // same sizes, dtype, device; dense strides in the same order, as torch's
Tensor empty_like(const Tensor& like, Dtype dtype);
Tensor zeros(const Sizes& sizes, Dtype dtype, Device device);

// The stream that the caller works on, on the tensor's device (torch's current stream); kernels
// belong on it.
cudaStream_t stream(const Tensor& like);

// Working memory that lives until this object goes, of the same allocator as empty(): safe to let
// go after the launch.
template <class T>
class Scratch {
 public:
  explicit Scratch(Tensor bytes, int64_t size)
      : bytes_(static_cast<Tensor&&>(bytes)), size_(size) {}
  T* data() { return static_cast<T*>(bytes_.raw()); }
  operator T*() { return data(); }
  int64_t size() const { return size_; }

 private:
  Tensor bytes_;
  int64_t size_;
};

template <class T>
Scratch<T> scratch(int64_t count, const Tensor& like) {
  return Scratch<T>(empty({count * static_cast<int64_t>(sizeof(T))}, Dtype::u8, like.device()),
                    count);
}

}  // namespace kiln
